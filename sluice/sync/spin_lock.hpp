#pragma once

// Guards a few instructions, where putting a thread to sleep would cost a thousand times the
// critical section.
//
// Use it for critical sections that never block, allocate or call user code. Prefer `mutex` for
// everything else. It guards the wait list inside every other primitive of this library.
//
// Guarantees: mutual exclusion; unlock synchronizes with the next lock. Not fair: under contention
// the previous owner is likely to get the lock again, which keeps the guarded data in one core's
// cache and makes the lock fast. Waiting backs off at random, then yields, then naps, so a
// preempted owner always gets the core back. Unlocking a free lock is a broken contract.
// Not recursive. Any thread may unlock (the owner is not recorded).
// Cost: 4 bytes; one atomic exchange to lock, one plain store to unlock (./bench sync).
//
//     const sluice::lock_guard hold(spin);

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/wait_limits.hpp"

namespace sluice {

class spin_lock {
 public:
  spin_lock() = default;
  spin_lock(const spin_lock&) = delete;
  spin_lock& operator=(const spin_lock&) = delete;

  void lock() noexcept {
    if (!try_lock()) lock_slowly();
  }

  bool try_lock() noexcept {
    // acquire: pairs with the release in unlock.
    return word_.exchange(1, acquire) == 0;
  }

  // Within the limits. Returns ok, timed_out or stopped.
  status lock(const wait_limits& limits) noexcept;

  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> wait) noexcept {
    return static_cast<bool>(lock(wait));
  }
  template <class Clock, class Duration>
  bool try_lock_until(std::chrono::time_point<Clock, Duration> when) noexcept {
    return static_cast<bool>(lock(when));
  }

  void unlock(call_site at = {}) noexcept {
    check(word_.load(relaxed) != 0, "sluice::spin_lock", "to be locked when it is unlocked", at);
    word_.store(0, release);  // release: pairs with the acquire in try_lock
  }

 private:
  void lock_slowly() noexcept;

  atomic<std::uint32_t> word_{0};
};

}  // namespace sluice
