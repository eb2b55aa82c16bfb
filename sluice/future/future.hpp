#pragma once

// A value that will be available later: wait for it, or attach functions that run when it is set.
//
// Use it for one result that another party produces: a reply, a function on a pool. Get one from a
// `promise`, from `async`, from `from_callback`. Prefer a `task` for several steps with branches
// and loops, a `channel` for many values, `shared_future` for several consumers of one value.
//
// Guarantees: one consumer, one result: a value or an exception. Every call that consumes the
// result (`get`, `then` and the like, `co_await std::move(f)`) leaves the future invalid; using an
// invalid future is a broken contract. A promise that is destroyed unset sets
// future_error::broken_promise, so no wait lasts forever. Setting the result happens-before reading
// it.
// Where a function runs: on the executor last named by `via` (or passed to `async`): directly if
// the completing thread already runs on it, else posted to it. Without an executor: on the
// completing thread, or immediately on this one if the future is complete. A chain of any length
// needs no stack: nested completions run directly up to 64 deep; deeper ones are queued and run
// one after the other. An executor must outlive the functions attached on it, which its
// destructor checks, and must not have ended when one is attached; a clock must outlive its
// timeouts.
// Cancel safety: a limited wait that ended early leaves the future as it was. Destroying a future
// does not stop the work (docs/decisions/0008); `cancel` requests the producer's stop_token,
// however long the chain; the producer decides what the future then ends with.
// Exceptions: an exception of a function is the result of its future. If a future of an executor
// is dropped, its exception is reported (docs/concepts/errors.md). An and_then that would wait for
// itself, directly or through others, ends with future_error::cycle.
// Cost: a stage is one block of about 90 bytes from a free list of the thread, and one
// compare-and-swap; a stop_source is created only with the first token (./bench future).
// Limits: no T aligned to more than 16 bytes.
//
//     auto shown = async(pool, [url] { return fetch(url); })
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
#include "sluice/future/detail/named_future.hpp"
#include "sluice/future/detail/stage.hpp"
#include "sluice/future/detail/stop_state.hpp"
#include "sluice/future/detail/timeout_state.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T>
class [[nodiscard]] future : private detail::named_future {
 public:
  using value_type = T;
  // outcome<T>; for void a status, for U& an outcome<std::reference_wrapper<U>>.
  using limited = detail::limited_result_t<T>;

  future() noexcept = default;  // invalid
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;
  ~future() = default;

  bool valid() const noexcept { return parts_.state != nullptr; }
  bool is_ready(call_site at = {}) const noexcept { return here(at).state->is_ready(); }

  // Blocks until the result is set; returns the value or throws the error.
  T get(call_site at = {}) {
    detail::get_op<T> op(here(at));
    if (!op.attempt()) must(wait_blocking(op, at), at);
    return detail::take_result(parts_);
  }
  // Returns timed_out or stopped if a limit ends the wait; the future is then still valid.
  limited get(const wait_limits& limits) {
    return block_on(detail::get_op<T>(here(limits.at)), limits);
  }
  // Returns empty if the result is not set.
  limited try_get(call_site at = {}) {
    if (!is_ready(at)) return status::empty;
    return detail::get_op<T>(parts_).result(status::ok);
  }
  // co_await returns what get(limits) does. The future must not move during the wait.
  auto async_get(wait_limits limits = {}) {
    auto& parts = here(limits.at);
    return awaitable<detail::get_op<T>>(std::move(limits), parts);
  }
  // co_await std::move(f) returns the value or throws the error. If the awaiting coroutine's
  // stop_token is requested, cancels and throws future_error::cancelled.
  auto operator co_await() && {
    check(valid(), "sluice::future", expected_);
    return awaitable<detail::consume_op<T>>(wait_limits{}, std::move(parts_));
  }

  // With an lvalue, write std::move(f).then(...): without the move these do not compile.
  using named_future::and_then, named_future::combine, named_future::finally, named_future::handle,
      named_future::recover, named_future::then, named_future::via, named_future::with_stop,
      named_future::with_timeout;

  // Returns a future of f(value) or f(). An error is passed on without calling f.
  template <class F>
  auto then(F f, call_site at = {}) && {
    static_assert(detail::takes_value<F, T>,
                  "then requires a function of the future's value, or without parameters");
    if constexpr (detail::takes_value<F, T>) {
      using made = detail::value_call_t<F, T>;
      return detail::add_stage<made>(here(at), detail::on_value<T, made, F>{std::move(f)});
    }
  }
  // The same for an f that returns a future<U>: the result is that of the returned future.
  template <class F>
  auto and_then(F f, call_site at = {}) && {
    static_assert(detail::takes_value<F, T>,
                  "and_then requires a function of the future's value, or without parameters");
    if constexpr (detail::takes_value<F, T>) {
      using made = detail::value_call_t<F, T>;
      static_assert(detail::is_future_v<made>,
                    "and_then requires a function that returns a future");
      if constexpr (detail::is_future_v<made>) {
        using value = detail::future_value_t<made>;
        return detail::add_flat_stage<value>(here(at), detail::on_value<T, value, F>{std::move(f)});
      }
    }
  }
  // Calls f for an error; a value is passed on without calling f. f takes the std::exception_ptr,
  // nothing, or one type of exception (others are passed on). It returns a T or a future<T>.
  template <class F>
  future recover(F f, call_site at = {}) && {
    static_assert(detail::takes_error<F>,
                  "recover requires a function of an exception, of std::exception_ptr, or without "
                  "parameters");
    if constexpr (detail::takes_error<F>) {
      static_assert(detail::recovers<F, T>,
                    "recover requires a function that returns the future's value type, or a future "
                    "of exactly that type");
    }
    if constexpr (detail::recovers<F, T>) {
      using action = detail::on_error<T, F>;
      if constexpr (detail::is_future_v<detail::error_call_t<F>>) {
        return detail::add_flat_stage<T>(here(at), action{std::move(f)});
      } else {
        return detail::add_stage<T>(here(at), action{std::move(f)});
      }
    }
  }
  // Calls f(settled<T>) -> U or future<U> for a value and for an error.
  template <class F>
  auto handle(F f, call_site at = {}) && {
    static_assert(std::is_invocable_v<F&, settled<T>>,
                  "handle requires a function of settled<T>, the future's value or error");
    if constexpr (std::is_invocable_v<F&, settled<T>>) {
      using made = std::invoke_result_t<F&, settled<T>>;
      using value = detail::future_value_t<made>;
      using action = detail::on_settled<T, value, F>;
      if constexpr (detail::is_future_v<made>) {
        return detail::add_flat_stage<value>(here(at), action{std::move(f)});
      } else {
        return detail::add_stage<value>(here(at), action{std::move(f)});
      }
    }
  }
  // Calls f() in any case and passes the result on, unless f throws.
  template <class F>
  future finally(F f, call_site at = {}) && {
    static_assert(std::is_invocable_v<F&>, "finally requires a function without parameters");
    if constexpr (std::is_invocable_v<F&>) {
      return detail::add_stage<T>(here(at), detail::in_any_case<T, F>{std::move(f)});
    }
  }

  // Returns a future of f(value, other value), called when both are set. The first error is passed
  // on and cancels the other future. A void future contributes no argument.
  template <class U, class F>
  auto combine(future<U> other, F f, call_site at = {}) && {
    static_assert(detail::takes_values<F, T, U>,
                  "combine requires a function of both values; a void future contributes none");
    if constexpr (detail::takes_values<F, T, U>) {
      executor* const on = here(at).on;
      return detail::combine(std::move(*this), std::move(other), on, std::move(f));
    }
  }
  // Returns a future with the same result; after `wait` it cancels and ends with
  // future_error::timed_out. Without an executor, attached functions then run on the clock's
  // thread.
  template <class Rep, class Period>
  future with_timeout(std::chrono::duration<Rep, Period> wait, clock& on = real_clock(),
                      call_site at = {}) && {
    return detail::add_timeout(here(at), deadline::after(wait, on), on);
  }
  // Returns a future with the same result; if the token is requested first, it cancels and ends
  // with future_error::cancelled. Without an executor, attached functions then run on the thread
  // that requests the stop.
  future with_stop(const std::stop_token& stop, call_site at = {}) && {
    return detail::add_stop(here(at), stop);
  }

  // Functions attached after this call run on `on`.
  future via(executor& on, call_site at = {}) && {
    here(at).on = &on;
    return std::move(*this);
  }

  // Requests the producer's stop_token. May be called any number of times.
  void cancel(call_site at = {}) noexcept {
    if (here(at).way_back) parts_.way_back->cancel();
  }

 private:
  friend struct detail::future_access;
  explicit future(detail::future_parts<T> parts) noexcept : parts_(std::move(parts)) {}

  static constexpr const char* expected_ = "to be valid: not yet consumed, moved from or empty";

  detail::future_parts<T>& here(call_site at) noexcept {
    check(valid(), "sluice::future", expected_, at);
    return parts_;
  }
  const detail::future_parts<T>& here(call_site at) const noexcept {
    return const_cast<future&>(*this).here(at);
  }
  static void must(status ended, const call_site& at) noexcept {
    check(static_cast<bool>(ended), "sluice::future", "a wait without limits to end with a result",
          at);
  }

  detail::future_parts<T> parts_;
};

}  // namespace sluice
