#pragma once

// Ends a schedule in which a thread computes without a step of the explorer, for example in a loop
// over a std::atomic: the thread that it waits for cannot run.

#include <signal.h>
#include <time.h>

#include <chrono>

namespace sluice::sim::detail {

// During its life, a timer samples the scheduler. It measures processor time, so a loaded machine
// or a stopped process does not look like a loop.
class spin_guard {
 public:
  explicit spin_guard(std::chrono::milliseconds limit);  // 0: no limit
  spin_guard(const spin_guard&) = delete;
  spin_guard& operator=(const spin_guard&) = delete;
  ~spin_guard();

 private:
  const bool is_on_;
  timer_t timer_{};
  struct sigaction before_ {};
};

}  // namespace sluice::sim::detail
