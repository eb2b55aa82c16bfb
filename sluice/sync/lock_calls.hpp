#pragma once

// The waiting forms of `lock`, written once for every exclusive lock of the library.
//
// A lock derives from `lock_calls<itself>` and has `lock_op` (see wait.hpp), `try_lock` and
// `unlock`. It then meets std's TimedLockable, and has the forms with a stop_token and for
// coroutines. The result of `async_lock` owns the lock: std::unique_lock releases it.

#include <chrono>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

// An operation that takes a lock: it has no result but how it ended.
class lock_op_base {
 public:
  status result(status ended) const noexcept { return ended; }
};

// The same for a coroutine, whose result is the hold itself.
template <class Lock, class Op>
class hold_op : public Op {
 public:
  explicit hold_op(Lock& lock) noexcept : Op(lock, Op::by_coroutine), lock_(&lock) {}

  outcome<std::unique_lock<Lock>> result(status ended) noexcept {
    if (!ended) return ended;
    return std::unique_lock<Lock>(*lock_, std::adopt_lock);
  }

 private:
  Lock* lock_;
};

template <class Lock>
class lock_calls {
 public:
  // Until locked or stopped.
  status lock(std::stop_token stop) { return lock_within({{}, std::move(stop)}); }

  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
    return static_cast<bool>(lock_within({deadline::after(wait), {}}));
  }
  template <class Rep, class Period>
  status try_lock_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop) {
    return lock_within({deadline::after(wait), std::move(stop)});
  }
  template <class Clock, class Duration>
  bool try_lock_until(std::chrono::time_point<Clock, Duration> when) {
    return static_cast<bool>(lock_within({deadline::at(when), {}}));
  }
  template <class Clock, class Duration>
  status try_lock_until(std::chrono::time_point<Clock, Duration> when, std::stop_token stop) {
    return lock_within({deadline::at(when), std::move(stop)});
  }

  // With both limits at once; also the form for a deadline on another clock.
  status lock_within(const wait_limits& limits) {
    return block_on(typename Lock::lock_op(self()), limits);
  }

  // co_await gives outcome<std::unique_lock<Lock>>. A coroutine's hold may be released by any
  // thread, because the coroutine may have moved.
  auto async_lock(wait_limits limits = {}) {
    return awaitable<hold_op<Lock, typename Lock::lock_op>>(std::move(limits), self());
  }

 private:
  Lock& self() noexcept { return static_cast<Lock&>(*this); }
};

}  // namespace sluice
