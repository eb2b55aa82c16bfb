#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sluice/base/shared.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/parallel.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "tests/sim/posted_work.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

work_stealing_pool::options small(std::size_t threads) {
  return {.threads = threads, .capacity = 4, .deque_capacity = 4, .spares_max = 1};
}

void all_that_was_submitted_has_run_at_the_end_of_drain() {
  std::array<shared<int>, 3> runs;
  event submitted;
  work_stealing_pool pool(small(2));
  std::jthread other(
      [&] { check(pool.submit([&] { ++runs[0].change(); }) == status::ok, "room"); });
  // One that submits in turn, to its own deque: either of the two may run it.
  check(pool.submit([&] {
    ++runs[1].change();
    check(pool.submit([&] { ++runs[2].change(); }) == status::ok, "a worker to be taken in");
    submitted.set();
  }) == status::ok,
        "room");
  other.join();
  submitted.wait();
  pool.drain();
  for (auto& each : runs) check(each.read() == 1, "every function to have run once");
}

long fib(int n) {
  if (n < 2) return n;
  auto left = fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

void forks_and_joins_give_the_sum() {
  const auto owned = std::make_unique<work_stealing_pool>(small(2));
  auto& pool = *owned;
  check(fork(pool, [] { return fib(4); }).join() == 3, "the fourth number of Fibonacci");
}

void a_child_that_another_took_is_waited_for() {
  work_stealing_pool pool(small(2));
  shared<int> made{0};
  auto outer = fork(pool, [&] {
    auto child = fork([&] { made.write(1); });
    child.join();
    return made.read();
  });
  check(outer.join() == 1, "what the child did to be seen after its join");
}

void what_a_child_throws_comes_out_of_its_join() {
  work_stealing_pool pool(small(2));
  const bool caught = fork(pool, [] {
                        auto child = fork([]() -> int { throw std::runtime_error("no"); });
                        try {
                          return child.join() == 1;
                        } catch (const std::runtime_error&) {
                          return true;
                        }
                      }).join();
  check(caught, "the exception");
}

void a_fork_from_outside_runs_once_while_it_closes() {
  shared<int> runs{0};
  const auto owned = std::make_unique<work_stealing_pool>(small(1));
  auto& pool = *owned;
  std::jthread other([&] { fork(pool, [&] { ++runs.change(); }).join(); });
  pool.drain();
  other.join();
  check(runs.read() == 1, "the child to have run once, wherever");
}

void a_deque_that_is_full_loses_nothing() {
  atomic<int> runs{0};
  {
    event submitted;
    work_stealing_pool pool({.threads = 2, .capacity = 2, .deque_capacity = 2, .spares_max = 0});
    check(pool.submit([&] {
      for (int i = 0; i < 4; ++i) {
        check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "ok at any load");
      }
      submitted.set();
    }) == status::ok,
          "room");
    submitted.wait();
  }
  check(runs.load() == 4, "all of them to have run once");
}

// The only worker sleeps in a wait of the library: a spare does what wakes it.
void a_spare_runs_while_a_worker_is_blocked() {
  event go;
  shared<int> runs{0};
  work_stealing_pool pool(small(1));
  check(pool.submit([&] {
    go.wait();
    ++runs.change();
  }) == status::ok,
        "room");
  check(pool.submit([&] { go.set(); }) == status::ok, "room");
  pool.drain();
  check(runs.read() == 1, "both to have run");
}

void what_stop_hands_back_did_not_run_and_the_rest_did() {
  atomic<int> runs{0};
  atomic<int> accepted{0};
  std::size_t left = 0;
  {
    const auto owned = std::make_unique<work_stealing_pool>(small(1));
    auto& pool = *owned;
    const auto submit = [&](auto f) {
      if (pool.submit(std::move(f))) accepted.fetch_add(1, relaxed);
    };
    const auto count = [&] { runs.fetch_add(1, relaxed); };
    std::jthread other([&] {
      for (int i = 0; i < 2; ++i) submit(count);
    });
    submit([&] {
      count();
      submit(count);
    });
    left = pool.stop().size();
  }
  check(runs.load() + static_cast<int>(left) == accepted.load(), "nothing lost, nothing twice");
}

// The worker was about to rest, and what it would have got up for is taken back.
void a_stop_that_takes_all_back_comes_to_an_end() {
  atomic<int> runs{0};
  work_stealing_pool pool({.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  event begun;
  check(pool.submit([&] { begun.set(); }) == status::ok, "room");
  begun.wait();
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room");
  const auto left = pool.stop().size();
  check(runs.load() + static_cast<int>(left) == 1, "it to have run or to be handed back");
}

void a_shutdown_within_an_hour_stops_what_takes_longer() {
  shared<bool> asked{false};
  event begun;
  event never;
  work_stealing_pool pool({.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  const auto began = seam::now();
  check(pool.submit([&] {
    begun.set();
    asked.write(never.wait(pool.stop_token()) == status::stopped);
  }) == status::ok,
        "room");
  begun.wait();
  check(pool.submit([] {}) == status::ok, "room");
  const auto left = pool.shutdown_within(deadline::after(1h));
  check(left.size() == 1 && asked.read(), "one to be asked to stop, one to be handed back");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

void a_post_runs_once_however_the_pool_ends() {
  counted_work item;
  counted_work late;
  {
    const auto owned = std::make_unique<work_stealing_pool>(small(1));
    auto& pool = *owned;
    std::jthread other([&] { pool.post(item); });
    pool.drain();
    other.join();
    pool.post(late);
    check(late.runs.load() == 1, "a post after the end to be run by who makes it");
  }
  check(item.runs.load() == 1, "a post to run exactly once");
}

void a_pool_may_be_destroyed_by_what_a_post_has_done() {
  setting_work item;
  std::jthread poster;
  {
    const auto owned = std::make_unique<work_stealing_pool>(small(2));
    auto& pool = *owned;
    poster = std::jthread([&pool, &item] { pool.post(item); });
    item.done.wait();
  }
}

// A worker's post is its own to run next; when it blocks instead, another takes it.
void what_a_worker_posts_runs_though_the_worker_waits() {
  setting_work item;
  work_stealing_pool pool(small(2));
  check(pool.submit([&] {
    pool.post(item);
    item.done.wait();
  }) == status::ok,
        "room");
  pool.drain();
}

void a_spare_that_leaves_takes_nothing_with_it() {
  atomic<int> runs{0};
  event go;
  {
    work_stealing_pool pool(
        {.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 1, .keep_alive = 1ms});
    check(pool.submit([&] { go.wait(); }) == status::ok, "room");
    check(pool.submit([&] {
      runs.fetch_add(1, relaxed);
      go.set();
    }) == status::ok,
          "room");
    std::jthread other(
        [&] { check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "room"); });
  }
  check(runs.load() == 2, "all to have run");
}

void two_children_are_joined_in_any_order() {
  work_stealing_pool pool(small(2));
  const int got = fork(pool, [] {
                    auto a = fork([] { return 1; });
                    auto b = fork([] { return 2; });
                    const int first = a.join();
                    return first * 10 + b.join();
                  }).join();
  check(got == 12, "both results");
}

void what_two_coroutines_hand_each_other_comes_across() {
  bounded_queue<int> there(1);
  bounded_queue<int> back(1);
  work_stealing_pool pool(small(2));
  const auto ping = [](bounded_queue<int>& out, bounded_queue<int>& in) -> task<int> {
    int sum = 0;
    for (const int i : {1, 2}) {
      const status sent = co_await out.async_push(int{i});
      check(sent == status::ok, "room");
      auto got = co_await in.async_pop();
      sum += *got;
    }
    co_return sum;
  };
  const auto pong = [](bounded_queue<int>& out, bounded_queue<int>& in) -> task<int> {
    for (int n = 0; n < 2; ++n) {
      auto got = co_await in.async_pop();
      const status sent = co_await out.async_push(*got * 10);
      check(sent == status::ok, "room");
    }
    co_return 0;
  };
  auto a = spawn(pool, ping(there, back));
  auto b = spawn(pool, pong(back, there));
  check(a.get() == 30 && b.get() == 0, "what was sent back");
}

// Whatever comes wakes a worker: it does not wait until one looks by itself.
void nothing_waits_for_time_to_pass() {
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  const auto began = seam::now();
  event both;
  atomic<int> left{2};
  const auto count = [&] {
    if (left.fetch_sub(1) == 1) both.set();
  };
  std::jthread other([&] { check(pool.submit(count) == status::ok, "room"); });
  check(pool.submit([&] { check(pool.submit(count) == status::ok, "room"); }) == status::ok,
        "room");
  both.wait();
  check(seam::now() - began < 1ms, "no timer to be what brought it about");
}

void a_loop_in_parallel_visits_each_once() {
  std::array<shared<int>, 4> visits;
  work_stealing_pool pool(small(2));
  parallel_for(pool, std::size_t{0}, visits.size(), [&](std::size_t i) { ++visits[i].change(); },
               {.grain = 1});
  for (auto& each : visits) check(each.read() == 1, "every element to be visited once");
}

void a_sum_in_parallel_is_the_sum() {
  work_stealing_pool pool(small(2));
  const int sum = parallel_reduce(
      pool, 1, 5, 0, [](int i) { return i; }, [](int a, int b) { return a + b; }, {.grain = 1});
  check(sum == 10, "the sum");
}

void a_loop_that_is_stopped_says_so() {
  std::array<shared<int>, 3> visits;
  work_stealing_pool pool(small(2));
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  const status how =
      parallel_for(pool, std::size_t{0}, visits.size(),
                   [&](std::size_t i) { ++visits[i].change(); }, asks.get_token(), {.grain = 1});
  int visited = 0;
  for (auto& each : visits) {
    check(each.read() <= 1, "no element to be visited twice");
    visited += each.read();
  }
  check(how ? visited == 3 : how == status::stopped, "all, or to be told that it was stopped");
}

[[maybe_unused]] const bool added =
    add({.name = "work_stealing_pool: all has run at the end of drain",
         .how = {.schedules = 5'000},
         .body = &all_that_was_submitted_has_run_at_the_end_of_drain}) &&
    add({.name = "work_stealing_pool: forks and joins give the sum",
         .how = {.schedules = 5'000},
         .body = &forks_and_joins_give_the_sum}) &&
    add({.name = "work_stealing_pool: a child that another took is waited for",
         .how = {.schedules = 6'000},
         .body = &a_child_that_another_took_is_waited_for}) &&
    add({.name = "work_stealing_pool: what a child throws comes out of its join",
         .how = {.schedules = 2'500},
         .body = &what_a_child_throws_comes_out_of_its_join}) &&
    add({.name = "work_stealing_pool: a fork from outside while it closes",
         .how = {.schedules = 5'000},
         .body = &a_fork_from_outside_runs_once_while_it_closes}) &&
    add({.name = "work_stealing_pool: a deque that is full loses nothing",
         .how = {.schedules = 3'500},
         .body = &a_deque_that_is_full_loses_nothing}) &&
    add({.name = "work_stealing_pool: a spare runs while a worker is blocked",
         .how = {.schedules = 3'500},
         .body = &a_spare_runs_while_a_worker_is_blocked}) &&
    add({.name = "work_stealing_pool: what stop hands back did not run, the rest did",
         .how = {.schedules = 3'500},
         .body = &what_stop_hands_back_did_not_run_and_the_rest_did}) &&
    add({.name = "work_stealing_pool: a stop that takes all back ends it",
         .how = {.schedules = 3'500},
         .body = &a_stop_that_takes_all_back_comes_to_an_end}) &&
    add({.name = "work_stealing_pool: a stop that takes all back ends it, every schedule",
         .how = exhaustively(2),
         .body = &a_stop_that_takes_all_back_comes_to_an_end}) &&
    add({.name = "work_stealing_pool: a shutdown within an hour",
         .how = {.schedules = 3'000, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_stops_what_takes_longer}) &&
    add({.name = "work_stealing_pool: a post runs once, however it ends",
         .how = {.schedules = 6'000},
         .body = &a_post_runs_once_however_the_pool_ends}) &&
    add({.name = "work_stealing_pool: what a post has done may end it",
         .how = {.schedules = 6'000},
         .body = &a_pool_may_be_destroyed_by_what_a_post_has_done}) &&
    add({.name = "work_stealing_pool: what a worker posts runs though it waits",
         .how = {.schedules = 3'500},
         .body = &what_a_worker_posts_runs_though_the_worker_waits}) &&
    add({.name = "work_stealing_pool: a spare that leaves takes nothing with it",
         .how = {.schedules = 3'500},
         .body = &a_spare_that_leaves_takes_nothing_with_it}) &&
    add({.name = "work_stealing_pool: two children are joined in any order",
         .how = {.schedules = 3'500},
         .body = &two_children_are_joined_in_any_order}) &&
    add({.name = "work_stealing_pool: two coroutines take turns",
         .how = {.schedules = 2'500},
         .body = &what_two_coroutines_hand_each_other_comes_across}) &&
    add({.name = "work_stealing_pool: nothing waits for time to pass",
         .how = {.schedules = 5'000, .early_timeouts = false},
         .body = &nothing_waits_for_time_to_pass}) &&
    add({.name = "work_stealing_pool: a loop in parallel visits each once",
         .how = {.schedules = 3'500},
         .body = &a_loop_in_parallel_visits_each_once}) &&
    add({.name = "work_stealing_pool: a sum in parallel is the sum",
         .how = {.schedules = 2'500},
         .body = &a_sum_in_parallel_is_the_sum}) &&
    add({.name = "work_stealing_pool: a loop that is stopped says so",
         .how = {.schedules = 2'500},
         .body = &a_loop_that_is_stopped_says_so});

}  // namespace
}  // namespace sluice::sim
