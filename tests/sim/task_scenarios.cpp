#include "sluice/future/task.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

thread_pool::options small(std::size_t threads) {
  return {.core = threads, .capacity = 4, .time_every = 0};
}

task<int> sum_of(bounded_queue<int>& from) {
  int sum = 0;
  while (auto item = co_await from.async_pop()) sum += *item;
  co_return sum;
}

void a_task_that_waits_on_a_queue_gets_all_items() {
  bounded_queue<int> q(1);
  thread_pool pool(small(1));
  auto sum = spawn(pool, sum_of(q));
  for (const int i : {1, 2, 3})
    check(q.push(i) == status::ok, "an open queue to wait for capacity");
  q.close();
  check(sum.get() == 6, "every item");
}

task<> add_one(mutex& guard, race_checked<int>& sum) {
  const auto hold = co_await guard.async_lock();
  sum.change() += 1;
}

void two_critical_sections_do_not_overlap() {
  mutex guard;
  race_checked<int> sum{0};
  thread_pool pool(small(2));
  auto a = spawn(pool, add_one(guard, sum));
  auto b = spawn(pool, add_one(guard, sum));
  a.get();
  b.get();
  check(sum.read() == 2, "both increments");
}

task<> until_set(event& e, race_checked<bool>& stopped) {
  const status outcome = co_await e.async_wait();
  stopped.write(outcome == status::stopped);
}

void a_cancel_ends_the_current_wait() {
  event never;
  race_checked<bool> stopped{false};
  thread_pool pool(small(1));
  auto f = spawn(pool, until_set(never, stopped));
  f.cancel();
  bool ran = true;
  try {
    f.get();
  } catch (const future_error& e) {
    ran = false;
    check(e.why() == future_error::cancelled, "a cancellation");
  }
  check(stopped.read() == ran, "a task that had begun to be stopped in its wait");
}

void a_cancel_concurrent_with_the_end_of_the_wait() {
  event e;
  race_checked<bool> stopped{false};
  thread_pool pool(small(1));
  auto f = spawn(pool, until_set(e, stopped));
  std::jthread sets([&] { e.set(); });
  f.cancel();
  try {
    f.get();
  } catch (const future_error& cancelled) {
    check(cancelled.why() == future_error::cancelled && !stopped.read(),
          "a cancellation before it began");
  }
}

task<int> one_of(promise<int>& p) {
  co_return co_await p.get_future();
}

void awaiting_a_future_returns_its_value_or_throws() {
  promise<int> p;
  std::jthread producer([&] { p.set_value(9); });
  check(sync_wait(one_of(p)) == 9, "the value");
}

void a_timed_out_wait_for_a_task_leaks_nothing() {
  event e;
  race_checked<bool> stopped{false};
  std::jthread sets([&] { e.set(); });
  const status outcome = sync_wait(until_set(e, stopped), deadline::after(1s));
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  check(!outcome || !stopped.read(), "a stop request only after a time-out");
}

task<int> after_moving(executor& target) {
  co_await resume_on(target);
  check(executor::current() == &target, "to run on the executor that it moved to");
  co_return 4;
}

void a_task_that_moves_resumes_its_awaiter_where_it_was() {
  thread_pool pool(small(1));
  const auto outer = [](executor& target) -> task<int> {
    executor* const origin = co_await this_task::executor();
    const int got = co_await after_moving(target);
    check(executor::current() == origin, "to resume on its own executor");
    co_return got;
  };
  check(sync_wait(outer(pool)) == 4, "its result");
}

task<int> yields(int value) {
  co_await this_task::yield();
  co_return value;
}

void all_of_several_tasks_on_a_pool() {
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  const auto all = []() -> task<int> {
    auto both = when_all(yields(1), yields(2));
    const auto [a, b] = co_await std::move(both);
    co_return a + b;
  };
  check(spawn(pool, all()).get() == 3, "both values");
}

task<int> waits_for(event& e) {
  const status outcome = co_await e.async_wait();
  if (!outcome) throw future_error(future_error::cancelled);
  co_return 1;
}

void the_first_of_several_stops_the_others() {
  event never;
  thread_pool pool(small(2));
  const auto any = [](event& e) -> task<std::size_t> {
    auto first = when_any(waits_for(e), yields(2));
    const auto won = co_await std::move(first);
    co_return won.index;
  };
  check(spawn(pool, any(never)).get() == 1, "the result of the task that ends");
}

void a_time_limit_requests_a_stop() {
  event never;
  const auto limited = [](event& e) -> task<status> {
    auto soon = within(waits_for(e), deadline::after(1h));
    const auto got = co_await std::move(soon);
    co_return got.status();
  };
  const auto began = seam::now();
  check(sync_wait(limited(never)) == status::timed_out, "a time-out");
  check(seam::now() - began >= 1h, "a whole hour");
}

// The frame's argument is freed before the future is ready.
void the_frame_is_destroyed_before_the_future_is_ready() {
  thread_pool pool(small(1));
  std::weak_ptr<int> watched;
  future<void> f;
  {
    auto held = std::make_shared<int>(1);
    watched = held;
    f = spawn(pool, [](std::shared_ptr<int> argument) -> task<> {
      co_await this_task::yield();
      check(*argument == 1, "its argument");
    }(std::move(held)));
  }
  f.get();
  check(watched.expired(), "the arguments to be destroyed");
}

void a_rejected_task_fails_and_is_destroyed() {
  thread_pool pool(small(1));
  std::jthread closes([&] { pool.close(); });
  auto f = spawn(pool, yields(5));
  std::optional<future_error::reason> why;
  try {
    check(f.get() == 5, "its result");
  } catch (const future_error& e) {
    why = e.why();
  }
  check(!why || why == future_error::rejected, "its result, or a rejection");
}

[[maybe_unused]] const bool added =
    add({.name = "task: a task that waits on a queue gets all items",
         .options = {.schedules = 3'500},
         .body = &a_task_that_waits_on_a_queue_gets_all_items}) &&
    add({.name = "task: two critical sections do not overlap",
         .options = {.schedules = 3'500},
         .body = &two_critical_sections_do_not_overlap}) &&
    add({.name = "task: a cancel ends the current wait",
         .options = {.schedules = 3'500},
         .body = &a_cancel_ends_the_current_wait}) &&
    add({.name = "task: a cancel concurrent with the end of the wait",
         .options = {.schedules = 3'500},
         .body = &a_cancel_concurrent_with_the_end_of_the_wait}) &&
    add({.name = "task: awaiting a future returns its value",
         .options = exhaustively(),
         .body = &awaiting_a_future_returns_its_value_or_throws}) &&
    add({.name = "sync_wait: a timed-out wait leaks nothing",
         .options = {.schedules = 5'000},
         .body = &a_timed_out_wait_for_a_task_leaks_nothing}) &&
    add({.name = "task: a task that moves resumes its awaiter where it was",
         .options = {.schedules = 3'000},
         .body = &a_task_that_moves_resumes_its_awaiter_where_it_was}) &&
    add({.name = "task: all of several on a pool",
         .options = {.schedules = 3'000},
         .body = &all_of_several_tasks_on_a_pool}) &&
    add({.name = "task: the first of several stops the others",
         .options = {.schedules = 3'000},
         .body = &the_first_of_several_stops_the_others}) &&
    add({.name = "task: a time limit requests a stop",
         .options = {.schedules = 500},
         .body = &a_time_limit_requests_a_stop}) &&
    add({.name = "spawn: the frame is destroyed before the future is ready",
         .options = {.schedules = 3'000},
         .body = &the_frame_is_destroyed_before_the_future_is_ready}) &&
    add({.name = "spawn: a rejected task fails",
         .options = {.schedules = 3'000},
         .body = &a_rejected_task_fails_and_is_destroyed});

}  // namespace
}  // namespace sluice::sim
