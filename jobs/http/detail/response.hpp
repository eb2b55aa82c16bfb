#pragma once

// HTTP responses, and the table of status codes of errors.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::http {

inline constexpr std::string_view json_type = "application/json";
inline constexpr std::string_view problem_type = "application/problem+json";

struct response {
  int status = 200;
  std::string_view type{};  // of the body; empty: no body
  std::string_view body{};
  std::string_view headers{};       // whole lines, each with its line end
  bool is_last = false;             // the connection ends after it
  std::vector<lease_ref> leases{};  // released if the response cannot be written
};

std::string_view reason_of(int status) noexcept;
int status_of(error_code code) noexcept;
// Returns the value of Retry-After; zero: no header, because a retry would fail in the same way.
std::chrono::seconds retry_after(error_code code) noexcept;

// A problem document with its headers. `status` zero: the status of the error's code.
struct problem_parts {
  std::string body;
  std::string headers;
  int status = 500;
};
problem_parts make_problem(const error& why, int status = 0, std::string_view more_headers = {});

struct response_form {
  std::string_view date{};  // a whole header line
  bool keeps_alive = true;
  bool without_body = false;  // for HEAD: Content-Length without the body
  // Not whole: only the head is written, for a response in parts.
  enum class frame : std::uint8_t { whole, chunked, to_the_end };
  frame body = frame::whole;
};
void append_response(std::string& out, const response& r, const response_form& form);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string format_http_date(unix_time t);

}  // namespace sluice::jobs::http
