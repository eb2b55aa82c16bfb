#pragma once

// Signals to any number of parties that something has happened. A signal sent before the wait is
// not lost.
//
// Use it for "started", "configuration is there", "shutting down". Prefer `latch` when several
// parties have to report, `condition` for a predicate over state under a lock.
//
// Guarantees: any thread may call anything. `set` stays until `reset`; it wakes all waiters, each
// exactly once, and they are released even if `reset` is called before they run. A released waiter
// sees all that happened before `set`. Calling `set` again is harmless. The last released waiter
// may destroy the event at once, even while `set` is still returning; destroying it with waiters
// inside is a broken contract.
// Where you resume: a coroutine on its executor, else on the thread that called `set`.
// Cancel safety: a wait that timed out or was stopped changed nothing.
// Cost: 32 bytes, no allocation. `is_set` and a wait on a set event are one load; `set` is one
// exchange and two stores without waiters, else one wake a waiter.
//
//     event ready;
//     std::jthread worker([&] { prepare(); ready.set(); });
//     ready.wait();                                         // at once if it is set already
//     if (!ready.wait({1s, stop})) complain();
//     (void)co_await ready.async_wait();

#include <cstdint>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/detail/wait_calls.hpp"

namespace sluice {

class event : public detail::wait_calls<event> {
 public:
  event() = default;
  explicit event(named as) : wait_calls(as) {}

  void set();
  void reset() noexcept;
  // acquire: pairs with the release in set.
  bool is_set() const noexcept { return set_.load(acquire) != 0; }

 private:
  friend class detail::wait_calls<event>;
  static constexpr const char* type_name = "sluice::event";
  bool is_open() const noexcept { return is_set(); }

  atomic<std::uint32_t> set_{0};  // 1 set; becomes 1 under the guard of the list
};

}  // namespace sluice
