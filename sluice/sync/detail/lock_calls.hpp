#pragma once

// Every form of `lock`, written once for the exclusive locks of the library.
//
// A lock derives from `lock_calls<Lock>` and has `lock_op` (see wait.hpp), `try_lock`, `unlock` and
// a `type_name`. It then meets std's TimedLockable, and has the forms with limits and for
// coroutines. The result of `async_lock` owns the lock: std::unique_lock releases it.

#include <chrono>
#include <mutex>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/timed_lock_status.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// An operation that takes a lock; its result is its status.
class lock_op_base {
 public:
  status result(status ended) const noexcept { return ended; }
};

// The operation of a coroutine, whose result owns the lock.
template <class Lock, class Op>
class hold_op : public Op {
 public:
  explicit hold_op(Lock& lock) noexcept : Op(lock, Op::by_coroutine), lock_(&lock) {}

  outcome<std::unique_lock<Lock>> result(status ended) noexcept {
    if (!ended) return ended;
    return std::unique_lock<Lock>(*lock_, std::adopt_lock);
  }
  void taken_by(wait_report::party taker, const call_site& at) const noexcept {
    wait_report::took(
        {.object = lock_, .type = Lock::type_name, .by = taker, .at = at, .awaited = true});
  }

 private:
  Lock* lock_;
};

template <class Lock>
class lock_calls {
 public:
  // Blocks until the lock is held, within the limits. Returns ok, timed_out or stopped.
  status lock(const wait_limits& limits) {
    using op = typename Lock::lock_op;
    const auto ended = block_on(op(self(), op::by_thread, &limits.at), limits);
    if (ended && wait_report::is_on()) [[unlikely]]
      report_taken(limits.at);
    return ended;
  }
  // As std's TimedLockable.
  template <class Rep, class Period>
  timed_lock_status try_lock_for(std::chrono::duration<Rep, Period> wait, call_site at = {}) {
    return lock({wait, {}, at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_until(std::chrono::time_point<Clock, Duration> when,
                                   call_site at = {}) {
    return lock({when, {}, at});
  }

  // co_await returns outcome<std::unique_lock<Lock>>. A coroutine's hold may be released by any
  // thread, because the coroutine may have moved.
  auto async_lock(wait_limits limits = {}) {
    return awaitable<hold_op<Lock, typename Lock::lock_op>>(std::move(limits), self());
  }

 protected:
  // Reports that the calling thread holds the lock. Not inlined, so that its return address is in
  // the locking code, also inside a std::lock_guard.
  enum class by_try : bool { no, yes };
  [[gnu::noinline]] void report_taken(const call_site& at, by_try tried = by_try::no) noexcept {
    wait_report::took({.object = &self(),
                       .type = Lock::type_name,
                       .by = wait_report::party::current(),
                       .at = at.called_from(__builtin_return_address(0)),
                       .waited = tried == by_try::no});
  }

 private:
  Lock& self() noexcept { return static_cast<Lock&>(*this); }
};

}  // namespace sluice::detail
