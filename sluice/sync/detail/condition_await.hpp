#pragma once

// The awaitable of `co_await condition.async_wait(lock, predicate)`.
//
// A blocking wait sleeps, takes the lock, checks, and sleeps again; here each of these steps is
// started by the party that ended the step before, and no thread waits in between:
//
//   joined      in the condition's list, the lock released
//     | notified, or ended by a limit (on the notifier's, the clock's or the stopper's thread)
//   relocking   in the lock's list, unless the lock was free
//     | handed the lock (on the thread that unlocked)
//   checking    on the coroutine's executor, with the lock: the predicate decides
//     | true, or ended by a limit: resume     | false: joined again
//
// A party that starts the next step accesses no member afterwards: that step may run on another
// thread at once, and may destroy the coroutine's frame.

#include <coroutine>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// The operation that takes the lock again for a hold of this kind.
template <class Hold>
struct relock;
template <class Lock>
struct relock<std::unique_lock<Lock>> {
  using op = typename Lock::lock_op;
  static constexpr auto mode = wait_report::held_as::alone;
};
template <class Lock>
struct relock<std::shared_lock<Lock>> {
  using op = typename Lock::lock_shared_op;
  static constexpr auto mode = wait_report::held_as::shared;
};

template <class Condition, class Hold, class Predicate>
class [[nodiscard("co_await it")]] condition_await final : private work, private timer {
 public:
  condition_await(Condition & c, Hold & hold, Predicate holds, wait_limits limits)
      : condition_(c), hold_(hold), holds_(std::move(holds)), limits_(std::move(limits)) {}

  bool await_ready() {
    condition_.check_owned(hold_.owns_lock(), limits_.at);
    if (limits_.stop.stop_requested()) {
      result_ = status::stopped;
    } else if (!holds_()) {
      if (!limits_.deadline.passed()) return false;
      result_ = status::timed_out;
    }
    return true;
  }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    handle_ = awaiting;
    if constexpr (requires { awaiting.promise().resume_sink(); }) {
      sink_ = awaiting.promise().resume_sink();
    }
    if (wait_report::is_on()) [[unlikely]] party_ = wait_report::party_of(awaiting);
    return join();
  }

  status await_resume() {
    if (error_) std::rethrow_exception(error_);
    return result_;
  }

 private:
  using mutex_type = typename Hold::mutex_type;
  using relock_op = typename relock<Hold>::op;

  // The two waits of this object; each starts its own next step.
  struct notify_waiter final : waiter {
    explicit notify_waiter(condition_await& s) noexcept : waiter(&next, false), self(s) {}
    static void next(waiter& w) noexcept { static_cast<notify_waiter&>(w).self.take_lock(); }
    condition_await& self;
  };
  struct lock_waiter final : waiter {
    explicit lock_waiter(condition_await& s) noexcept : waiter(&next, false), self(s) {}
    static void next(waiter& w) noexcept { static_cast<lock_waiter&>(w).self.schedule_check(); }
    condition_await& self;
  };
  struct end_on_stop {
    notify_waiter& self;
    void operator()() const noexcept {
      if (self.end(waiter::state::stopped)) self.wake();
    }
  };

  // Called with the lock held. Returns true if joined: the lock is released. Returns false if a
  // limit has ended the wait: the lock is held.
  bool join() {
    notified_.rearm();
    // Armed for every round: a limit reached outside a wait has found no wait to end.
    if (limits_.stop.stop_possible()) on_stop_.emplace(limits_.stop, end_on_stop{notified_});
    if (!limits_.deadline.is_never()) {
      clock_ = limits_.deadline.on() != nullptr ? limits_.deadline.on() : &real_clock();
      if (!clock_->arm(*this, limits_.deadline.when())) notified_.end(waiter::state::timed_out);
    }
    // A local copy: once linked, only the lock itself may be accessed here.
    mutex_ = hold_.release();
    mutex_type* const held = mutex_;
    if (party_) [[unlikely]]
      record(condition_, notified_, limits_);
    if (condition_.enlist(place_, notified_) == enlisted::waiting) {
      unlock(*held);
      return true;
    }
    recorded_.end();
    disarm();
    hold_ = Hold(*mutex_, std::adopt_lock);
    result_ = to_status(notified_.ended_by());
    return false;
  }

  static void unlock(mutex_type & held) noexcept {
    Hold(held, std::adopt_lock).unlock();
  }

  void take_lock() noexcept {
    lock_op_.emplace(*mutex_, relock_op::by_coroutine);
    locked_.rearm();
    recorded_.end();
    const bool at_once = lock_op_->attempt();
    if (!at_once && party_) [[unlikely]] {
      // On the notifier's thread, which must not pay its debts here: it may hold the lock itself.
      const wait_report::acting_as notifier(wait_report::party::this_thread());
      record(*lock_op_, locked_, unlimited_);
    }
    if (at_once || lock_op_->enlist(locked_) == enlisted::finished) schedule_check();
  }

  // Each step is reported as a wait of its own, as it is for a thread.
  template <class Op>
  void record(const Op& op, const waiter& waiting, const wait_limits& limits) noexcept {
    recorded_.number = 0;
    recorded_.begin(op, waiting, limits, party_, sink_);
  }

  void schedule_check() noexcept {
    if (sink_ != nullptr) {
      sink_->post(*this);
    } else {
      run_here(*this);
    }
  }

  void run() noexcept override {
    disarm();
    recorded_.end();
    lock_op_.reset();
    hold_ = Hold(*mutex_, std::adopt_lock);
    if (party_) [[unlikely]] report_taken();
    const auto ended = notified_.ended_by();
    condition_.leave(place_);
    try {
      if (!condition_.check_predicate(holds_, ended)) {
        if (ended == waiter::state::claimed && join()) return;
        if (ended != waiter::state::claimed) result_ = to_status(ended);
      }
    } catch (...) {
      disarm();
      error_ = std::current_exception();
    }
    handle_.resume();
  }

  void report_taken() const noexcept {
    wait_report::took({.object = mutex_,
                 .type = mutex_type::type_name,
                 .mode = relock<Hold>::mode,
                 .by = wait_report::taker_of(party_, sink_),
                 .at = limits_.at,
                 .awaited = true});
  }

  void disarm() noexcept {
    if (clock_ != nullptr) clock_->disarm(*this);
    on_stop_.reset();
  }

  bool claim() noexcept override {
    return notified_.end(waiter::state::timed_out);
  }
  void fire() noexcept override {
    notified_.wake();
  }

  Condition& condition_;
  Hold& hold_;
  Predicate holds_;
  const wait_limits limits_;
  const wait_limits unlimited_{limits_.at};  // to get the lock back
  std::coroutine_handle<> handle_;
  work_sink* sink_ = nullptr;
  clock* clock_ = nullptr;
  mutex_type* mutex_ = nullptr;
  typename Condition::place place_;
  notify_waiter notified_{*this};
  lock_waiter locked_{*this};
  std::optional<relock_op> lock_op_;
  std::optional<std::stop_callback<end_on_stop>> on_stop_;
  status result_ = status::ok;
  std::exception_ptr error_;
  wait_report::party party_{};  // set only while an observer is installed
  wait_report::wait_record recorded_;
};

}  // namespace sluice::detail
