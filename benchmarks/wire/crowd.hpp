#pragma once

// Many connections to one server of this machine, served by one thread: a client that costs so
// little that what is measured is the server.
//
// It moves bytes and knows no protocol. Whoever connects says what to do with bytes that came, and
// how many of them it has understood; the rest is shown again with what comes next. What is said on
// a connection while bytes are looked at leaves in one write, afterwards.

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
  // Returns how many bytes, from the front, need not be shown again.
  using on_bytes = std::function<std::size_t(connection&, std::string_view)>;

  explicit crowd(std::uint16_t port);
  ~crowd();
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  connection& connect(on_bytes heard);

  // Handles events until `is_over` returns true. Calls it after each round of events and at each
  // `wake_at` (a time that is_over may move). Ends the bench if the server closes a connection or
  // sends nothing for a minute.
  void run(const std::function<bool()>& is_over);
  void wake_at(clock::time_point when) { wake_ = when; }

  class connection {
   public:
    // What is to be said: append to it, from a handler or before `crowd::flush`.
    std::string& out() { return out_; }

   private:
    friend class crowd;

    int fd_ = -1;
    on_bytes heard_;
    std::string out_;
    std::vector<char> in_;
    std::size_t in_used_ = 0;
    bool watches_for_room_ = false;
  };

  // Sends what `out` holds, for those who are not in a handler of that connection.
  void flush(connection& on);

 private:
  void receive(connection& on);
  void watch_for_room(connection& on);

  std::uint16_t port_;
  int epoll_ = -1;
  clock::time_point wake_ = clock::time_point::max();
  std::vector<std::unique_ptr<connection>> connections_;
};

// A port of this machine that nobody uses at this moment, for servers that cannot choose one.
std::uint16_t free_port();

// Whether somebody listens there.
bool is_listening(std::uint16_t port);

}  // namespace sluice::bench
