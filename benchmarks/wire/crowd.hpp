#pragma once

// Many connections to one server of this machine, served by one thread: a client so cheap that the
// server is measured.
//
// It transfers bytes and is independent of the protocol. The handler of a connection gets the
// received bytes and returns how many it has consumed; it gets the rest again with the next bytes.
// The output of a handler is sent in one write after it returns.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

class crowd {
 public:
  class connection;
  using clock = std::chrono::steady_clock;
  // Returns how many bytes at the front were consumed.
  using on_bytes = std::function<std::size_t(connection&, std::string_view)>;

  explicit crowd(std::uint16_t port);
  ~crowd();
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  connection& connect(on_bytes consume);

  // Handles events until `is_done` returns true. Calls it after each round of events and at each
  // `wake_at` (a time that is_done may move). Ends the bench if the server closes a connection or
  // sends nothing for a minute.
  void run(const std::function<bool()>& is_done);
  void wake_at(clock::time_point when) { wake_ = when; }

  class connection {
   public:
    // The output: append to it in a handler or before `crowd::flush`.
    std::string& out() { return out_; }

   private:
    friend class crowd;

    int fd_ = -1;
    on_bytes consume_;
    std::string out_;
    std::vector<char> in_;
    std::size_t in_used_ = 0;
    bool watches_for_writable_ = false;
  };

  // Sends `out`. Needed only outside the handler of that connection.
  void flush(connection& on);

 private:
  void receive(connection& on);
  void watch_for_writable(connection& on);

  std::uint16_t port_;
  int epoll_ = -1;
  clock::time_point wake_ = clock::time_point::max();
  std::vector<std::unique_ptr<connection>> connections_;
};

// Returns a port of this machine that is currently free, for servers that cannot choose one.
std::uint16_t free_port();

// Whether a server listens on that port.
bool is_listening(std::uint16_t port);

}  // namespace sluice::bench
