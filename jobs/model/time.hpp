#pragma once

// Durable times: milliseconds since 1970, UTC. And the job server's source of time, which a test
// can set.
//
// A `time_source` has two clocks: a wall clock, for stored times, and `timers()`, a steady clock,
// for waiting. `manual_time` moves both together.
//
// Stored times have whole milliseconds. `now()`, for the time of a past event, is rounded down.
// `after()`, for a due time, is rounded up: rounded down, it would be up to a millisecond early.
//
//     manual_time time;                       // starts in 2026, stands still
//     time.advance(5min);
//     const unix_time due = time.after(2s);
//     const time_point wake = time.timers().now() + time.until(due);

#include <chrono>
#include <compare>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::jobs {

using std::chrono::milliseconds;

struct unix_time {
  std::int64_t ms = 0;

  friend constexpr auto operator<=>(unix_time, unix_time) = default;
  friend constexpr unix_time operator+(unix_time t, milliseconds d) { return {t.ms + d.count()}; }
  friend constexpr unix_time operator-(unix_time t, milliseconds d) { return {t.ms - d.count()}; }
  friend constexpr milliseconds operator-(unix_time a, unix_time b) {
    return milliseconds(a.ms - b.ms);
  }
};

class time_source {
 public:
  using wall_time = std::chrono::sys_time<std::chrono::nanoseconds>;

  virtual wall_time exact_now() const noexcept = 0;
  virtual clock& timers() noexcept = 0;

  unix_time now() const noexcept;                                 // rounded down
  unix_time after(std::chrono::nanoseconds wait) const noexcept;  // rounded up
  // Returns the time until `due`; negative if `due` has passed. At most 100 years.
  std::chrono::nanoseconds until(unix_time due) const noexcept;

 protected:
  ~time_source() = default;
};

time_source& real_time() noexcept;

class manual_time final : public time_source {
 public:
  explicit manual_time(unix_time start = {1'767'225'600'000});  // 2026-01-01T00:00:00Z

  wall_time exact_now() const noexcept override;
  manual_clock& timers() noexcept override { return clock_; }
  void advance(std::chrono::nanoseconds by) { clock_.advance(by); }

 private:
  unix_time start_;
  manual_clock clock_;
  time_point clock_start_;
};

}  // namespace sluice::jobs
