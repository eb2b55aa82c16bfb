#include "sluice/future/timers.hpp"

#include <chrono>
#include <stop_token>
#include <thread>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/sim/testing/scenario.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

task<status> sleeps(std::chrono::nanoseconds d, std::stop_token stop) {
  const status slept = co_await sleep_for(d, std::move(stop));
  co_return slept;
}

void a_task_sleeps_for_the_given_time() {
  const auto began = seam::now();
  check(sync_wait(sleeps(24h, {})) == status::ok, "an uninterrupted sleep");
  check(seam::now() - began >= 24h, "the whole day to have passed");
}

void a_stop_wakes_a_sleeper_early() {
  std::stop_source asks;
  std::jthread other([&] { asks.request_stop(); });
  const status outcome = sync_wait(sleeps(1h, asks.get_token()));
  check(outcome == status::stopped || outcome == status::ok, "stopped, or the hour to have passed");
}

void a_cancelled_timer_does_not_fire() {
  const auto began = seam::now();
  auto later = after(1h);
  std::jthread other([&] { later.cancel(); });
  other.join();
  bool fired = true;
  try {
    later.get();
  } catch (const future_error& e) {
    fired = false;
    check(e.why() == future_error::cancelled, "a cancellation");
  }
  check(!fired || seam::now() - began >= 1h, "no early timer");
}

void timers_fire_in_the_order_of_their_times() {
  race_checked<int> fired{0};
  auto second = after(2h).then([&] {
    check(fired.read() == 1, "the earlier timer first");
    fired.write(2);
  });
  auto first = after(1h).then([&] { fired.write(1); });
  first.get();
  second.get();
  check(fired.read() == 2, "both to have fired");
}

void a_periodic_timer_fires_until_it_is_stopped() {
  race_checked<int> calls{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  std::stop_source asks;
  const auto began = seam::now();
  auto ticking = every(
      10min, pool,
      [&] {
        check(seam::now() - began >= 10min * (calls.read() + 1), "not early");
        if (++calls.change() == 6) asks.request_stop();
      },
      asks.get_token());
  ticking.get();
  check(calls.read() == 6 && seam::now() - began >= 1h, "six times in an hour");
}

void a_cancel_ends_a_periodic_timer() {
  race_checked<int> calls{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto ticking = every(10min, pool, [&] { ++calls.change(); });
  ticking.cancel();
  try {
    ticking.get();
  } catch (const future_error& e) {
    check(e.why() == future_error::cancelled && calls.read() == 0,
          "a cancellation before the first call");
  }
  pool.drain();
}

[[maybe_unused]] const bool added =
    add({.name = "timers: a task sleeps for the given time",
         .options = {.schedules = 500},
         .body = &a_task_sleeps_for_the_given_time}) &&
    add({.name = "timers: a stop wakes a sleeper early",
         .options = {.schedules = 5'000},
         .body = &a_stop_wakes_a_sleeper_early}) &&
    add({.name = "timers: a cancelled timer does not fire",
         .options = {.schedules = 5'000},
         .body = &a_cancelled_timer_does_not_fire}) &&
    add({.name = "timers: timers fire in the order of their times",
         .options = {.schedules = 2'000, .early_timeouts = false},
         .body = &timers_fire_in_the_order_of_their_times}) &&
    add({.name = "timers: a periodic timer fires until it is stopped",
         .options = {.schedules = 2'000},
         .body = &a_periodic_timer_fires_until_it_is_stopped}) &&
    add({.name = "timers: a cancel ends a periodic timer",
         .options = {.schedules = 2'500},
         .body = &a_cancel_ends_a_periodic_timer});

}  // namespace
}  // namespace sluice::sim
