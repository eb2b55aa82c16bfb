#pragma once

// Waits for a time: in a task, as a future, or periodically.
//
// - `co_await sleep_for(d)`, `sleep_until(t)`: the task resumes at that time, on its executor.
//   Returns ok, or `stopped` if the task's token or the given token is requested first.
// - `after(d)`: returns a future that is complete at that time; `cancel` ends it with
//   future_error::cancelled and removes the timer. Attached functions run on the clock's thread
//   unless `via` names an executor.
// - `every(period, executor, f)`: calls f on the executor at start + period, + 2 * period and so
//   on: the schedule does not drift, even if single calls are late. f may return a task, which is
//   awaited. Calls never overlap and never pile up: times that pass while f runs, or while the
//   executor is busy, are skipped. The returned future ends with a value when the token or its
//   `cancel` is requested, or with the first exception that leaves f. Dropping the future does not
//   end the calls; the exception is then reported to the executor. They must end before the
//   executor does.
//
// All of them use the timer service of base/clock.hpp: they fire in the order of their times, never
// early, and accept your own clock (`manual_clock` in tests) as an option. A time in the past is no
// wait; a time too far away to be represented never fires. A period must be > 0, else a broken
// contract.
// Cost: sleeping allocates only the clock's heap entry, 8 bytes per timer; arming and ending are
// O(log n). `after` is two allocations, `every` those of a spawned task. The test
// AMillionSleepersFireInOrder prints time and memory of a million sleepers.
//
//     const status slept = co_await sleep_for(100ms);      // named, for g++ 12: see task.hpp
//     if (!slept) co_return;                               // asked to stop
//     auto refreshed = after(1s).via(pool).then([] { refresh(); });
//     auto ticking = every(10s, pool, [] { report(); });
//     ticking.cancel();

#include <chrono>
#include <stop_token>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

namespace detail {

// A wait that ends only by its limits.
class sleep_op {
 public:
  bool ready() const noexcept { return false; }
  bool attempt() const noexcept { return false; }
  enlisted enlist(waiter& waiting) noexcept {
    return waiting.commit() ? enlisted::waiting : enlisted::ended;
  }
  bool woken() const noexcept { return true; }
  void retract() const noexcept {}
  spin_budget& spin() noexcept { return spin_; }
  status result(status ended) const noexcept {
    return ended == status::timed_out ? status(status::ok) : ended;
  }
  wait_report::subject wait_subject() const noexcept { return {nullptr, "sluice::sleep", "sleep"}; }

 private:
  spin_budget spin_;
};

future<void> complete_at(deadline when);

}  // namespace detail

// co_await returns ok or stopped.
inline auto sleep_until(deadline when, std::stop_token stop = {}, call_site at = {}) {
  return awaitable<detail::sleep_op>(wait_limits(when, std::move(stop), at));
}
template <class Clock, class Duration>
auto sleep_until(std::chrono::time_point<Clock, Duration> when, std::stop_token stop = {},
                 call_site at = {}) {
  return sleep_until(deadline::at(when), std::move(stop), at);
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> d, std::stop_token stop = {},
               call_site at = {}) {
  return sleep_until(deadline::after(d), std::move(stop), at);
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> d, clock& on, std::stop_token stop = {},
               call_site at = {}) {
  return sleep_until(deadline::after(d, on), std::move(stop), at);
}

inline future<void> after(deadline when) { return detail::complete_at(when); }
template <class Rep, class Period>
future<void> after(std::chrono::duration<Rep, Period> d) {
  return detail::complete_at(deadline::after(d));
}
template <class Rep, class Period>
future<void> after(std::chrono::duration<Rep, Period> d, clock& on) {
  return detail::complete_at(deadline::after(d, on));
}

// It has constructors and no designated initialisers because of g++ 12, as scope_options. Write
// `every_options(clock)`, `every_options(stop)` or `every_options(clock, stop)`.
struct every_options {
  every_options() = default;
  every_options(clock& time, std::stop_token token = {}) noexcept
      : on(&time), stop(std::move(token)) {}
  every_options(std::stop_token token) noexcept : stop(std::move(token)) {}

  clock* on = nullptr;  // null: the real clock
  std::stop_token stop{};
};

namespace detail {

template <class F>
task<> call_every(std::chrono::nanoseconds period, F f, every_options o, time_point start) {
  clock& on = *o.on;
  const linked_stop either(o.stop, co_await this_task::stop_token());
  // The number of the last call whose time can be represented.
  const auto last = (time_point::max() - start) / period;
  for (auto n = time_point::rep{1}; n <= last;) {
    if (!co_await sleep_until(deadline::at(start + n * period, on), either.token())) co_return;
    if constexpr (requires { f().operator co_await(); }) {
      co_await await_with(f(), either.token());
    } else {
      f();
    }
    const auto passed = (on.now() - start) / period;
    n = passed > n ? passed + 1 : n + 1;
  }
}

}  // namespace detail

template <class F>
future<void> every(std::chrono::nanoseconds period, executor& where, F f, every_options o = {}) {
  check(period.count() > 0, "sluice::every", "a period > 0");
  if (o.on == nullptr) o.on = &real_clock();
  const auto start = o.on->now();
  return detail::spawn_as(executor_user::timer, where, {},
                          detail::call_every(period, std::move(f), std::move(o), start));
}

}  // namespace sluice
