#include "jobs/http/detail/response.hpp"

#include <array>
#include <charconv>

#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

using std::chrono::seconds;

struct status_row {
  error_code code;
  int status;
  seconds retry_after;
};

// The only mapping of errors to status codes.
constexpr std::array<status_row, 18> statuses = {{
    {error_code::invalid, 400, seconds(0)},
    {error_code::too_large, 413, seconds(0)},
    {error_code::not_found, 404, seconds(0)},
    {error_code::duplicate, 409, seconds(0)},
    {error_code::wrong_state, 409, seconds(0)},
    {error_code::lease_lost, 409, seconds(0)},
    {error_code::queue_full, 503, seconds(1)},
    {error_code::timed_out, 503, seconds(1)},
    {error_code::stopped, 503, seconds(1)},
    {error_code::shutting_down, 503, seconds(5)},
    {error_code::overloaded, 503, seconds(1)},
    {error_code::disk_full, 503, seconds(10)},
    {error_code::io_error, 503, seconds(10)},
    {error_code::locked, 503, seconds(10)},
    {error_code::corrupt, 500, seconds(0)},
    {error_code::unauthenticated, 401, seconds(0)},
    {error_code::forbidden, 403, seconds(0)},
    {error_code::unavailable, 500, seconds(0)},
}};

const status_row& row_of(error_code code) {
  for (const status_row& row : statuses) {
    if (row.code == code) return row;
  }
  return statuses.back();
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + 20, number).ptr);
}

void append_two(std::string& out, unsigned number) {
  out += static_cast<char>('0' + number / 10 % 10);
  out += static_cast<char>('0' + number % 10);
}

}  // namespace

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

int status_of(error_code code) noexcept {
  return row_of(code).status;
}

seconds retry_after(error_code code) noexcept {
  return row_of(code).retry_after;
}

problem_parts make_problem(const error& why, int status, std::string_view more_headers) {
  problem_parts parts;
  parts.status = status != 0 ? status : status_of(why.code);
  json::write(parts.body, json::problem{parts.status, std::string(reason_of(parts.status)), why});
  parts.headers = more_headers;
  if (const seconds later = retry_after(why.code); parts.status == 503 && later > seconds(0)) {
    parts.headers += "Retry-After: " + std::to_string(later.count()) + "\r\n";
  }
  return parts;
}

void append_response(std::string& out, const response& r, const response_form& form) {
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::uint64_t>(r.status));
  out += ' ';
  out += reason_of(r.status);
  out += "\r\n";
  out += form.date;
  if (!r.type.empty()) {
    out += "Content-Type: ";
    out += r.type;
    out += "\r\n";
  }
  out += r.headers;
  if (!form.keeps_alive) out += "Connection: close\r\n";
  if (form.body != response_form::frame::whole) {
    out +=
        form.body == response_form::frame::chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
    return;
  }
  if (r.status != 204) {
    out += "Content-Length: ";
    append_number(out, r.body.size());
    out += "\r\n";
  }
  out += "\r\n";
  if (!form.without_body && r.status != 204) out += r.body;
}

std::string format_http_date(unix_time t) {
  using namespace std::chrono;
  static constexpr std::array days_of_week = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_time<milliseconds> when{milliseconds(t.ms)};
  const auto midnight = floor<days>(when);
  const year_month_day date(midnight);
  const hh_mm_ss clock(floor<seconds>(when - midnight));
  std::string out = days_of_week[weekday(midnight).c_encoding()];
  out += ", ";
  append_two(out, unsigned(date.day()));
  out += ' ';
  out += months[unsigned(date.month()) - 1];
  out += ' ';
  out += std::to_string(int(date.year()));
  out += ' ';
  append_two(out, static_cast<unsigned>(clock.hours().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.minutes().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.seconds().count()));
  out += " GMT";
  return out;
}

}  // namespace sluice::jobs::http
