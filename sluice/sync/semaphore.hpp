#pragma once

// Lets at most so many through at a time: a count of permits that are taken and given back.
//
// Use it to bound something that has no queue of its own: connections, memory, requests in
// flight. Prefer `mutex` when there is exactly one permit and one owner.
//
// Guarantees: those who wait stand in line, and are served in that order, also when they ask for
// different amounts: a request for many is not overtaken by later requests for few, so it cannot
// starve (and while it waits, later requests wait behind it). A thread tries for a moment before it
// joins the line, and only in that moment may a later one be faster. `release` synchronizes with
// the `acquire` it satisfies. Any thread may release. Destroying it with waiters inside is a broken
// contract, as is asking for 0 or less, or releasing past the largest count.
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
#include "sluice/sync/wait.hpp"

namespace sluice {

class semaphore {
 public:
  using count_type = std::int64_t;
  static constexpr count_type max() noexcept { return std::numeric_limits<count_type>::max(); }

  explicit semaphore(count_type permits);
  semaphore(count_type permits, named as) : semaphore(permits) { watch::set_name(this, as.name()); }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  ~semaphore();

  void acquire(count_type n = 1, call_site at = {}) {
    const status ended = acquire_within(n, at);
    check(static_cast<bool>(ended), type_name, "an unlimited wait to be served", at);
  }
  status acquire(std::stop_token stop, count_type n = 1, call_site at = {}) {
    return acquire_within(n, {{}, std::move(stop), at});
  }
  bool try_acquire(count_type n = 1, call_site at = {}) {
    check_wanted(n, at);
    op now(*this, n);
    const bool taken = now.attempt();
    if (taken && watch::is_on()) [[unlikely]]
      now.taken_by(watch::party::current(), at);
    return taken;
  }

  template <class Rep, class Period>
  status try_acquire_for(std::chrono::duration<Rep, Period> wait, count_type n = 1,
                         std::stop_token stop = {}, call_site at = {}) {
    return acquire_within(n, {deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  status try_acquire_until(std::chrono::time_point<Clock, Duration> when, count_type n = 1,
                           std::stop_token stop = {}, call_site at = {}) {
    return acquire_within(n, {deadline::at(when), std::move(stop), at});
  }
  status acquire_within(count_type n, const wait_limits& limits) {
    check_wanted(n, limits.at);
    op now(*this, n);
    const status ended = block_on(now, limits);
    if (ended && watch::is_on()) [[unlikely]]
      now.taken_by(watch::party::current(), limits.at);
    return ended;
  }
  // co_await gives a status.
  auto async_acquire(count_type n = 1, wait_limits limits = {}) {
    check_wanted(n, limits.at);
    return awaitable<awaited_op>(std::move(limits), *this, n);
  }

  void release(count_type n = 1, call_site at = {});

  count_type available() const noexcept { return permits_.load(relaxed); }
  // How many wait in the list right now.
  std::size_t waiting() const noexcept;

 private:
  static constexpr const char* type_name = "sluice::semaphore";

  class op {
   public:
    op(semaphore& s, count_type n) noexcept : semaphore_(s) { node_.wanted = n; }
    bool ready() const noexcept { return semaphore_.permits_.load(relaxed) >= node_.wanted; }
    bool attempt() noexcept;
    enlisted enlist(waiter& who) noexcept;
    bool woken() const noexcept { return true; }  // always handed the permits
    void retract() noexcept;
    spin_budget& spin() noexcept { return semaphore_.spin_; }
    status result(status ended) const noexcept { return ended; }
    watch::subject about() const noexcept {
      return {&semaphore_, type_name, "acquire", watch::served_by::holders};
    }
    void taken_by(watch::party who, const call_site& at, bool awaited = false) const noexcept;

   private:
    friend class semaphore;
    struct node : wait_node {
      count_type wanted = 0;
    };
    semaphore& semaphore_;
    node node_;
  };

  // By a coroutine, a part of which may give them back on another thread.
  class awaited_op : public op {
   public:
    using op::op;
    void taken_by(watch::party who, const call_site& at) const noexcept {
      op::taken_by(who, at, true);
    }
  };

  void check_wanted(count_type n, call_site at) const noexcept {
    check_object(n > 0, this, type_name, "to acquire at least one permit", at);
  }
  bool take(count_type n) noexcept;        // guard_ held
  void serve(wake_batch& wakes) noexcept;  // guard_ held

  mutable spin_lock guard_;
  spin_budget spin_;
  atomic<count_type> permits_;  // changed under guard_; read without it as a guess
  wait_list waiters_;           // protected by guard_
};

}  // namespace sluice
