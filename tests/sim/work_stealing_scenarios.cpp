#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sluice/base/race_checked.hpp"
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

void drain_runs_all_submitted_functions() {
  std::array<race_checked<int>, 3> runs;
  event submitted;
  work_stealing_pool pool(small(2));
  std::jthread other(
      [&] { check(pool.submit([&] { ++runs[0].change(); }) == status::ok, "capacity"); });
  // A function that submits another one to its own deque: either worker may run it.
  check(pool.submit([&] {
    ++runs[1].change();
    check(pool.submit([&] { ++runs[2].change(); }) == status::ok,
          "a worker's submission to be accepted");
    submitted.set();
  }) == status::ok,
        "capacity");
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
  check(fork(pool, [] { return fib(4); }).join() == 3, "the fourth Fibonacci number");
}

void a_join_waits_for_a_stolen_child() {
  work_stealing_pool pool(small(2));
  race_checked<int> made{0};
  auto outer = fork(pool, [&] {
    auto child = fork([&] { made.write(1); });
    child.join();
    return made.read();
  });
  check(outer.join() == 1, "the effect of the child after its join");
}

void join_rethrows_the_exception_of_a_child() {
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
}  // namespace

void a_fork_from_outside_runs_once_while_it_closes() {
  race_checked<int> runs{0};
  const auto owned = std::make_unique<work_stealing_pool>(small(1));
  auto& pool = *owned;
  std::jthread other([&] { fork(pool, [&] { ++runs.change(); }).join(); });
  pool.drain();
  other.join();
  check(runs.read() == 1, "the child to have run once");
}

void a_full_deque_loses_nothing() {
  atomic<int> runs{0};
  {
    event submitted;
    work_stealing_pool pool({.threads = 2, .capacity = 2, .deque_capacity = 2, .spares_max = 0});
    check(pool.submit([&] {
      for (int i = 0; i < 4; ++i) {
        check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "ok under any load");
      }
      submitted.set();
    }) == status::ok,
          "capacity");
    submitted.wait();
  }
  check(runs.load() == 4, "all of them to have run once");
}

// The only worker sleeps in a wait of the library: a spare runs the function that wakes it.
void a_spare_runs_while_a_worker_is_blocked() {
  event go;
  race_checked<int> runs{0};
  work_stealing_pool pool(small(1));
  check(pool.submit([&] {
    go.wait();
    ++runs.change();
  }) == status::ok,
        "capacity");
  check(pool.submit([&] { go.set(); }) == status::ok, "capacity");
  pool.drain();
  check(runs.read() == 1, "both to have run");
}

void stop_returns_exactly_the_functions_that_did_not_run() {
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
  check(runs.load() + static_cast<int>(left) == accepted.load(), "every item exactly once");
}

// The worker is about to sleep, and the function that would wake it is returned by stop.
void a_stop_that_returns_all_functions_ends_the_pool() {
  atomic<int> runs{0};
  work_stealing_pool pool({.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  event begun;
  check(pool.submit([&] { begun.set(); }) == status::ok, "capacity");
  begun.wait();
  check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity");
  const auto left = pool.stop().size();
  check(runs.load() + static_cast<int>(left) == 1, "the function to have run or to be returned");
}

void a_shutdown_with_a_time_limit_stops_longer_functions() {
  race_checked<bool> asked{false};
  event begun;
  event never;
  work_stealing_pool pool({.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  const auto began = seam::now();
  check(pool.submit([&] {
    begun.set();
    asked.write(never.wait(pool.stop_token()) == status::stopped);
  }) == status::ok,
        "capacity");
  begun.wait();
  check(pool.submit([] {}) == status::ok, "capacity");
  const auto left = pool.shutdown(deadline::after(1h));
  check(left.size() == 1 && asked.read(), "one stop request and one returned function");
  check(seam::now() - began >= 1h, "a whole hour");
}

void a_post_runs_once_also_during_the_end() {
  counted_work item;
  counted_work late;
  {
    const auto owned = std::make_unique<work_stealing_pool>(small(1));
    auto& pool = *owned;
    std::jthread other([&] { pool.post(item); });
    pool.drain();
    other.join();
    pool.post(late);
    check(late.runs.load() == 1, "a post after the end to run on the calling thread");
  }
  check(item.runs.load() == 1, "a post to run exactly once");
}

void a_pool_may_be_destroyed_by_the_effect_of_a_post() {
  setting_work item;
  std::jthread poster;
  {
    const auto owned = std::make_unique<work_stealing_pool>(small(2));
    auto& pool = *owned;
    poster = std::jthread([&pool, &item] { pool.post(item); });
    item.done.wait();
  }
}

// A worker runs its own post next; if it blocks, another worker takes the post.
void a_post_of_a_blocked_worker_runs() {
  setting_work item;
  work_stealing_pool pool(small(2));
  check(pool.submit([&] {
    pool.post(item);
    item.done.wait();
  }) == status::ok,
        "capacity");
  pool.drain();
}

void an_ending_spare_loses_no_work() {
  atomic<int> runs{0};
  event go;
  {
    work_stealing_pool pool(
        {.threads = 1, .capacity = 4, .deque_capacity = 4, .spares_max = 1, .keep_alive = 1ms});
    check(pool.submit([&] { go.wait(); }) == status::ok, "capacity");
    check(pool.submit([&] {
      runs.fetch_add(1, relaxed);
      go.set();
    }) == status::ok,
          "capacity");
    std::jthread other(
        [&] { check(pool.submit([&] { runs.fetch_add(1, relaxed); }) == status::ok, "capacity"); });
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

void two_coroutines_exchange_items() {
  bounded_queue<int> there(1);
  bounded_queue<int> back(1);
  work_stealing_pool pool(small(2));
  const auto ping = [](bounded_queue<int>& out, bounded_queue<int>& in) -> task<int> {
    int sum = 0;
    for (const int i : {1, 2}) {
      const status sent = co_await out.async_push(int{i});
      check(sent == status::ok, "capacity");
      auto got = co_await in.async_pop();
      sum += *got;
    }
    co_return sum;
  };
  const auto pong = [](bounded_queue<int>& out, bounded_queue<int>& in) -> task<int> {
    for (int n = 0; n < 2; ++n) {
      auto got = co_await in.async_pop();
      const status sent = co_await out.async_push(*got * 10);
      check(sent == status::ok, "capacity");
    }
    co_return 0;
  };
  auto a = spawn(pool, ping(there, back));
  auto b = spawn(pool, pong(back, there));
  check(a.get() == 30 && b.get() == 0, "the returned item");
}

// New work wakes a worker: it does not wait until a worker polls.
void no_work_waits_for_a_timer() {
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 4, .spares_max = 0});
  const auto began = seam::now();
  event both;
  atomic<int> left{2};
  const auto count = [&] {
    if (left.fetch_sub(1) == 1) both.set();
  };
  std::jthread other([&] { check(pool.submit(count) == status::ok, "capacity"); });
  check(pool.submit([&] { check(pool.submit(count) == status::ok, "capacity"); }) == status::ok,
        "capacity");
  both.wait();
  check(seam::now() - began < 1ms, "no wait for a timer");
}

void a_parallel_loop_visits_each_element_once() {
  std::array<race_checked<int>, 4> visits;
  work_stealing_pool pool(small(2));
  parallel_for(pool, std::size_t{0}, visits.size(), [&](std::size_t i) { ++visits[i].change(); },
               {.grain = 1});
  for (auto& each : visits) check(each.read() == 1, "every element to be visited once");
}

void a_parallel_sum_is_correct() {
  work_stealing_pool pool(small(2));
  const int sum = parallel_reduce(
      pool, 1, 5, 0, [](int i) { return i; }, [](int a, int b) { return a + b; }, {.grain = 1});
  check(sum == 10, "the sum");
}

void a_stopped_loop_reports_it() {
  std::array<race_checked<int>, 3> visits;
  work_stealing_pool pool(small(2));
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  const status outcome =
      parallel_for(pool, std::size_t{0}, visits.size(),
                   [&](std::size_t i) { ++visits[i].change(); }, asks.get_token(), {.grain = 1});
  int visited = 0;
  for (auto& each : visits) {
    check(each.read() <= 1, "no element to be visited twice");
    visited += each.read();
  }
  check(outcome ? visited == 3 : outcome == status::stopped, "all elements, or status stopped");
}

[[maybe_unused]] const bool added =
    add({.name = "work_stealing_pool: drain runs all submitted functions",
         .options = {.schedules = 5'000},
         .body = &drain_runs_all_submitted_functions}) &&
    add({.name = "work_stealing_pool: forks and joins give the sum",
         .options = {.schedules = 5'000},
         .body = &forks_and_joins_give_the_sum}) &&
    add({.name = "work_stealing_pool: a join waits for a stolen child",
         .options = {.schedules = 6'000},
         .body = &a_join_waits_for_a_stolen_child}) &&
    add({.name = "work_stealing_pool: join rethrows the exception of a child",
         .options = {.schedules = 2'500},
         .body = &join_rethrows_the_exception_of_a_child}) &&
    add({.name = "work_stealing_pool: a fork from outside while it closes",
         .options = {.schedules = 5'000},
         .body = &a_fork_from_outside_runs_once_while_it_closes}) &&
    add({.name = "work_stealing_pool: a full deque loses nothing",
         .options = {.schedules = 3'500},
         .body = &a_full_deque_loses_nothing}) &&
    add({.name = "work_stealing_pool: a spare runs while a worker is blocked",
         .options = {.schedules = 3'500},
         .body = &a_spare_runs_while_a_worker_is_blocked}) &&
    add({.name = "work_stealing_pool: stop returns exactly the functions that did not run",
         .options = {.schedules = 3'500},
         .body = &stop_returns_exactly_the_functions_that_did_not_run}) &&
    add({.name = "work_stealing_pool: a stop that returns all functions ends it",
         .options = {.schedules = 3'500},
         .body = &a_stop_that_returns_all_functions_ends_the_pool}) &&
    add({.name = "work_stealing_pool: a stop that returns all functions ends it, every schedule",
         .options = exhaustively(2),
         .body = &a_stop_that_returns_all_functions_ends_the_pool}) &&
    add({.name = "work_stealing_pool: a shutdown with a time limit",
         .options = {.schedules = 3'000, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_stops_longer_functions}) &&
    add({.name = "work_stealing_pool: a post runs once, also during the end",
         .options = {.schedules = 6'000},
         .body = &a_post_runs_once_also_during_the_end}) &&
    add({.name = "work_stealing_pool: the effect of a post may destroy it",
         .options = {.schedules = 6'000},
         .body = &a_pool_may_be_destroyed_by_the_effect_of_a_post}) &&
    add({.name = "work_stealing_pool: a post of a blocked worker runs",
         .options = {.schedules = 3'500},
         .body = &a_post_of_a_blocked_worker_runs}) &&
    add({.name = "work_stealing_pool: an ending spare loses no work",
         .options = {.schedules = 3'500},
         .body = &an_ending_spare_loses_no_work}) &&
    add({.name = "work_stealing_pool: two children are joined in any order",
         .options = {.schedules = 3'500},
         .body = &two_children_are_joined_in_any_order}) &&
    add({.name = "work_stealing_pool: two coroutines exchange items",
         .options = {.schedules = 2'500},
         .body = &two_coroutines_exchange_items}) &&
    add({.name = "work_stealing_pool: no work waits for a timer",
         .options = {.schedules = 5'000, .early_timeouts = false},
         .body = &no_work_waits_for_a_timer}) &&
    add({.name = "work_stealing_pool: a parallel loop visits each element once",
         .options = {.schedules = 3'500},
         .body = &a_parallel_loop_visits_each_element_once}) &&
    add({.name = "work_stealing_pool: a parallel sum is correct",
         .options = {.schedules = 2'500},
         .body = &a_parallel_sum_is_correct}) &&
    add({.name = "work_stealing_pool: a stopped loop reports it",
         .options = {.schedules = 2'500},
         .body = &a_stopped_loop_reports_it});

}  // namespace
}  // namespace sluice::sim
