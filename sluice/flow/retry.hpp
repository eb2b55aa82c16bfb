#pragma once

// Repeats failed calls, after a random delay that grows, up to a limit.
//
// Use it around calls that fail occasionally and may be made twice. Prefer `circuit_breaker`
// against persistent failures: best inside a retry, because its refusals contain a delay.
//
//   retry(policy, f, limits)                 on this thread: returns f's result
//   co_await async_retry(policy, f, limits)  in a task: f returns a value, a future or a task
//
// Guarantees: a retryable error (`retry_if`) is followed by a wait and another attempt, until one
// of these: the attempts are used up; the next one would begin after `elapsed_max`, counted from
// the first; the budget refuses it; it would begin at or after the deadline; a stop is requested.
// Then retry_error is thrown, with the last error, the number of attempts and the reason. Another
// error is thrown as it is. A stop ends a wait between attempts at once, and before the first
// attempt it wins: f is not called. A deadline that has passed still allows the first attempt.
// Whether a running attempt ends early is up to f: a task has the awaiting task's token.
// After a refused_error with a known duration, the wait is at least that long. An exception of
// `on_retry` is written to standard error, an exception of `retry_if` goes to the caller
// (docs/concepts/errors.md).
// Where you resume: a task on its executor.
// Cost: blocking, no allocation of its own; a task one for its frame.
//
//     auto page = retry({.attempts_max = 5, .first_delay = 50ms}, [&] { return fetch(url); });
//     auto soon = co_await async_retry(policy, [&] { return async_fetch(url); },
//                                      deadline::after(5s));

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/flow/retry_budget.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {

// The random spread of the wait d = first_delay * growth^n, at most delay_max. Without it, clients
// that failed together would retry together.
enum class jitter : std::uint8_t {
  none,          // d
  full,          // 0 to d
  equal,         // d/2 to d
  decorrelated,  // first_delay to 3 times the last wait, at most delay_max
};

// The argument of on_retry, called before each wait.
struct retry_event {
  std::uint32_t attempts = 0;  // so far
  std::chrono::nanoseconds delay{};
  std::exception_ptr error;
};

struct retry_policy {
  std::uint32_t attempts_max = 3;  // including the first; 0: any number, within elapsed_max
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  double growth = 2;
  std::chrono::nanoseconds delay_max = std::chrono::seconds(10);
  sluice::jitter jitter = sluice::jitter::full;
  std::chrono::nanoseconds elapsed_max{};  // zero: no limit
  // Returns true for errors to retry. Empty: every error except future_error::cancelled.
  std::function<bool(const std::exception_ptr&)> retry_if{};
  std::function<void(const retry_event&)> on_retry{};
  retry_budget* budget = nullptr;       // null: none; outlives the calls
  sluice::clock* clock = nullptr;       // null: the real clock
  std::optional<std::uint64_t> seed{};  // of the jitter; empty: different each time
};

class retry_error : public std::runtime_error {
 public:
  enum class reason : std::uint8_t { attempts, elapsed, budget, timed_out, stopped };

  retry_error(reason why, std::uint32_t attempts, std::exception_ptr last);
  reason why() const noexcept { return why_; }
  std::uint32_t attempts() const noexcept { return attempts_; }  // made
  // The exception of the last attempt; null without an attempt.
  const std::exception_ptr& last_error() const noexcept { return last_; }

 private:
  reason why_;
  std::uint32_t attempts_;
  std::exception_ptr last_;
};

std::string_view to_string(retry_error::reason why) noexcept;

// The sequence of waits of a policy. An invalid policy is a broken contract.
class retry_delays {
 public:
  explicit retry_delays(const retry_policy& policy);
  std::chrono::nanoseconds next();

 private:
  double spread(double lower, double upper) noexcept;

  const double first_;
  const double growth_;
  const double most_;
  const sluice::jitter jitter_;
  random random_;
  double grown_;
  double last_;
};

namespace detail {

// The state of one retried call; decides after each failure.
class retry_run {
 public:
  retry_run(const retry_policy& policy, wait_limits limits);

  // Call before the first attempt. Throws if a stop was requested.
  void begin();
  // Call after a failure. Returns the end of the wait, or throws the error that ends the call.
  deadline failed(const std::exception_ptr& error);
  // Call after the wait. Throws if it was stopped.
  void waited(status ended) const;
  // Calls `failed`, waits on this thread, calls `waited`.
  void wait(const std::exception_ptr& error);

  const std::stop_token& stop() const noexcept { return limits_.stop; }

 private:
  [[noreturn]] void give_up(retry_error::reason why) const;
  bool is_retried(const std::exception_ptr& error) const;
  time_point latest() const noexcept;  // the deadline, on the policy's clock

  const retry_policy& policy_;
  wait_limits limits_;
  clock& clock_;
  retry_delays delays_;
  time_point began_;
  std::uint32_t attempts_ = 0;
  std::exception_ptr last_;
};

// A token that requests a stop when one of two does; the other one itself if one can never stop.
class either_stop {
 public:
  either_stop(std::stop_token a, std::stop_token b);
  const std::stop_token& token() const noexcept { return token_; }

 private:
  struct stopper {
    std::stop_source target;  // its own reference: the stop may destroy the owner of this object
    void operator()() const noexcept { std::stop_source(target).request_stop(); }
  };
  std::stop_token token_;
  std::optional<std::stop_callback<stopper>> first_;
  std::optional<std::stop_callback<stopper>> second_;
};

template <class T, class F>
task<T> retry_task(retry_policy policy, F f, wait_limits limits) {
  const std::stop_token& inherited = co_await this_task::stop_token();
  const either_stop stop(limits.stop, inherited);
  limits.stop = stop.token();
  retry_run run(policy, std::move(limits));
  run.begin();
  for (;;) {
    std::exception_ptr error;
    try {
      if constexpr (call_traits_of<F>::kind == call_kind::plain) {
        co_return f();
      } else {
        co_return co_await f();
      }
    } catch (...) {
      error = std::current_exception();
    }
    const auto until = run.failed(error);
    error = nullptr;
    const status ended = co_await sleep_until(until, run.stop());
    run.waited(ended);
  }
}

}  // namespace detail

template <class F>
detail::call_result_t<F> retry(const retry_policy& policy, F&& f, wait_limits limits = {}) {
  static_assert(detail::call_traits_of<F>::kind == detail::call_kind::plain,
                "a function that returns a future or a task needs async_retry");
  detail::retry_run run(policy, std::move(limits));
  run.begin();
  for (;;) {
    std::exception_ptr error;
    try {
      return f();
    } catch (...) {
      error = std::current_exception();
    }
    run.wait(error);
  }
}

template <class F>
auto async_retry(retry_policy policy, F f, wait_limits limits = {}) {
  using T = typename detail::call_traits_of<F>::value;
  return detail::retry_task<T, F>(std::move(policy), std::move(f), std::move(limits));
}

}  // namespace sluice
