#pragma once

// Many keep-alive connections to one server, served by one thread (see crowd.hpp).
//
// Parses exactly the server's format: a status line, headers, and a body of Content-Length bytes.
// Each connection has at most one unanswered request.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/wire/crowd.hpp"

namespace sluice::bench {

struct http_answer {
  int status = 0;
  std::string_view body;  // valid during the call
};

class http_crowd {
 public:
  class connection;
  using clock = crowd::clock;
  using on_answer = std::function<void(connection&, const http_answer&)>;

  explicit http_crowd(std::uint16_t port);
  ~http_crowd();
  http_crowd(const http_crowd&) = delete;
  http_crowd& operator=(const http_crowd&) = delete;

  // `answered` is called with every answer, and may send the next request.
  connection& connect(on_answer answered);
  void post(connection& on, std::string_view path, std::string_view body);
  void get(connection& on, std::string_view path);

  // The same as crowd's.
  void run(const std::function<bool()>& is_done) { wire_.run(is_done); }
  void wake_at(clock::time_point when) { wire_.wake_at(when); }

 private:
  void send(connection& on, std::string_view head, std::string_view body);

  crowd wire_;
  std::vector<std::unique_ptr<connection>> connections_;
};

// Sends one unmeasured request and returns the body of its reply. Ends the bench if it fails.
std::string ask(std::uint16_t port, std::string_view path, std::string_view body);

// Returns every number after `"name":` in a text, in order.
std::vector<std::uint64_t> numbers_after(std::string_view text, std::string_view name);

}  // namespace sluice::bench
