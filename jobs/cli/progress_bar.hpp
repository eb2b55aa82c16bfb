#pragma once

// How far a long piece of work has come, with its rate and how long it has to go: on a terminal one
// line that is drawn over, elsewhere a line every few seconds, so that a log is not flooded.
//
// Guarantees: everything goes to standard error. `at` may be called as often as one likes: it draws
// ten times a second at most. Its end wipes the line.
//
//     progress_bar bar(to, {.doing = "importing", .unit = "jobs", .total = lines});
//     for (...) bar.at(++n);
//     bar.finish();

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "jobs/cli/console.hpp"
#include "jobs/model/time.hpp"
#include "sluice/base/clock.hpp"

namespace sluice::jobs::cli {

struct progress_options {
  std::string doing{};      // what is done: "importing"
  std::string unit{};       // of what: "jobs"; "B" for bytes
  std::uint64_t total = 0;  // zero: nobody knows
  bool quiet = false;       // shows nothing
  clock* timers = nullptr;  // null: real_clock()
};

// What one line says.
struct progress_state {
  std::string doing{};
  std::string unit{};
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  double per_second = 0;
  std::string note{};  // at the end, as in "3 refused"

  std::optional<milliseconds> left() const;  // none: it cannot be told
};
// Up to `columns` wide; with a bar in it where one fits.
std::string progress_line(const progress_state& s, std::size_t columns);

class progress_bar {
 public:
  progress_bar(const console& to, progress_options o);
  ~progress_bar() { finish(); }
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void at(std::uint64_t done);
  void set_total(std::uint64_t total) { state_.total = total; }
  void note(std::string text) { state_.note = std::move(text); }
  // Makes room for a line to standard error; the next `at` draws again.
  void clear();
  void finish();

  std::uint64_t done() const noexcept { return state_.done; }
  milliseconds took() const;
  double per_second_overall() const;  // from begin to now

 private:
  struct sample {
    time_point at;
    std::uint64_t done;
  };

  void draw(time_point now);

  const console& to_;
  const bool quiet_;
  clock& timers_;
  progress_state state_;
  std::deque<sample> samples_;  // of the last seconds, for a rate that is not an old one
  time_point began_;
  time_point drawn_;
  bool is_shown_ = false;
};

}  // namespace sluice::jobs::cli
