#pragma once

// The waiting forms of `lock`, written once for every exclusive lock of the library.
//
// A lock derives from `lock_calls<itself>` and has `lock_op` (see wait.hpp), `try_lock`, `unlock`
// and a `type_name`. It then meets std's TimedLockable, and has the forms with a stop_token and for
// coroutines. The result of `async_lock` owns the lock: std::unique_lock releases it.

#include <chrono>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

// How a timed lock ended: a status that also converts to bool, as std's TimedLockable requires.
class [[nodiscard]] timed_lock_status : public status {
 public:
  constexpr timed_lock_status(status ended) noexcept : status(ended) {}
  constexpr operator bool() const noexcept { return *this == status::ok; }
};

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
  void taken_by(watch::party who, const call_site& at) const noexcept {
    watch::took({.object = lock_, .type = Lock::type_name, .by = who, .at = at, .awaited = true});
  }

 private:
  Lock* lock_;
};

template <class Lock>
class lock_calls {
 public:
  // Until locked or stopped.
  status lock(std::stop_token stop, call_site at = {}) {
    return lock_within({{}, std::move(stop), at});
  }

  template <class Rep, class Period>
  timed_lock_status try_lock_for(std::chrono::duration<Rep, Period> wait, call_site at = {}) {
    return lock_within({deadline::after(wait), {}, at});
  }
  template <class Rep, class Period>
  timed_lock_status try_lock_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop,
                                 call_site at = {}) {
    return lock_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_until(std::chrono::time_point<Clock, Duration> when,
                                   call_site at = {}) {
    return lock_within({deadline::at(when), {}, at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_lock_until(std::chrono::time_point<Clock, Duration> when,
                                   std::stop_token stop, call_site at = {}) {
    return lock_within({deadline::at(when), std::move(stop), at});
  }

  // With both limits at once; also the form for a deadline on another clock.
  status lock_within(const wait_limits& limits) {
    using op = typename Lock::lock_op;
    const auto ended = block_on(op(self(), op::by_thread, &limits.at), limits);
    if (ended && watch::is_on()) [[unlikely]] tell_taken(limits.at);
    return ended;
  }

  // co_await gives outcome<std::unique_lock<Lock>>. A coroutine's hold may be released by any
  // thread, because the coroutine may have moved.
  auto async_lock(wait_limits limits = {}) {
    return awaitable<hold_op<Lock, typename Lock::lock_op>>(std::move(limits), self());
  }

 protected:
  // Tells who watches that the calling thread has the lock. Not inlined, so that the address it
  // returns to is in the code that locks, also when that is inside a std::lock_guard.
  enum class by_try : bool { no, yes };
  [[gnu::noinline]] void tell_taken(const call_site& at, by_try tried = by_try::no) noexcept {
    watch::took({.object = &self(),
                 .type = Lock::type_name,
                 .by = watch::party::current(),
                 .at = at.called_from(__builtin_return_address(0)),
                 .waited = tried == by_try::no});
  }

 private:
  Lock& self() noexcept { return static_cast<Lock&>(*this); }
};

}  // namespace sluice
