#pragma once

// Holds a group together, round after round: nobody starts the next round before all have ended
// this one.
//
// Use it for work in steps (simulation, iterative solvers). Prefer `latch` when it happens once.
//
// Guarantees: any thread may call anything. When the last of the expected arrivals of a phase has
// come, the completion function runs on that thread, before any waiter is released, and sees all
// that happened before every arrival; the waiters see all its effects. It must not arrive here
// itself. An exception that leaves it is written to standard error. A token stands for the phase of
// its arrival; waiting with it after the end of that phase returns at once, however many phases
// have passed since. `arrive_and_drop` arrives and leaves the group for all later phases. More
// arrivals than expected, negative counts and destruction with waiters inside are broken contracts.
// The last released waiter may destroy the barrier at once.
// Where you resume: a coroutine on its executor, else on the thread that arrived last.
// Cancel safety: an arrival counts for good. A wait that timed out or was stopped only ends the
// waiting: the phase completes without it, and its token can be waited with again.
// Cost: one short lock to arrive, one load to wait when it is over. Allocates only what the
// std::function needs.
//
//     barrier step(4, [] { swap(now, next); });
//     for (int i = 0; i < rounds; ++i) { compute(part); step.arrive_and_wait(); }
//     auto token = step.arrive();  ...  if (!step.try_wait_for(token, 1s)) complain();
//     co_await step.async_arrive_and_wait();

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class barrier {
 public:
  using count_type = std::ptrdiff_t;
  static constexpr count_type max() noexcept { return std::numeric_limits<count_type>::max(); }

  class [[nodiscard]] arrival_token {
    friend class barrier;
    explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
    std::uint64_t phase_;
  };

  explicit barrier(count_type expected, std::function<void()> completion = {});
  barrier(count_type expected, named as, std::function<void()> completion = {})
      : barrier(expected, std::move(completion)) {
    watch::set_name(this, as.name());
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier();

  arrival_token arrive(count_type n = 1) { return add(n, 0); }
  void arrive_and_drop() { (void)add(1, 1); }

  void wait(const arrival_token& token, call_site at = {}) { must(wait_within(token, at)); }
  status wait(const arrival_token& token, std::stop_token stop, call_site at = {}) {
    return wait_within(token, {{}, std::move(stop), at});
  }
  bool try_wait(const arrival_token& token) const noexcept { return is_over(token.phase_); }
  template <class Rep, class Period>
  status try_wait_for(const arrival_token& token, std::chrono::duration<Rep, Period> d,
                      std::stop_token stop = {}, call_site at = {}) {
    return wait_within(token, {deadline::after(d), std::move(stop), at});
  }
  template <class Clock, class Duration>
  status try_wait_until(const arrival_token& token, std::chrono::time_point<Clock, Duration> t,
                        std::stop_token stop = {}, call_site at = {}) {
    return wait_within(token, {deadline::at(t), std::move(stop), at});
  }
  status wait_within(const arrival_token& token, const wait_limits& limits) {
    return block_on(op(*this, token.phase_), limits);
  }
  // co_await gives a status.
  auto async_wait(const arrival_token& token, wait_limits limits = {}) {
    return awaitable<op>(std::move(limits), *this, token.phase_);
  }

  void arrive_and_wait(call_site at = {}) { wait(arrive(), at); }
  status arrive_and_wait(std::stop_token stop, call_site at = {}) {
    return wait(arrive(), std::move(stop), at);
  }
  status arrive_and_wait_within(const wait_limits& limits) { return wait_within(arrive(), limits); }
  // The arrival counts from the call on, before it is awaited.
  auto async_arrive_and_wait(wait_limits limits = {}) {
    return async_wait(arrive(), std::move(limits));
  }

  // How many wait in the list right now.
  std::size_t waiting() const noexcept;

 private:
  class op {
   public:
    op(barrier& b, std::uint64_t phase) noexcept : barrier_(b), phase_(phase) {}
    bool ready() const noexcept { return barrier_.is_over(phase_); }
    bool attempt() noexcept { return ready(); }
    enlisted enlist(waiter& who) noexcept;
    bool woken() const noexcept { return true; }
    void retract() noexcept;
    spin_budget& spin() noexcept { return barrier_.spin_; }
    status result(status ended) const noexcept { return ended; }
    watch::subject about() const noexcept { return {&barrier_, "sluice::barrier", "wait"}; }

   private:
    barrier& barrier_;
    const std::uint64_t phase_;
    wait_node node_;
  };

  static void must(status ended) noexcept {
    check(static_cast<bool>(ended), "sluice::barrier", "an unlimited wait to be let through");
  }
  // acquire: pairs with the release in complete.
  bool is_over(std::uint64_t phase) const noexcept { return phase_.load(acquire) != phase; }
  arrival_token add(count_type n, count_type leaving);
  void complete() noexcept;

  const std::function<void()> completion_;
  mutable spin_lock guard_;
  spin_budget spin_;
  count_type expected_;             // protected by guard_: arrivals of the next phase
  count_type missing_;              // protected by guard_: 0 while the completion runs
  atomic<std::uint64_t> phase_{0};  // changed under guard_
  wait_list waiters_;               // protected by guard_: all of the current phase
};

}  // namespace sluice
