#include "sluice/future/task.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sluice/base/shared.hpp"
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

void one_that_waits_on_a_queue_gets_all_of_it() {
  bounded_queue<int> q(1);
  thread_pool pool(small(1));
  auto sum = spawn(pool, sum_of(q));
  for (const int i : {1, 2, 3}) check(q.push(i) == status::ok, "an open queue to wait for room");
  q.close();
  check(sum.get() == 6, "every item to have come");
}

task<> add_one(mutex& guard, shared<int>& to) {
  const auto hold = co_await guard.async_lock();
  to.change() += 1;
}

void two_that_lock_do_not_overlap() {
  mutex guard;
  shared<int> sum{0};
  thread_pool pool(small(2));
  auto a = spawn(pool, add_one(guard, sum));
  auto b = spawn(pool, add_one(guard, sum));
  a.get();
  b.get();
  check(sum.read() == 2, "both to have had their turn");
}

task<> until_set(event& e, shared<bool>& stopped) {
  const status how = co_await e.async_wait();
  stopped.write(how == status::stopped);
}

void a_cancel_ends_the_wait_it_is_in() {
  event never;
  shared<bool> stopped{false};
  thread_pool pool(small(1));
  auto f = spawn(pool, until_set(never, stopped));
  f.cancel();
  bool ran = true;
  try {
    f.get();
  } catch (const future_error& e) {
    ran = false;
    check(e.why() == future_error::cancelled, "that it was cancelled");
  }
  check(stopped.read() == ran, "one that had begun to have been stopped in its wait");
}

void a_cancel_and_what_it_waits_for_at_once() {
  event e;
  shared<bool> stopped{false};
  thread_pool pool(small(1));
  auto f = spawn(pool, until_set(e, stopped));
  std::jthread sets([&] { e.set(); });
  f.cancel();
  try {
    f.get();
  } catch (const future_error& cancelled) {
    check(cancelled.why() == future_error::cancelled && !stopped.read(), "it not to have begun");
  }
}

task<int> one_of(promise<int>& p) {
  co_return co_await p.get_future();
}

void awaiting_a_future_gives_its_value_or_its_failure() {
  promise<int> p;
  std::jthread producer([&] { p.set_value(9); });
  check(sync_wait(one_of(p)) == 9, "the value");
}

void a_wait_for_a_task_that_runs_out_of_time_leaves_nothing_behind() {
  event e;
  shared<bool> stopped{false};
  std::jthread sets([&] { e.set(); });
  const status how = sync_wait(until_set(e, stopped), deadline::after(1s));
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  check(!how || !stopped.read(), "only one that ran out of time to be asked to stop");
}

task<int> after_moving(executor& there) {
  co_await resume_on(there);
  check(executor::current() == &there, "to run where it has moved to");
  co_return 4;
}

void one_that_moves_comes_back_to_who_awaits_it() {
  thread_pool pool(small(1));
  const auto outer = [](executor& there) -> task<int> {
    executor* const here = co_await this_task::executor();
    const int got = co_await after_moving(there);
    check(executor::current() == here, "to go on where it was");
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
  const status how = co_await e.async_wait();
  if (!how) throw future_error(future_error::cancelled);
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
  check(spawn(pool, any(never)).get() == 1, "the one that ends");
}

void within_an_hour_it_is_asked_to_stop() {
  event never;
  const auto limited = [](event& e) -> task<status> {
    auto soon = within(waits_for(e), deadline::after(1h));
    const auto got = co_await std::move(soon);
    co_return got.status();
  };
  const auto began = seam::now();
  check(sync_wait(limited(never)) == status::timed_out, "that it timed out");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

// The frame's argument is freed before the future is ready.
void when_the_future_is_ready_the_frame_is_gone() {
  thread_pool pool(small(1));
  std::weak_ptr<int> watched;
  future<void> f;
  {
    auto held = std::make_shared<int>(1);
    watched = held;
    f = spawn(pool, [](std::shared_ptr<int> mine) -> task<> {
      co_await this_task::yield();
      check(*mine == 1, "what it was given");
    }(std::move(held)));
  }
  f.get();
  check(watched.expired(), "the arguments to be gone");
}

void one_that_a_pool_refuses_says_so_and_is_freed() {
  thread_pool pool(small(1));
  std::jthread closes([&] { pool.close(); });
  auto f = spawn(pool, yields(5));
  std::optional<future_error::reason> why;
  try {
    check(f.get() == 5, "its result");
  } catch (const future_error& e) {
    why = e.why();
  }
  check(!why || why == future_error::rejected, "its result, or that it was refused");
}

[[maybe_unused]] const bool added =
    add({.name = "task: one that waits on a queue gets all of it",
         .how = {.schedules = 3'500},
         .body = &one_that_waits_on_a_queue_gets_all_of_it}) &&
    add({.name = "task: two that lock do not overlap",
         .how = {.schedules = 3'500},
         .body = &two_that_lock_do_not_overlap}) &&
    add({.name = "task: a cancel ends the wait it is in",
         .how = {.schedules = 3'500},
         .body = &a_cancel_ends_the_wait_it_is_in}) &&
    add({.name = "task: a cancel and what it waits for at once",
         .how = {.schedules = 3'500},
         .body = &a_cancel_and_what_it_waits_for_at_once}) &&
    add({.name = "task: awaiting a future gives its value",
         .how = exhaustively(),
         .body = &awaiting_a_future_gives_its_value_or_its_failure}) &&
    add({.name = "sync_wait: one that runs out of time leaves nothing behind",
         .how = {.schedules = 5'000},
         .body = &a_wait_for_a_task_that_runs_out_of_time_leaves_nothing_behind}) &&
    add({.name = "task: one that moves comes back to who awaits it",
         .how = {.schedules = 3'000},
         .body = &one_that_moves_comes_back_to_who_awaits_it}) &&
    add({.name = "task: all of several on a pool",
         .how = {.schedules = 3'000},
         .body = &all_of_several_tasks_on_a_pool}) &&
    add({.name = "task: the first of several stops the others",
         .how = {.schedules = 3'000},
         .body = &the_first_of_several_stops_the_others}) &&
    add({.name = "task: within an hour it is asked to stop",
         .how = {.schedules = 500},
         .body = &within_an_hour_it_is_asked_to_stop}) &&
    add({.name = "spawn: when the future is ready the frame is gone",
         .how = {.schedules = 3'000},
         .body = &when_the_future_is_ready_the_frame_is_gone}) &&
    add({.name = "spawn: one that a pool refuses says so",
         .how = {.schedules = 3'000},
         .body = &one_that_a_pool_refuses_says_so_and_is_freed});

}  // namespace
}  // namespace sluice::sim
