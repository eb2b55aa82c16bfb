#pragma once

// A value that will be there later: wait for it, or say what is to be done with it.
//
// Use it for the result of one thing that somebody else does: an answer, a function on a pool. Get
// one from a `promise`, from `async`, from `from_callback`. Prefer a `task` for several steps with
// branches and loops, a `channel` for many values, `shared_future` when several want the same one.
//
// Guarantees: one consumer, one result: a value or an exception. Every call that uses the result
// (`get`, `then` and the like, `co_await std::move(f)`) leaves the future invalid; using an invalid
// one is a broken contract. A promise that is destroyed unset gives future_error::broken_promise,
// so nothing waits for ever for one that is gone. What happened before the result was set is seen
// by whoever gets it.
// Where a function runs: on the executor last named by `via` (or given to `async`), directly if
// the thread that completes the future runs on it already, else posted to it. With none: on the
// thread that completes the future, or at once on this one if it is complete. A chain of any length
// needs no stack: functions that complete futures from inside functions run directly 64 deep, and
// from there on one after the other. An executor must outlive the functions attached on it, which
// its destructor checks, and must not have ended when a function is attached. A clock must outlive
// its timeouts.
// Cancel safety: a limited wait that ended early leaves the future as it was. Destroying a future
// does not stop the work (docs/decisions/0008); `cancel` asks the producer, through its stop_token,
// however long the chain; what the future then ends with is the producer's to say.
// Exceptions: an exception of a function is the result of its future. That of a dropped future of
// an executor is reported (docs/concepts/errors.md). An and_then that would wait for itself,
// directly or around several, ends with future_error::cycle.
// Cost: a stage is one block of about 90 bytes from a list that the thread keeps, and one
// compare-and-swap; no stop_source unless somebody asks for a token (./bench future).
// Limits: no T aligned to more than 16 bytes.
//
//     async(pool, [] { return fetch(url); })
//         .then([](page p) { return count_words(p); })
//         .recover([](const io_error&) { return 0; })
//         .with_timeout(2s)
//         .via(ui).then([](int n) { show(n); });

#include <chrono>
#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/actions.hpp"
#include "sluice/future/detail/combine.hpp"
#include "sluice/future/detail/future_parts.hpp"
#include "sluice/future/detail/stage.hpp"
#include "sluice/future/detail/stop_state.hpp"
#include "sluice/future/detail/timeout_state.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T>
class [[nodiscard]] future {
 public:
  using value_type = T;
  // outcome<T>; for void a status, for U& an outcome<std::reference_wrapper<U>>.
  using limited = detail::limited_result_t<T>;

  future() noexcept = default;  // invalid
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;
  ~future() = default;

  bool valid() const noexcept { return parts_.state != nullptr; }
  bool is_ready() const noexcept { return here().state->is_ready(); }

  // The value, or throws what took its place.
  T get(call_site at = {}) {
    detail::get_op<T> op(here());
    if (!op.attempt()) must(wait_blocking(op, at));
    return detail::take_result(parts_);
  }
  // Limited: a reason when it is not there in time, and then the future is still valid.
  limited get(std::stop_token stop, call_site at = {}) {
    return get_within({std::move(stop), at});
  }
  limited try_get() {
    if (!is_ready()) return status::empty;
    return detail::get_op<T>(parts_).result(status::ok);
  }
  template <class Rep, class Period>
  limited try_get_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {},
                      call_site at = {}) {
    return get_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  limited try_get_until(std::chrono::time_point<Clock, Duration> when, std::stop_token stop = {},
                        call_site at = {}) {
    return get_within({deadline::at(when), std::move(stop), at});
  }
  limited get_within(const wait_limits& limits) {
    return block_on(detail::get_op<T>(here()), limits);
  }
  // co_await gives what get_within does. The future must stay where it is meanwhile.
  auto async_get(wait_limits limits = {}) {
    return awaitable<detail::get_op<T>>(std::move(limits), here());
  }
  // co_await std::move(f) gives the value or throws. When the awaiting coroutine is asked to stop:
  // cancels, and throws future_error::cancelled.
  auto operator co_await() && {
    return awaitable<detail::consume_op<T>>(wait_limits{}, std::move(here()));
  }

  // The value goes through f(value) -> U, or f() -> U; an error goes past it.
  template <class F>
  auto then(F f) {
    using made = detail::value_call_t<F, T>;
    return detail::add_stage<made>(here(), detail::on_value<T, made, F>{std::move(f)});
  }
  // The same for an f that returns a future<U>: the result is what that one ends with.
  template <class F>
  auto and_then(F f) {
    using made = detail::value_call_t<F, T>;
    static_assert(detail::is_future_v<made>, "and_then wants a function that returns a future");
    using value = detail::future_value_t<made>;
    return detail::add_flat_stage<value>(here(), detail::on_value<T, value, F>{std::move(f)});
  }
  // An error goes through f, a value goes past it. f takes the std::exception_ptr, or nothing, or
  // the one type of exception that it is for (others go past it). It returns a T or a future<T>.
  template <class F>
  future recover(F f) {
    using made = detail::error_call_t<F>;
    using action = detail::on_error<T, F>;
    if constexpr (detail::is_future_v<made>) {
      return detail::add_flat_stage<T>(here(), action{std::move(f)});
    } else {
      return detail::add_stage<T>(here(), action{std::move(f)});
    }
  }
  // f(settled<T>) -> U or future<U> sees the value or the error.
  template <class F>
  auto handle(F f) {
    using made = std::invoke_result_t<F&, settled<T>>;
    using value = detail::future_value_t<made>;
    using action = detail::on_settled<T, value, F>;
    if constexpr (detail::is_future_v<made>) {
      return detail::add_flat_stage<value>(here(), action{std::move(f)});
    } else {
      return detail::add_stage<value>(here(), action{std::move(f)});
    }
  }
  // f() runs in any case; the result stays, unless f throws.
  template <class F>
  future finally(F f) {
    return detail::add_stage<T>(here(), detail::in_any_case<T, F>{std::move(f)});
  }

  // f(value, other's value) -> V, when both are there; the first failure goes past it and cancels
  // the other one. Of a void there is no argument.
  template <class U, class F>
  auto combine(future<U> other, F f) {
    executor* const on = here().on;
    return detail::combine(std::move(*this), std::move(other), on, std::move(f));
  }
  // The same future, but it ends with future_error::timed_out, and cancels, if that takes longer
  // than `wait`. What is attached then runs on the clock's thread, unless there is an executor.
  template <class Rep, class Period>
  future with_timeout(std::chrono::duration<Rep, Period> wait, clock& on = real_clock()) {
    return detail::add_timeout(here(), deadline::after(wait, on), on);
  }
  // The same future, but it ends with future_error::cancelled, and cancels, when the token asks
  // first. What is attached then runs on the thread that asks, unless there is an executor.
  future with_stop(const std::stop_token& stop) { return detail::add_stop(here(), stop); }

  // Functions that are attached from here on run on `on`.
  future via(executor& on) {
    here().on = &on;
    return std::move(*this);
  }

  // Asks the producer to stop. Any number of times.
  void cancel() noexcept {
    if (here().way_back) parts_.way_back->cancel();
  }

 private:
  friend struct detail::future_access;
  explicit future(detail::future_parts<T> parts) noexcept : parts_(std::move(parts)) {}

  detail::future_parts<T>& here() noexcept {
    check(valid(), "sluice::future", "to be valid: not yet used up, moved from or empty");
    return parts_;
  }
  const detail::future_parts<T>& here() const noexcept {
    return const_cast<future&>(*this).here();
  }
  static void must(status ended) noexcept {
    check(static_cast<bool>(ended), "sluice::future", "an unlimited wait to be served");
  }

  detail::future_parts<T> parts_;
};

}  // namespace sluice
