#pragma once

// Tries again what failed, after a while that grows, at random, and not for ever.
//
// Use it around calls that fail now and then and may be made twice. Prefer `circuit_breaker`
// against what keeps failing: best inside a retry, whose refusals then say how long to wait.
//
//   retry(policy, f, limits)                 on this thread: what f gives
//   co_await async_retry(policy, f, limits)  in a task: f gives a value, a future or a task
//
// Guarantees: an error that is to be retried (`retry_if`) is followed by a wait and another
// attempt, until one of these: the attempts are used up; the next one would begin after
// `elapsed_max`, counted from the first; the budget refuses it; it would begin at or after the
// deadline; the stop_token asks. Then retry_error is thrown, with the last error, the number of
// attempts and the reason. An error that is not to be retried is thrown as it is. A stop ends a
// wait between attempts at once, and before the first attempt it wins: nothing is called. A
// deadline that has passed still allows the first attempt. Whether a running attempt ends early is
// up to f: a task hears the token of whoever awaits it.
// When the error is a refused_error that knows how long the refusal lasts, the wait is at least
// that long. An exception of `on_retry` is written to standard error, an exception of `retry_if`
// goes to the caller (docs/concepts/errors.md).
// Where you resume: a task on its executor.
// Cost: blocking, no allocation of its own; a task one for its frame.
//
//     auto page = retry({.attempts_max = 5, .first_delay = 50ms}, [&] { return fetch(url); });
//     auto page = co_await async_retry(policy, [&] { return async_fetch(url); },
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

// How the wait d = first_delay * growth^n, at most delay_max, is spread. Clients that failed
// together would otherwise come back together.
enum class jitter : std::uint8_t {
  none,          // d
  full,          // anything from 0 to d
  equal,         // d/2, and anything from 0 to d/2
  decorrelated,  // anything from first_delay to 3 times the last wait, at most delay_max
};

// What on_retry hears before each wait.
struct retry_event {
  std::uint32_t attempts = 0;  // made so far
  std::chrono::nanoseconds delay{};
  std::exception_ptr error;
};

struct retry_policy {
  std::uint32_t attempts_max = 3;  // the first among them; 0: any number, within elapsed_max
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  double growth = 2;
  std::chrono::nanoseconds delay_max = std::chrono::seconds(10);
  sluice::jitter jitter = sluice::jitter::full;
  std::chrono::nanoseconds elapsed_max{};  // zero: however long
  // Empty: every error but future_error::cancelled.
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
  // What the last attempt threw; null when none was made.
  const std::exception_ptr& last_error() const noexcept { return last_; }

 private:
  reason why_;
  std::uint32_t attempts_;
  std::exception_ptr last_;
};

std::string_view to_string(retry_error::reason why) noexcept;

// The waits of a policy, one after the other. Ends the program when the policy makes no sense.
class retry_delays {
 public:
  explicit retry_delays(const retry_policy& policy);
  std::chrono::nanoseconds next();

 private:
  double spread(double from, double to) noexcept;

  const double first_;
  const double growth_;
  const double most_;
  const sluice::jitter jitter_;
  random random_;
  double grown_;
  double last_;
};

namespace detail {

// One retried call: decides after each failure.
class retry_run {
 public:
  retry_run(const retry_policy& policy, wait_limits limits);

  // Before the first attempt. Throws when it was asked to stop.
  void begin();
  // After a failure: until when to wait. Throws what ends the call.
  deadline failed(const std::exception_ptr& error);
  // After the wait. Throws when it ended early.
  void waited(status how) const;
  // `failed`, the wait on this thread, `waited`.
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

// A token that asks when one of two does; one of the two when the other never will.
class either_stop {
 public:
  either_stop(std::stop_token a, std::stop_token b);
  const std::stop_token& token() const noexcept { return token_; }

 private:
  struct ask {
    std::stop_source to;  // a share of its own: asking may end whoever owns this
    void operator()() const noexcept { std::stop_source(to).request_stop(); }
  };
  std::stop_token token_;
  std::optional<std::stop_callback<ask>> first_;
  std::optional<std::stop_callback<ask>> second_;
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
    const status how = co_await sleep_until(until, run.stop());
    run.waited(how);
  }
}

}  // namespace detail

template <class F>
detail::call_result_t<F> retry(const retry_policy& policy, F&& f, wait_limits limits = {}) {
  static_assert(detail::call_traits_of<F>::kind == detail::call_kind::plain,
                "a function that gives a future or a task is for async_retry");
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
