#pragma once

// Turns one description of a wait, a `wait_operation`, into the blocking call and the awaitable,
// both with deadline and stop_token. Every waiting call of the library is made of these.
//
// An operation lives in the caller's frame. It also finishes when it can never succeed (closed):
// `result(ok)` then returns the reason.
//
// Guarantees: a stop that was already requested wins over readiness: nothing is taken. A deadline
// that has already passed still allows one try. An awaitable without a token of its own uses the
// awaiting promise's `stop_token()`, if it has one. An awaiting coroutine is resumed on its
// promise's `resume_sink()`, else on the thread that ended the wait; it must not be destroyed while
// it is suspended here. Idle costs no CPU: a thread spins for the budget, yields, then parks.

#include <concepts>
#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/detail/wait_report.hpp"

namespace sluice {

// Remembers, per primitive, whether spinning before parking has paid off recently.
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

// The requirements of block_on, wait_blocking and awaitable on a primitive's operation.
template <class Op>
concept wait_operation = requires(Op& op, const Op& view, waiter& self) {
  // A cheap guess, without a lock, whether `attempt` could succeed now.
  { view.ready() } -> std::convertible_to<bool>;
  // Tries to finish without waiting. Returns true if finished.
  { op.attempt() } -> std::convertible_to<bool>;
  // Under the primitive's lock: tries again, else links the waiter (`link_waiter`).
  { op.enlist(self) } -> std::same_as<enlisted>;
  // After a claim. Returns true if finished; false if a thread was woken to try again and failed.
  { op.woken() } -> std::convertible_to<bool>;
  // After a timeout or stop: unlinks the nodes under the lock, and serves waiters it had blocked.
  op.retract();
  // The primitive's spin_budget.
  { op.spin() } -> std::same_as<spin_budget&>;
};
// And `R result(status)`: the result of the call, for a wait that ended with ok, timed_out or
// stopped. Not in the concept, because checking it would instantiate the result of a future.
// Optional members of an operation:
//   bool spins_linked() const: true if only linked waiters can be served, so spin after linking
//   bool take_late(const deadline&): called after the deadline and `retract`; returns true if it
//       has taken an item that was due by then
//   wait_report::subject wait_subject() const: the awaited object (detail/wait_report.hpp)
//   void taken_by(wait_report::party, call_site): called when a coroutine's wait ended with ok

// Spins, then yields, while `ready()` is false. Returns false if it is time to park.
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
  // On a busy machine the other side may be waiting for this core: a yield costs a fraction of a
  // futex round trip, and returns at once if no other thread is ready to run.
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
template <wait_operation Op>
status wait_blocking(Op& op, const wait_limits& limits) {
  thread_waiter self;
  bool spin_linked = false;
  if constexpr (requires { op.spins_linked(); }) spin_linked = op.spins_linked();
  const std::uint32_t linked_spin = spin_linked && seam::can_spin() ? spin_budget::most : 0;
  bool was_linked = false;  // then its leaving may allow the primitive to serve others
  wait_report::wait_record report;
  const auto give_up = [&](status why) -> status {
    if (was_linked) op.retract();
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
    was_linked = true;
    if (!self.spin(linked_spin) && wait_report::is_on()) [[unlikely]] {
      report.begin(op, self, limits, wait_report::party::current());
    }
    const auto ended = self.park(limits);
    report.end();  // while the operation is still linked
    if (ended != waiter::state::claimed) return give_up(to_status(ended));
    if (op.woken()) return status::ok;
  }
}

// A whole blocking call.
template <class Op>
  requires wait_operation<std::remove_reference_t<Op>>
decltype(auto) block_on(Op&& op) {
  if (op.attempt()) return op.result(status::ok);
  return op.result(wait_blocking(op, {}));
}
template <class Op>
  requires wait_operation<std::remove_reference_t<Op>>
decltype(auto) block_on(Op&& op, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return op.result(status::stopped);
  if (op.attempt()) return op.result(status::ok);
  return op.result(wait_blocking(op, limits));
}

// The awaitable for an operation. Made by `async_x` calls and awaited at once; not movable.
template <wait_operation Op>
class [[nodiscard("co_await it")]] awaitable final : private waiter, private work, private timer {
 public:
  template <class... Args>
  explicit awaitable(wait_limits limits, Args&&... args)
      : waiter(&resume, false), op_(std::forward<Args>(args)...), limits_(std::move(limits)) {}

  ~awaitable() {
    if (clock_ != nullptr) clock_->disarm(*this);
  }

  // Call before it is awaited. Sets the token of a wait that has none.
  void inherit(const std::stop_token& stop) noexcept {
    if (!limits_.stop.stop_possible()) limits_.stop = stop;
  }
  // Call before it is awaited. The token of the awaiting coroutine will not end the wait. For waits
  // that must not end early, such as a wait for started work.
  void keep_own_limits() noexcept { inherits_ = false; }

  // Nothing is tried before the awaiting coroutine is known: a stop may have been requested.
  bool await_ready() const noexcept { return false; }

  // Returns false if no wait is needed.
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    if (wait_report::is_on()) [[unlikely]] return suspend_watched(awaiting);
    return suspend(awaiting);
  }

  decltype(auto) await_resume() {
    report_.end();
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
    if constexpr (requires { op_.taken_by(party_, limits_.at); }) {
      if (ended && party_) [[unlikely]]
        op_.taken_by(wait_report::taker_of(party_, sink_), limits_.at);
    }
    return op_.result(ended);
  }

  template <class Promise>
  [[gnu::noinline]] bool suspend_watched(std::coroutine_handle<Promise> awaiting) {
    party_ = wait_report::party_of(awaiting);
    if constexpr (requires { awaiting.promise().resume_sink(); }) {
      sink_ = awaiting.promise().resume_sink();
    }
    const wait_report::acting_as coroutine(wait_report::taker_of(party_, sink_));
    return suspend(awaiting);
  }

  template <class Promise>
  bool suspend(std::coroutine_handle<Promise> awaiting) {
    if constexpr (requires { awaiting.promise().stop_token(); }) {
      const std::stop_token& inherited = awaiting.promise().stop_token();
      if (inherits_ && !limits_.stop.stop_possible() && inherited.stop_possible()) {
        if (is_over(inherited)) return false;
        limits_.stop = inherited;  // adds a reference: only if it really waits
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
    // Armed before linking: once linked, this frame may be resumed and destroyed at any moment.
    if (limits_.stop.stop_possible()) on_stop_.emplace(limits_.stop, end_on_stop{*this});
    if (!limits_.deadline.is_never()) {
      clock_ = limits_.deadline.on() != nullptr ? limits_.deadline.on() : &real_clock();
      if (!clock_->arm(*this, limits_.deadline.when())) end(waiter::state::timed_out);
    }
    suspended_ = true;
    if (party_) [[unlikely]]
      report_.begin(op_, *this, limits_, party_, sink_);
    const auto joined = op_.enlist(*this);
    if (joined == enlisted::waiting) return true;  // no access to members from here on
    suspended_ = false;
    if (joined == enlisted::ended) early_ = to_status(ended_by());
    return false;
  }

  // Returns true if stopped, or finished without waiting.
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
    report_.end();  // before resuming: the coroutine no longer waits here
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
  wait_report::party party_{};  // set only while an observer is installed
  wait_report::wait_record report_;
};

}  // namespace sluice
