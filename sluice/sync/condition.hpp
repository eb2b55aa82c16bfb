#pragma once

// Sleeps until something that a lock protects has become true.
//
// Use it when what is waited for is a predicate over several members. Prefer `event` for one
// signal, `semaphore` for a count, `bounded_queue` for a hand-over of items.
//
// Guarantees: every wait takes a predicate, which runs with the lock held, so a wake-up can be
// neither spurious nor missed. A wait returns with the lock held, also when the predicate throws.
// Any thread may notify, best while holding the lock. `notify_one` wakes the one that waits
// longest among those whose wait has not ended: one that timed out in the same moment does not
// swallow it, nor does one whose predicate throws. `notify_all` notifies those that wait at that
// moment, and wakes them one after the other: each wakes the next once it has the lock, so that
// they do not all rush at a lock that only one of them can get.
// All who wait at the same time use the same lock: a std::unique_lock of mutex, fair_mutex or
// shared_mutex, or a std::shared_lock. Waiting without the lock, and destruction while somebody
// has not returned from a wait, are broken contracts.
// Where you resume: a coroutine runs its predicate and resumes on its executor; no thread blocks
// for it, not even to get the lock back.
// Cancel safety: after the deadline or stop the predicate is asked once more and has the last
// word: `ok` always means that it is true. Only a stop requested before the call is not asked.
// Cost: 48 bytes, no allocation.
//
//     std::unique_lock hold(m);
//     ready.wait(hold, [&] { return !items.empty(); });
//     if (!ready.wait_for(hold, 1s, [&] { return done; }, stop)) return;   // timed out or stopped
//     { const sluice::lock_guard change(m); done = true; ready.notify_all(); }

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/detail/condition_await.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class condition {
 public:
  condition() = default;
  explicit condition(named as) { watch::set_name(this, as.name()); }
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;
  ~condition();

  template <class Hold, class Predicate>
  void wait(Hold& lock, Predicate holds, call_site at = {}) {
    const auto ended = wait_within(lock, at, std::move(holds));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to be notified", at);
  }
  template <class Hold, class Predicate>
  status wait(Hold& lock, std::stop_token stop, Predicate holds, call_site at = {}) {
    return wait_within(lock, {{}, std::move(stop), at}, std::move(holds));
  }
  template <class Hold, class Rep, class Period, class Predicate>
  status wait_for(Hold& lock, std::chrono::duration<Rep, Period> d, Predicate holds,
                  std::stop_token stop = {}, call_site at = {}) {
    return wait_within(lock, {deadline::after(d), std::move(stop), at}, std::move(holds));
  }
  template <class Hold, class Clock, class Duration, class Predicate>
  status wait_until(Hold& lock, std::chrono::time_point<Clock, Duration> t, Predicate holds,
                    std::stop_token stop = {}, call_site at = {}) {
    return wait_within(lock, {deadline::at(t), std::move(stop), at}, std::move(holds));
  }
  // With both limits at once; also the form for a deadline on another clock.
  template <class Hold, class Predicate>
  status wait_within(Hold& lock, const wait_limits& limits, Predicate holds);

  // co_await gives a status, with the lock held. `lock` must outlive the wait.
  template <class Hold, class Predicate>
  auto async_wait(Hold& lock, Predicate holds, wait_limits limits = {}) {
    return detail::condition_await<condition, Hold, Predicate>(*this, lock, std::move(holds),
                                                               std::move(limits));
  }

  void notify_one() noexcept;
  void notify_all() noexcept;

  // How many wait to be notified right now.
  std::size_t waiting() const noexcept;

  // For whoever watches.
  watch::subject about() const noexcept { return {this, type_name, "be notified"}; }

 private:
  static constexpr const char* type_name = "sluice::condition";
  template <class, class, class>
  friend class detail::condition_await;

  struct place : wait_node {
    bool wakes_next = false;  // it was woken by notify_all, and so are those in notified_
  };

  // One wait of a thread, from joining the list to having the lock again.
  class sleeper {
   public:
    explicit sleeper(condition& c) noexcept : condition_(c) {}
    void enlist() noexcept;
    waiter::state sleep(const wait_limits& limits) noexcept;
    void leave() noexcept { condition_.leave(place_); }

   private:
    condition& condition_;
    thread_waiter self_;
    place place_;
  };

  void check_owned(bool owns, call_site at) const noexcept {
    check_object(owns, this, type_name, "the lock to be held by whoever waits", at);
  }
  enlisted enlist(place& at, waiter& who) noexcept;
  // With the user's lock held again: ends this wait's stay, and wakes the next of a notify_all.
  void leave(place& at) noexcept;

  void wake_next(wake_batch& wakes) noexcept;  // guard_ held

  // Asks the predicate of a wait that was notified. When it throws, the wait ends without having
  // looked at what it was told, so the next one is told instead.
  template <class Predicate>
  bool ask(Predicate& holds, waiter::state ended) {
    if (ended != waiter::state::claimed) return holds();
    try {
      return holds();
    } catch (...) {
      notify_one();
      throw;
    }
  }

  mutable spin_lock guard_;
  spin_budget spin_;
  std::uint32_t inside_ = 0;  // protected by guard_: waits that have not got the lock back yet
  bool chain_ = false;        // protected by guard_: somebody is going to wake from notified_
  wait_list waiters_;         // protected by guard_: not notified
  wait_list notified_;        // protected by guard_: claimed by notify_all, not yet woken
};

template <class Hold, class Predicate>
status condition::wait_within(Hold& lock, const wait_limits& limits, Predicate holds) {
  check_owned(lock.owns_lock(), limits.at);
  if (limits.stop.stop_requested()) return status::stopped;
  if (holds()) return status::ok;
  for (;;) {
    if (limits.deadline.passed()) return status::timed_out;
    sleeper me(*this);
    me.enlist();
    lock.unlock();
    const auto ended = me.sleep(limits);
    lock.lock();
    me.leave();
    if (ask(holds, ended)) return status::ok;
    if (ended != waiter::state::claimed) return to_status(ended);
  }
}

}  // namespace sluice
