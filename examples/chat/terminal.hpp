#pragma once

// A stand-in for a person's connection: shows lines, stops while its reader pauses, and fails
// when the test requests it.

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/future/task.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace chat {

// The line being shown is lost; the connection stays open.
struct hiccup : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The connection is closed.
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

  // Ends when the reader has seen the line, or with one of the two above.
  sluice::task<> show(std::string text) {
    const sluice::status seen = co_await reads_.async_wait();
    if (!seen) co_return;  // the session was asked to stop
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
  // Returns false if it was not shown within a long time.
  bool waits_until_last_is(const std::string& text) {
    using namespace std::chrono_literals;
    const auto is_last = [&](const screen& s) {
      return !s.lines.empty() && s.lines.back() == text;
    };
    return static_cast<bool>(screen_.lock_when(is_last, 30s));
  }

 private:
  sluice::event reads_;
  sluice::guarded<screen> screen_;
};

}  // namespace chat
