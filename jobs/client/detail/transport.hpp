#pragma once

// Sends requests to one HTTP server and hands back the answers: kept connections, limits, and one
// thread on which everything happens.

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
  milliseconds waits{0};    // how long the server was asked to wait
  bool repeatable = true;   // doing it twice is doing it once
  bool takes_long = false;  // nobody can say how long: no answer_timeout
  // What to send when an answer comes after the caller's limits: undoes what it tells of.
  unique_function<std::vector<http_request>(const http_answer&)> undo{};
};

class transport {
 public:
  using callback = unique_function<void(result<http_answer>)>;

  // `trust` is for https, and else null.
  transport(http_url to, const client_options& o, std::shared_ptr<boost::asio::ssl::context> trust);
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  ~transport();  // ends what is under way with `stopped`

  // `done` is called once, on the own thread. Errors: unavailable, timed_out, stopped, overloaded.
  void send(http_request what, wait_limits limits, std::stop_token cancelled, callback done);
  bool on_own_thread() const noexcept;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::detail
