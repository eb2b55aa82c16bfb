#pragma once

// Keeps a group in step, round after round: no member starts the next round before all have ended
// this one.
//
// Use it for work in steps (simulation, iterative solvers). Prefer `latch` when it happens once.
//
// Guarantees: any thread may call anything. At the last expected arrival of a phase, the completion
// function runs on the arriving thread, before any waiter is released. It sees all that happened
// before every arrival; the waiters see all its effects. It must not arrive at this barrier. An
// exception that leaves it is written to standard error. A token belongs to the phase of its
// arrival; waiting with it after the end of that phase returns at once, however many phases
// have passed since. `arrive_and_drop` arrives and leaves the group for all later phases. More
// arrivals than expected, negative counts and destruction with waiters inside are broken contracts.
// The last released waiter may destroy the barrier at once.
// Where you resume: a coroutine on its executor, else on the thread that arrived last.
// Cancel safety: an arrival counts for good. A timeout or stop only ends the waiting: the phase
// completes without this waiter, and its token can be waited with again.
// Cost: one short lock to arrive, one load to wait for a phase that is complete. Allocates only
// what the std::function needs.
//
//     barrier step(4, [] { swap(now, next); });
//     for (int i = 0; i < rounds; ++i) { compute(part); step.arrive_and_wait(); }
//     auto token = step.arrive();
//     if (!step.wait(token, 1s)) complain();
//     (void)co_await step.async_arrive_and_wait();

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
    wait_report::set_name(this, as.name());
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier();

  arrival_token arrive(count_type n = 1, call_site at = {}) { return add(n, 0, at); }
  void arrive_and_drop(call_site at = {}) { (void)add(1, 1, at); }

  // Blocks until the token's phase is complete.
  void wait(const arrival_token& token, call_site at = {}) {
    const status ended = wait(token, wait_limits(at));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end by the phase", at);
  }
  // Blocks until the token's phase is complete, within the limits. Returns ok, timed_out or
  // stopped.
  status wait(const arrival_token& token, const wait_limits& limits) {
    return block_on(op(*this, token.phase_), limits);
  }
  bool try_wait(const arrival_token& token) const noexcept { return is_complete(token.phase_); }
  // co_await returns a status.
  auto async_wait(const arrival_token& token, wait_limits limits = {}) {
    return awaitable<op>(std::move(limits), *this, token.phase_);
  }

  void arrive_and_wait(call_site at = {}) { wait(arrive(1, at), at); }
  // Arrives, then waits within the limits. The arrival counts in any case.
  status arrive_and_wait(const wait_limits& limits) { return wait(arrive(1, limits.at), limits); }
  // The arrival counts from the call on, before the result is awaited.
  auto async_arrive_and_wait(wait_limits limits = {}) {
    const arrival_token here = arrive(1, limits.at);
    return async_wait(here, std::move(limits));
  }

  // The number of waiters in the list.
  std::size_t waiting() const noexcept;

 private:
  static constexpr const char* type_name = "sluice::barrier";

  class op {
   public:
    op(barrier& b, std::uint64_t phase) noexcept : barrier_(b), phase_(phase) {}
    bool ready() const noexcept { return barrier_.is_complete(phase_); }
    bool attempt() noexcept { return ready(); }
    enlisted enlist(waiter& waiting) noexcept;
    bool woken() const noexcept { return true; }
    void retract() noexcept;
    spin_budget& spin() noexcept { return barrier_.spin_; }
    status result(status ended) const noexcept { return ended; }
    wait_report::subject wait_subject() const noexcept { return {&barrier_, type_name, "wait"}; }

   private:
    barrier& barrier_;
    const std::uint64_t phase_;
    wait_node node_;
  };

  // acquire: pairs with the release in complete.
  bool is_complete(std::uint64_t phase) const noexcept { return phase_.load(acquire) != phase; }
  arrival_token add(count_type n, count_type leaving, const call_site& at);
  void complete() noexcept;

  const std::function<void()> completion_;
  mutable spin_lock guard_;
  spin_budget spin_;
  count_type expected_;             // protected by guard_: arrivals of the next phase
  count_type missing_;              // protected by guard_: 0 while the completion function runs
  atomic<std::uint64_t> phase_{0};  // changed under guard_
  wait_list waiters_;               // protected by guard_: all of the current phase
};

}  // namespace sluice
