#pragma once

// A stand-in for somebody's connection: shows lines, slowly when its reader looks away, and breaks
// when it is told to.

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/future/task.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace chat {

// What was being shown is lost; the connection is still there.
struct hiccup : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The connection is no more.
struct hung_up : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct screen {
  std::vector<std::string> lines;
  bool stumbles = false;
  bool is_unplugged = false;
};

class terminal {
 public:
  terminal() { reads_.set(); }

  // Ends when the reader has seen it, or with one of the two above.
  sluice::task<> show(std::string text) {
    const sluice::status seen = co_await reads_.async_wait();
    if (!seen) co_return;  // the session is told to stop
    screen_.with([&](screen& s) {
      if (s.is_unplugged) throw hung_up("connection reset by peer");
      if (std::exchange(s.stumbles, false)) throw hiccup("short write");
      s.lines.push_back(std::move(text));
    });
  }

  void look_away() { reads_.reset(); }
  void look() { reads_.set(); }
  void stumble() {
    screen_.with([](screen& s) { s.stumbles = true; });
  }
  void pull_the_plug() {
    screen_.with([](screen& s) { s.is_unplugged = true; });
  }

  std::vector<std::string> lines() const {
    return screen_.with([](const screen& s) { return s.lines; });
  }
  // False: it was not shown for a long while.
  bool waits_until_last_is(const std::string& text) {
    using namespace std::chrono_literals;
    const auto is_last = [&](const screen& s) {
      return !s.lines.empty() && s.lines.back() == text;
    };
    return static_cast<bool>(screen_.try_lock_when_for(30s, is_last));
  }

 private:
  sluice::event reads_;
  sluice::guarded<screen> screen_;
};

}  // namespace chat
