#pragma once

// Turns one description of a wait into the blocking call and the awaitable, both with deadline
// and stop_token: what every waiting call of the library is made of.
//
// A primitive describes a wait as an operation `Op`, which lives in the caller's frame:
//
//   bool ready() const     cheap guess, without a lock, whether `attempt` could succeed now
//   bool attempt()         tries to finish without waiting; true when finished
//   enlisted enlist(waiter&)   under the primitive's lock: tries once more, else `join`s
//   bool woken()           after a claim: true when finished (it was handed what it wanted), false
//                          when it was only told to try again and that failed (threads only)
//   void retract()         after the deadline or stop: takes the node(s) out under the lock if they
//                          are in, and passes on what its leaving makes possible for others
//   bool spins_linked() const   optional: true when the other side can serve only those who are in
//                          the list, so that spinning must happen there and not before
//   spin_budget& spin()    the primitive's memory of whether spinning paid
//   bool take_late(const deadline&)   optional: after the deadline and `retract`; true when it has
//                          taken an item that was due by then
//   R result(status)       what the call returns, given how the wait ended: ok, timed_out, stopped
//   watch::subject about() const   optional: what it waits for, for whoever watches (watch.hpp)
//   void taken_by(watch::party, call_site)   optional: a coroutine has got it
//
// An operation finishes also when it can never succeed (closed): `result(ok)` then tells it.
//
// Guarantees: a stop that was already requested wins over readiness: nothing is taken. A deadline
// that has already passed still allows one try. An awaitable without a token of its own listens to
// the awaiting promise's `stop_token()`, if it has one. An awaiting coroutine is resumed on its
// promise's `resume_sink()`, else on the thread that ended the wait; it must not be destroyed while
// it is suspended here. Idle costs no CPU: a thread spins for the budget, yields, then parks.

#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice {

// Remembers, per primitive, whether spinning before parking was worth it lately.
class spin_budget {
 public:
  std::uint32_t pauses() const noexcept { return pauses_.load(relaxed); }
  void paid() noexcept { adjust(+1); }
  void wasted() noexcept { adjust(-1); }

  static constexpr std::uint32_t most = 400;
  static constexpr std::uint32_t least = 24;

 private:
  void adjust(int direction) noexcept {
    // A lost update only delays the adaptation: relaxed, and no read-modify-write.
    const auto now = pauses_.load(relaxed);
    const auto next = direction > 0 ? now + (most - now) / 8 + 1 : now - (now - least) / 8;
    if (next != now) pauses_.store(next < most ? next : most, relaxed);
  }

  atomic<std::uint32_t> pauses_{most / 2};
};

// Spins, then lets others run, while `ready()` is false. False: not ready, it is time to park.
template <class Ready>
bool spin_until(spin_budget& budget, const wait_limits& limits, Ready&& ready) {
  if (seam::can_spin()) {
    for (auto left = budget.pauses(); left > 0; --left) {
      if (ready()) {
        budget.paid();
        return true;
      }
      seam::pause();
    }
    budget.wasted();
  }
  // On a busy machine the other side may be waiting for this very core: a yield costs a fraction
  // of a futex round trip, and returns at once when nobody else wants to run.
  for (int left = seam::yields_before_sleep; left > 0; --left) {
    seam::yield();
    if (ready()) return true;
    if (limits.deadline.passed() || limits.stop.stop_requested()) return false;
  }
  return false;
}

inline status to_status(waiter::state ended) noexcept {
  switch (ended) {
    case waiter::state::timed_out: return status::timed_out;
    case waiter::state::stopped: return status::stopped;
    case waiter::state::claimed: return status::ok;
    case waiter::state::arming:
    case waiter::state::waiting: break;
  }
  contract_broken("sluice::waiter", nullptr, "a wait that has ended",
                  std::source_location::current());
}

// The slow half of a blocking call, for an operation whose first attempt has failed.
template <class Op>
status wait_blocking(Op& op, const wait_limits& limits) {
  thread_waiter self;
  bool spin_linked = false;
  if constexpr (requires { op.spins_linked(); }) spin_linked = op.spins_linked();
  const std::uint32_t linked_spin = spin_linked && seam::can_spin() ? spin_budget::most : 0;
  bool stood_in_line = false;  // then others may have to be told that it leaves
  watch::wait_record told;
  const auto give_up = [&](status why) -> status {
    if (stood_in_line) op.retract();
    if constexpr (requires { op.take_late(limits.deadline); }) {
      if (why == status::timed_out && op.take_late(limits.deadline)) return status::ok;
    }
    return why;
  };
  for (;;) {
    if (limits.deadline.passed()) return give_up(status::timed_out);
    if (!spin_linked && spin_until(op.spin(), limits, [&] { return op.ready(); }) && op.attempt()) {
      return status::ok;
    }
    if (limits.stop.stop_requested()) return give_up(status::stopped);
    self.rearm();
    const auto joined = op.enlist(self);
    if (joined == enlisted::finished) return status::ok;
    check(joined == enlisted::waiting, "sluice::wait", "no limit to be armed before the list");
    stood_in_line = true;
    if (!self.spin(linked_spin) && watch::is_on()) [[unlikely]] {
      told.begin(op, self, limits, watch::party::current());
    }
    const auto ended = self.park(limits);
    told.end();  // while the operation still stands where it waited
    if (ended != waiter::state::claimed) return give_up(to_status(ended));
    if (op.woken()) return status::ok;
  }
}

// A whole blocking call.
template <class Op>
decltype(auto) block_on(Op&& op) {
  if (op.attempt()) return op.result(status::ok);
  return op.result(wait_blocking(op, {}));
}
template <class Op>
decltype(auto) block_on(Op&& op, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return op.result(status::stopped);
  if (op.attempt()) return op.result(status::ok);
  return op.result(wait_blocking(op, limits));
}

// The awaitable for an operation. Made by `async_x` calls and awaited at once; not movable.
template <class Op>
class [[nodiscard("co_await it")]] awaitable final : private waiter, private work, private timer {
 public:
  template <class... Args>
  explicit awaitable(wait_limits limits, Args&&... args)
      : waiter(&resume, false), op_(std::forward<Args>(args)...), limits_(std::move(limits)) {}

  ~awaitable() {
    if (clock_ != nullptr) clock_->disarm(*this);
  }

  // Before it is awaited: another token for a wait that was given none of its own.
  void inherit(const std::stop_token& stop) noexcept {
    if (!limits_.stop.stop_possible()) limits_.stop = stop;
  }
  // Before it is awaited: not to be ended by the token of whoever awaits. For waits that must not
  // end early, such as one for the end of what was started.
  void keep_own_limits() noexcept { inherits_ = false; }

  // Nothing is tried before the awaiting coroutine is known: it may have been asked to stop.
  bool await_ready() const noexcept { return false; }

  // False: it need not wait.
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    if (watch::is_on()) [[unlikely]] return suspend_watched(awaiting);
    return suspend(awaiting);
  }

  decltype(auto) await_resume() {
    told_.end();
    if (clock_ != nullptr) clock_->disarm(*this);
    on_stop_.reset();
    if (!suspended_) return result(early_);
    const auto ended = ended_by();
    if (ended != waiter::state::claimed) {
      op_.retract();
      if constexpr (requires { op_.take_late(limits_.deadline); }) {
        if (ended == waiter::state::timed_out && op_.take_late(limits_.deadline)) {
          return result(status::ok);
        }
      }
      return op_.result(to_status(ended));
    }
    const bool finished = op_.woken();
    check(finished, "sluice::awaitable", "a claimed coroutine to have been served");
    return result(status::ok);
  }

 private:
  decltype(auto) result(status ended) {
    if constexpr (requires { op_.taken_by(who_, limits_.at); }) {
      if (ended && who_) [[unlikely]]
        op_.taken_by(watch::taker_of(who_, sink_), limits_.at);
    }
    return op_.result(ended);
  }

  template <class Promise>
  [[gnu::noinline]] bool suspend_watched(std::coroutine_handle<Promise> awaiting) {
    who_ = watch::party_of(awaiting);
    if constexpr (requires { awaiting.promise().resume_sink(); }) {
      sink_ = awaiting.promise().resume_sink();
    }
    const watch::acting_as them(watch::taker_of(who_, sink_));
    return suspend(awaiting);
  }

  template <class Promise>
  bool suspend(std::coroutine_handle<Promise> awaiting) {
    if constexpr (requires { awaiting.promise().stop_token(); }) {
      const std::stop_token& inherited = awaiting.promise().stop_token();
      if (inherits_ && !limits_.stop.stop_possible() && inherited.stop_possible()) {
        if (is_over(inherited)) return false;
        limits_.stop = inherited;  // counts a reference: only for a wait that waits
      } else if (is_over(limits_.stop)) {
        return false;
      }
    } else if (is_over(limits_.stop)) {
      return false;
    }
    handle_ = awaiting;
    if constexpr (requires { awaiting.promise().resume_sink(); }) {
      sink_ = awaiting.promise().resume_sink();
    }
    // Armed before linking: once linked, this frame may be resumed and gone at any moment.
    if (limits_.stop.stop_possible()) on_stop_.emplace(limits_.stop, end_on_stop{*this});
    if (!limits_.deadline.is_never()) {
      clock_ = limits_.deadline.on() != nullptr ? limits_.deadline.on() : &real_clock();
      if (!clock_->arm(*this, limits_.deadline.when())) end(waiter::state::timed_out);
    }
    suspended_ = true;
    if (who_) [[unlikely]]
      told_.begin(op_, *this, limits_, who_, sink_);
    const auto joined = op_.enlist(*this);
    if (joined == enlisted::waiting) return true;  // touch nothing from here on
    suspended_ = false;
    if (joined == enlisted::ended) early_ = to_status(ended_by());
    return false;
  }

  // Stopped, or done without waiting.
  bool is_over(const std::stop_token& stop) {
    if (stop.stop_requested()) {
      early_ = status::stopped;
      return true;
    }
    return op_.attempt();
  }

  struct end_on_stop {
    awaitable& self;
    void operator()() const noexcept {
      if (self.end(waiter::state::stopped)) self.wake();
    }
  };

  static void resume(waiter& self) noexcept {
    auto& me = static_cast<awaitable&>(self);
    if (me.sink_ != nullptr) {
      me.sink_->post(me);
    } else {
      run_here(me);
    }
  }

  void run() noexcept override {
    told_.end();  // before it goes on: what it does then is no longer this wait
    handle_.resume();
  }
  bool claim() noexcept override { return end(waiter::state::timed_out); }
  void fire() noexcept override { wake(); }

  Op op_;
  wait_limits limits_;
  std::coroutine_handle<> handle_;
  work_sink* sink_ = nullptr;
  clock* clock_ = nullptr;
  bool suspended_ = false;
  bool inherits_ = true;
  status early_ = status::ok;
  std::optional<std::stop_callback<end_on_stop>> on_stop_;
  watch::party who_{};  // known only while somebody watches
  watch::wait_record told_;
};

}  // namespace sluice
