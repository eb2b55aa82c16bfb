#pragma once

// Waits until a known number of things have been done, once.
//
// Use it to start several workers at the same moment, or to wait until all have reported. Prefer
// `barrier` for repeated rounds, `event` when one signal is enough.
//
// Guarantees: any thread may call anything; one thread may count down several times. A released
// waiter sees all that happened before each `count_down`. At zero it stays open for ever. The last
// released waiter may destroy the latch at once, even while the last `count_down` is still
// returning: a latch on the stack is safe. Counting below zero, a negative step or count, and
// destruction with waiters inside are broken contracts.
// Where you resume: a coroutine on its executor, else on the thread that counted down to zero.
// Cancel safety: a wait that timed out or was stopped changed nothing. The arrival of an
// `arrive_and_wait` counts, however its wait ends.
// Cost: 32 bytes, no allocation. `count_down` is one compare-and-swap; the last one also takes a
// short lock and wakes all waiters. A wait at zero is one load.
//
//     latch done(workers);
//     for (auto& w : pool) w.start([&] { work(); done.count_down(); });
//     done.wait();
//     if (!done.wait(5s)) complain();
//     (void)co_await done.async_wait();

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/detail/wait_calls.hpp"

namespace sluice {

class latch : public detail::wait_calls<latch> {
 public:
  using count_type = std::ptrdiff_t;
  static constexpr count_type max() noexcept { return std::numeric_limits<count_type>::max(); }

  explicit latch(count_type expected);
  latch(count_type expected, named as) : latch(expected) { wait_report::set_name(this, as.name()); }

  void count_down(count_type n = 1, call_site at = {});

  void arrive_and_wait(count_type n = 1, call_site at = {}) {
    count_down(n, at);
    wait(at);
  }
  // Arrives, then waits within the limits. The arrival counts in any case.
  status arrive_and_wait(const wait_limits& limits, count_type n = 1) {
    count_down(n, limits.at);
    return wait(limits);
  }
  // The arrival counts from the call on, before the result is awaited.
  auto async_arrive_and_wait(wait_limits limits = {}, count_type n = 1) {
    count_down(n, limits.at);
    return async_wait(std::move(limits));
  }

  // The number of missing arrivals; may be outdated when it is read.
  count_type remaining() const noexcept { return missing_.load(relaxed); }

 private:
  friend class detail::wait_calls<latch>;
  static constexpr const char* type_name = "sluice::latch";
  // acquire: pairs with the release in count_down.
  bool is_open() const noexcept { return missing_.load(acquire) == 0; }
  bool lower(count_type n, count_type floor, const call_site& at) noexcept;

  atomic<count_type> missing_;  // becomes 0 under the guard of the list
};

}  // namespace sluice
