#pragma once

// Waits for a time: in a task, as a future, or again and again.
//
// - `co_await sleep_for(d)`, `sleep_until(t)`: the task goes on at that time, on its executor.
//   Gives ok, or `stopped` when the task, or the token that was given, was asked to stop first.
// - `after(d)`: a future that is complete at that time; `cancel` ends it with
//   future_error::cancelled and takes the timer out. What is attached to it runs on the clock's
//   thread unless `via` names an executor.
// - `every(period, executor, f)`: calls f on the executor at start + period, + 2 * period and so
//   on: the schedule does not drift, however late single calls are. f may return a task, which is
//   awaited. Calls never overlap and never pile up: the times that pass while f runs, or while the
//   executor is busy, are skipped. The future it returns ends when the token or its `cancel` asks
//   (with a value), or with the first exception that leaves f. Dropping the future does not end it;
//   the exception is then reported to the executor. It must end before the executor does.
//
// All of them use one timer service, that of base/clock.hpp: they fire in the order of their times,
// never early, and take a clock of your own (`manual_clock` in tests) as an option. A time that has
// come already is no wait; one too far away to be counted never comes. A period that is not
// positive is a broken contract.
// Cost: sleeping allocates nothing beyond the clock's heap, 8 bytes a timer; arming and ending are
// O(log n). `after` is two allocations, `every` that of a spawned task. A million of them: the test
// AMillionSleepersFireInOrder prints time and memory.
//
//     const status slept = co_await sleep_for(100ms);      // named, for g++ 12: see task.hpp
//     if (!slept) co_return;                               // asked to stop
//     after(1s).via(pool).then([] { refresh(); });
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

// A wait that only its limits end.
class sleep_op {
 public:
  bool ready() const noexcept { return false; }
  bool attempt() const noexcept { return false; }
  enlisted enlist(waiter& who) noexcept {
    return who.commit() ? enlisted::waiting : enlisted::ended;
  }
  bool woken() const noexcept { return true; }
  void retract() const noexcept {}
  spin_budget& spin() noexcept { return spin_; }
  status result(status ended) const noexcept {
    return ended == status::timed_out ? status(status::ok) : ended;
  }
  watch::subject about() const noexcept { return {nullptr, "sluice::sleep", "sleep"}; }

 private:
  spin_budget spin_;
};

future<void> complete_at(deadline when);

}  // namespace detail

// co_await gives ok or stopped.
inline auto sleep_until(deadline when, std::stop_token stop = {}) {
  return awaitable<detail::sleep_op>(wait_limits(when, std::move(stop)));
}
template <class Clock, class Duration>
auto sleep_until(std::chrono::time_point<Clock, Duration> when, std::stop_token stop = {}) {
  return sleep_until(deadline::at(when), std::move(stop));
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> d, std::stop_token stop = {}) {
  return sleep_until(deadline::after(d), std::move(stop));
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> d, clock& on, std::stop_token stop = {}) {
  return sleep_until(deadline::after(d, on), std::move(stop));
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

// With constructors, as wait_limits has, for the sake of g++ 12.
struct every_options {
  every_options() = default;
  every_options(clock& which, std::stop_token asked = {}) noexcept
      : on(&which), stop(std::move(asked)) {}
  every_options(std::stop_token asked) noexcept : stop(std::move(asked)) {}

  clock* on = nullptr;  // null: the real clock
  std::stop_token stop{};
};

namespace detail {

template <class F>
task<> call_every(std::chrono::nanoseconds period, F f, every_options o, time_point start) {
  clock& on = *o.on;
  const linked_stop asked(o.stop, co_await this_task::stop_token());
  // The last time that can be counted from the start; then there is no next one.
  const auto last = (time_point::max() - start) / period;
  for (auto n = time_point::rep{1}; n <= last;) {
    if (!co_await sleep_until(deadline::at(start + n * period, on), asked.token())) co_return;
    if constexpr (requires { f().operator co_await(); }) {
      co_await await_with(f(), asked.token());
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
  check(period.count() > 0, "sluice::every", "a period that is longer than nothing");
  if (o.on == nullptr) o.on = &real_clock();
  const auto start = o.on->now();
  return detail::spawn_as(executor_user::timer, where, {},
                          detail::call_every(period, std::move(f), std::move(o), start));
}

}  // namespace sluice
