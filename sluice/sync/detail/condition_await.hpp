#pragma once

// What `co_await condition.async_wait(lock, predicate)` waits with.
//
// A blocking wait sleeps, takes the lock, asks, and sleeps again; here each of these steps is
// started by the one that ended the step before, and no thread waits in between:
//
//   joined      in the condition's list, the lock released
//     | notified, or a limit came (on the notifier's, the clock's or the stopper's thread)
//   relocking   in the lock's list, unless the lock was free
//     | handed the lock (on the thread that unlocked)
//   asking      on the coroutine's executor, with the lock: the predicate decides
//     | true, or a limit came: resume         | false: joined again
//
// Whoever moves it on touches nothing of it afterwards: the next step may run on another thread
// at once, and may end the coroutine's frame.

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
  static constexpr auto how = watch::held_as::alone;
};
template <class Lock>
struct relock<std::shared_lock<Lock>> {
  using op = typename Lock::lock_shared_op;
  static constexpr auto how = watch::held_as::shared;
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
    if (watch::is_on()) [[unlikely]] who_ = watch::party_of(awaiting);
    return join();
  }

  status await_resume() {
    if (error_) std::rethrow_exception(error_);
    return result_;
  }

 private:
  using mutex_type = typename Hold::mutex_type;
  using relock_op = typename relock<Hold>::op;

  // Both waits of this object; each leads to its own next step.
  struct told_waiter final : waiter {
    explicit told_waiter(condition_await& s) noexcept : waiter(&next, false), self(s) {}
    static void next(waiter& w) noexcept { static_cast<told_waiter&>(w).self.take_lock(); }
    condition_await& self;
  };
  struct lock_waiter final : waiter {
    explicit lock_waiter(condition_await& s) noexcept : waiter(&next, false), self(s) {}
    static void next(waiter& w) noexcept { static_cast<lock_waiter&>(w).self.go_on(); }
    condition_await& self;
  };
  struct end_on_stop {
    told_waiter& who;
    void operator()() const noexcept {
      if (who.end(waiter::state::stopped)) who.wake();
    }
  };

  // With the lock held. True: joined, the lock is released. False: a limit has come, it is held.
  bool join() {
    told_.rearm();
    // Armed anew for every round: one that came while nobody waited has found nothing to end.
    if (limits_.stop.stop_possible()) on_stop_.emplace(limits_.stop, end_on_stop{told_});
    if (!limits_.deadline.is_never()) {
      clock_ = limits_.deadline.on() != nullptr ? limits_.deadline.on() : &real_clock();
      if (!clock_->arm(*this, limits_.deadline.when())) told_.end(waiter::state::timed_out);
    }
    // A local copy: once in the list, only the lock itself may be touched here.
    mutex_ = hold_.release();
    mutex_type* const held = mutex_;
    if (who_) [[unlikely]]
      record(condition_, told_, limits_);
    if (condition_.enlist(place_, told_) == enlisted::waiting) {
      unlock(*held);
      return true;
    }
    recorded_.end();
    disarm();
    hold_ = Hold(*mutex_, std::adopt_lock);
    result_ = to_status(told_.ended_by());
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
    if (!at_once && who_) [[unlikely]] {
      // By whoever notifies, who must pay nothing for it: the lock may be that one's.
      const watch::acting_as notifier(watch::party::this_thread());
      record(*lock_op_, locked_, unlimited_);
    }
    if (at_once || lock_op_->enlist(locked_) == enlisted::finished) go_on();
  }

  // Each step is a wait of its own, as it is for a thread.
  template <class Op>
  void record(const Op& op, const waiter& who, const wait_limits& limits) noexcept {
    recorded_.number = 0;
    recorded_.begin(op, who, limits, who_, sink_);
  }

  void go_on() noexcept {
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
    if (who_) [[unlikely]] tell_taken();
    const auto ended = told_.ended_by();
    condition_.leave(place_);
    try {
      if (!condition_.ask(holds_, ended)) {
        if (ended == waiter::state::claimed && join()) return;
        if (ended != waiter::state::claimed) result_ = to_status(ended);
      }
    } catch (...) {
      disarm();
      error_ = std::current_exception();
    }
    handle_.resume();
  }

  void tell_taken() const noexcept {
    watch::took({.object = mutex_,
                 .type = mutex_type::type_name,
                 .how = relock<Hold>::how,
                 .by = watch::taker_of(who_, sink_),
                 .at = limits_.at,
                 .awaited = true});
  }

  void disarm() noexcept {
    if (clock_ != nullptr) clock_->disarm(*this);
    on_stop_.reset();
  }

  bool claim() noexcept override {
    return told_.end(waiter::state::timed_out);
  }
  void fire() noexcept override {
    told_.wake();
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
  told_waiter told_{*this};
  lock_waiter locked_{*this};
  std::optional<relock_op> lock_op_;
  std::optional<std::stop_callback<end_on_stop>> on_stop_;
  status result_ = status::ok;
  std::exception_ptr error_;
  watch::party who_{};  // known only while somebody watches
  watch::wait_record recorded_;
};

}  // namespace sluice::detail
