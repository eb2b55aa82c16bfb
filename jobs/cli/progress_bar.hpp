#pragma once

// Shows the progress of a long operation with its rate and remaining time: on a terminal a line
// that is redrawn, otherwise a line every few seconds, so that a log is not flooded.
//
// Guarantees: all output goes to standard error. `at` may be called at any frequency: it draws at
// most ten times a second. The destructor erases the line.
//
//     progress_bar bar(io, {.doing = "importing", .unit = "jobs", .total = lines});
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
  std::string doing{};      // the operation: "importing"
  std::string unit{};       // "jobs"; "B" for bytes
  std::uint64_t total = 0;  // 0: unknown
  bool quiet = false;       // no output
  clock* timers = nullptr;  // null: real_clock()
};

// The content of one line.
struct progress_state {
  std::string doing{};
  std::string unit{};
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  double per_second = 0;
  std::string note{};  // at the end, as in "3 refused"

  std::optional<milliseconds> left() const;  // nullopt: unknown
};
// Returns at most `columns` characters, with a bar if it fits.
std::string progress_line(const progress_state& s, std::size_t columns);

class progress_bar {
 public:
  progress_bar(const console& io, progress_options o);
  ~progress_bar() { finish(); }
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void at(std::uint64_t done);
  void set_total(std::uint64_t total) { state_.total = total; }
  void note(std::string text) { state_.note = std::move(text); }
  // Erases the line before other output to standard error; the next `at` draws it again.
  void clear();
  void finish();

  std::uint64_t done() const noexcept { return state_.done; }
  milliseconds took() const;
  double per_second_overall() const;  // since construction

 private:
  struct sample {
    time_point at;
    std::uint64_t done;
  };

  void draw(time_point now);

  const console& io_;
  const bool quiet_;
  clock& timers_;
  progress_state state_;
  std::deque<sample> samples_;  // of the last seconds, for a current rate
  time_point began_;
  time_point drawn_;
  bool is_shown_ = false;
};

}  // namespace sluice::jobs::cli
