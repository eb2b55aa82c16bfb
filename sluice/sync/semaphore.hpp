#pragma once

// A count of permits that are taken and given back: at most that many parties are inside at a time.
//
// Use it to bound a resource that has no queue of its own: connections, memory, requests in
// flight. Prefer `mutex` when there is exactly one permit and one owner.
//
// Guarantees: waiters are served in order of arrival, also when they request different amounts: a
// large request is not overtaken by later small ones, so it cannot starve (and while it waits,
// later requests wait behind it). A thread tries for a moment before it joins the list, and only
// in that moment may a later one be faster. `release` synchronizes with the `acquire` it satisfies.
// Any thread may release. Destroying it with waiters inside is a broken contract, as is acquiring 0
// or less, or releasing past the largest count.
// Cancel safety: a wait that timed out or was stopped took no permit.
// Cost: 32 bytes, no allocation; uncontended one exchange and one store.
//
//     semaphore slots(8);
//     slots.acquire();
//     work();
//     slots.release();
//     if (slots.try_acquire_for(100ms, 3)) slots.release(3);
//     (void)co_await slots.async_acquire();

#include <chrono>
#include <cstdint>
#include <limits>
#include <stop_token>

#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/timed_lock_status.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class semaphore {
 public:
  using count_type = std::int64_t;
  static constexpr count_type max() noexcept { return std::numeric_limits<count_type>::max(); }

  explicit semaphore(count_type permits);
  semaphore(count_type permits, named as) : semaphore(permits) {
    wait_report::set_name(this, as.name());
  }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  ~semaphore();

  // Blocks until n permits are taken.
  void acquire(count_type n = 1, call_site at = {}) {
    const status ended = acquire(n, wait_limits(at));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end by a release", at);
  }
  // Blocks until n permits are taken, within the limits. Returns ok, timed_out or stopped.
  status acquire(count_type n, const wait_limits& limits) {
    check_wanted(n, limits.at);
    op now(*this, n);
    const status ended = block_on(now, limits);
    if (ended && wait_report::is_on()) [[unlikely]]
      now.taken_by(wait_report::party::current(), limits.at);
    return ended;
  }
  status acquire(const wait_limits& limits) { return acquire(1, limits); }
  // Takes n permits if they are free and no earlier request waits. Never waits.
  bool try_acquire(count_type n = 1, call_site at = {}) {
    check_wanted(n, at);
    op now(*this, n);
    const bool taken = now.attempt();
    if (taken && wait_report::is_on()) [[unlikely]]
      now.taken_by(wait_report::party::current(), at);
    return taken;
  }
  // As std's semaphores.
  template <class Rep, class Period>
  timed_lock_status try_acquire_for(std::chrono::duration<Rep, Period> wait, count_type n = 1,
                                    call_site at = {}) {
    return acquire(n, {wait, {}, at});
  }
  template <class Clock, class Duration>
  timed_lock_status try_acquire_until(std::chrono::time_point<Clock, Duration> when,
                                      count_type n = 1, call_site at = {}) {
    return acquire(n, {when, {}, at});
  }
  // co_await returns a status.
  auto async_acquire(count_type n = 1, wait_limits limits = {}) {
    check_wanted(n, limits.at);
    return awaitable<awaited_op>(std::move(limits), *this, n);
  }

  void release(count_type n = 1, call_site at = {});

  count_type available() const noexcept { return permits_.load(relaxed); }
  // The number of waiters in the list.
  std::size_t waiting() const noexcept;

 private:
  static constexpr const char* type_name = "sluice::semaphore";

  class op {
   public:
    op(semaphore& s, count_type n) noexcept : semaphore_(s) { node_.wanted = n; }
    bool ready() const noexcept { return semaphore_.permits_.load(relaxed) >= node_.wanted; }
    bool attempt() noexcept;
    enlisted enlist(waiter& waiting) noexcept;
    bool woken() const noexcept { return true; }  // always handed the permits
    void retract() noexcept;
    spin_budget& spin() noexcept { return semaphore_.spin_; }
    status result(status ended) const noexcept { return ended; }
    wait_report::subject wait_subject() const noexcept {
      return {&semaphore_, type_name, "acquire", wait_report::served_by::holders};
    }
    void taken_by(wait_report::party taker, const call_site& at,
                  bool awaited = false) const noexcept;

   private:
    friend class semaphore;
    struct node : wait_node {
      count_type wanted = 0;
    };
    semaphore& semaphore_;
    node node_;
  };

  // Permits taken by a coroutine, which may give them back on another thread.
  class awaited_op : public op {
   public:
    using op::op;
    void taken_by(wait_report::party taker, const call_site& at) const noexcept {
      op::taken_by(taker, at, true);
    }
  };

  void check_wanted(count_type n, call_site at) const noexcept {
    check_object(n > 0, this, type_name, "to acquire at least one permit", at);
  }
  bool take(count_type n) noexcept;        // must hold guard_
  void serve(wake_batch& wakes) noexcept;  // must hold guard_

  mutable spin_lock guard_;
  spin_budget spin_;
  atomic<count_type> permits_;  // changed under guard_; read without it as a guess
  wait_list waiters_;           // protected by guard_
};

}  // namespace sluice
