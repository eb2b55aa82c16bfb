#pragma once

// Ends a schedule whose thread computes on and on without a step of the explorer, as a loop over a
// std::atomic does: the thread that it waits for never gets its turn.

#include <signal.h>
#include <time.h>

#include <chrono>

namespace sluice::sim::detail {

// While it lives, a timer looks at the scheduler. It counts processor time: a machine under load or
// a process that was stopped does not look like a loop.
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
