#pragma once

// Sends requests to one HTTP server and returns the responses: reused connections, limits, and one
// thread on which everything runs.

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "jobs/client/client.hpp"
#include "jobs/client/detail/http_url.hpp"
#include "jobs/client/detail/tls_trust.hpp"
#include "jobs/model/result.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::detail {

struct http_answer {
  int status = 0;
  std::string body;
  std::optional<unix_time> date;  // the server's, to the second
};

struct http_request {
  enum class verb : std::uint8_t { get, post, put, patch, del };
  verb method = verb::get;
  std::string target;       // below the prefix of the URL
  std::string body{};       // JSON; empty: none
  milliseconds waits{0};    // wait that the request asks the server for
  bool repeatable = true;   // executing it twice has the same effect as once
  bool takes_long = false;  // unknown duration: no answer_timeout
  // If the response arrives after the caller's limits: returns the requests that undo its effect.
  unique_function<std::vector<http_request>(const http_answer&)> undo{};
};

class transport {
 public:
  using callback = unique_function<void(result<http_answer>)>;

  // `trust` is null for plain http.
  transport(http_url server, const client_options& o,
            std::shared_ptr<boost::asio::ssl::context> trust);
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  ~transport();  // ends the calls in progress with `stopped`

  // `done` is called once, on the transport's thread. Errors: unavailable, timed_out, stopped,
  // overloaded.
  void send(http_request request, wait_limits limits, std::stop_token cancelled, callback done);
  bool on_own_thread() const noexcept;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::detail
