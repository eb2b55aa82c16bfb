#pragma once

// Blocks until a predicate over state under a lock is true.
//
// Use it when the predicate covers several members. Prefer `event` for one signal, `semaphore` for
// a count, `bounded_queue` for a hand-over of items.
//
// Guarantees: every wait takes a predicate, which runs with the lock held, so a wake-up can be
// neither spurious nor missed. A wait returns with the lock held, also when the predicate throws.
// Any thread may notify, best while holding the lock. `notify_one` wakes the longest waiter whose
// wait has not ended: a waiter that timed out in the same moment does not swallow the
// notification, nor does one whose predicate throws. `notify_all` notifies the waiters of that
// moment and wakes them one after the other: each wakes the next once it has the lock, so that
// they do not all contend for the lock at once.
// All concurrent waits use the same lock: a std::unique_lock of mutex, fair_mutex or shared_mutex,
// or a std::shared_lock. Waiting without the lock, and destruction before all waits have returned,
// are broken contracts.
// Where you resume: a coroutine runs its predicate and resumes on its executor; no thread blocks
// for it, not even to get the lock back.
// Cancel safety: after the deadline or stop the predicate is checked once more and decides: `ok`
// always means that it is true. Only a stop requested before the call skips the check.
// Cost: 48 bytes, no allocation.
//
//     std::unique_lock hold(m);
//     ready.wait(hold, [&] { return !items.empty(); });
//     if (!ready.wait(hold, [&] { return done; }, {1s, stop})) return;   // timed out or stopped
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
#include "sluice/sync/timed_lock_status.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class condition {
 public:
  condition() = default;
  explicit condition(named as) { wait_report::set_name(this, as.name()); }
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;
  ~condition();

  // Blocks until `holds()` returns true. Returns with the lock held.
  template <class Hold, class Predicate>
  void wait(Hold& lock, Predicate holds, call_site at = {}) {
    const auto ended = wait(lock, std::move(holds), wait_limits(at));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end by a notification", at);
  }
  // Blocks until `holds()` returns true, within the limits. Returns ok, timed_out or stopped.
  template <class Hold, class Predicate>
  status wait(Hold& lock, Predicate holds, const wait_limits& limits);
  // As std's condition variables.
  template <class Hold, class Rep, class Period, class Predicate>
  timed_lock_status wait_for(Hold& lock, std::chrono::duration<Rep, Period> wait_time,
                             Predicate holds, call_site at = {}) {
    return wait(lock, std::move(holds), {wait_time, {}, at});
  }
  template <class Hold, class Clock, class Duration, class Predicate>
  timed_lock_status wait_until(Hold& lock, std::chrono::time_point<Clock, Duration> when,
                               Predicate holds, call_site at = {}) {
    return wait(lock, std::move(holds), {when, {}, at});
  }

  // co_await returns a status, with the lock held. `lock` must outlive the wait.
  template <class Hold, class Predicate>
  auto async_wait(Hold& lock, Predicate holds, wait_limits limits = {}) {
    return detail::condition_await<condition, Hold, Predicate>(*this, lock, std::move(holds),
                                                               std::move(limits));
  }

  void notify_one() noexcept;
  void notify_all() noexcept;

  // The number of waiters that are not notified yet.
  std::size_t waiting() const noexcept;

  // For wait reports.
  wait_report::subject wait_subject() const noexcept { return {this, type_name, "be notified"}; }

 private:
  static constexpr const char* type_name = "sluice::condition";
  template <class, class, class>
  friend class detail::condition_await;

  struct place : wait_node {
    bool wakes_next = false;  // notify_all woke it: with the lock, wake the next of notified_
  };

  // One wait of a thread, from linking to having the lock again.
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
    check_object(owns, this, type_name, "the lock to be held by the caller", at);
  }
  enlisted enlist(place& at, waiter& waiting) noexcept;
  // Called with the user's lock held again: ends this wait, and wakes the next of a notify_all.
  void leave(place& at) noexcept;

  void wake_next(wake_batch& wakes) noexcept;  // must hold guard_

  // Runs the predicate of a wait that was notified. If it throws, the wait ends without using the
  // notification, so the next waiter is notified instead.
  template <class Predicate>
  bool check_predicate(Predicate& holds, waiter::state ended) {
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
  std::uint32_t inside_ = 0;  // protected by guard_: waits without the lock back yet
  bool chain_ = false;        // protected by guard_: a woken waiter will wake the next of notified_
  wait_list waiters_;         // protected by guard_: not notified
  wait_list notified_;        // protected by guard_: claimed by notify_all, not yet woken
};

template <class Hold, class Predicate>
status condition::wait(Hold& lock, Predicate holds, const wait_limits& limits) {
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
    if (check_predicate(holds, ended)) return status::ok;
    if (ended != waiter::state::claimed) return to_status(ended);
  }
}

}  // namespace sluice
