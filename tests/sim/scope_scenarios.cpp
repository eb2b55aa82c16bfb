#include "sluice/future/scope.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

thread_pool::options small(std::size_t threads) {
  return {.core = threads, .capacity = 4, .time_every = 0};
}

void join_sees_the_effects_of_all_children() {
  race_checked<int> first{0};
  race_checked<int> second{0};
  thread_pool pool(small(2));
  const auto owned = std::make_unique<scope>(pool);
  auto& s = *owned;
  s.start([&] { first.write(1); });
  s.start([&] {
    s.start([&] { second.write(2); });  // a sibling, possibly during the join
  });
  s.join();
  check(first.read() == 1 && second.read() == 2, "every effect of the children");
  check(s.children() == 0, "none left");
}

task<> until_stopped(event& never, race_checked<int>& stopped) {
  const status outcome = co_await never.async_wait();
  if (outcome == status::stopped) stopped.change() += 1;
}

void the_first_failure_stops_the_rest_and_is_thrown() {
  event never;
  race_checked<int> stopped{0};
  thread_pool pool(small(2));
  bool thrown = false;
  try {
    scope s(pool);
    s.start(until_stopped(never, stopped));
    s.start([] { throw std::runtime_error("no"); });
    s.join();
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  check(thrown && stopped.read() <= 1, "the failure, after all children have ended");
}

void a_cancel_from_outside_ends_all_children() {
  event never;
  race_checked<int> stopped{0};
  thread_pool pool(small(1));
  const auto owned = std::make_unique<scope>(pool);
  auto& s = *owned;
  s.start(until_stopped(never, stopped));
  std::jthread other([&] { s.cancel(); });
  s.join();
  other.join();
  check(stopped.read() <= 1, "a child that began to be stopped in its wait");
}

void a_join_with_a_time_limit_requests_a_stop() {
  event never;
  race_checked<int> stopped{0};
  thread_pool pool(small(1));
  const auto began = seam::now();
  scope s(pool);
  s.start(until_stopped(never, stopped));
  check(s.join(deadline::after(1h)) == status::timed_out, "a time-out");
  check(stopped.read() == 1 && seam::now() - began >= 1h, "a stop after an hour");
}

void at_most_the_configured_number_at_a_time() {
  atomic<int> inside{0};
  atomic<int> runs{0};
  thread_pool pool(small(2));
  scope s(pool, scope_options(1));
  const auto child = [&] {
    check(inside.fetch_add(1) == 0, "one at a time");
    runs.fetch_add(1, relaxed);
    inside.fetch_sub(1);
  };
  s.start(child);
  s.start(child);
  s.start(child);
  s.join();
  check(runs.load() == 3, "every child to have run");
}

task<int> answers(event& go) {
  const status outcome = co_await go.async_wait();
  co_return outcome ? 5 : 0;
}

void a_body_in_a_task_resumes_when_all_children_have_ended() {
  event go;
  race_checked<int> seen{0};
  thread_pool pool(small(2));
  const auto body = [](executor& on, event& e, race_checked<int>& into) -> task<int> {
    const auto in_scope = [&](scope& s) -> task<int> {
      auto answer = s.spawn(answers(e));
      s.start([&] { into.write(1); });
      e.set();
      co_return co_await std::move(answer);
    };
    auto whole = with_scope(on, in_scope);
    const int got = co_await std::move(whole);
    co_return got + into.read();
  };
  check(spawn(pool, body(pool, go, seen)).get() == 6, "the result, with the effect of the child");
}

void a_scope_whose_executor_closes_fails_and_leaks_no_child() {
  atomic<int> runs{0};
  thread_pool pool(small(1));
  std::jthread closes([&] { pool.close(); });
  scope s(pool);
  s.start([&] { runs.fetch_add(1, relaxed); });
  bool refused = false;
  try {
    s.join();
  } catch (const future_error& e) {
    refused = e.why() == future_error::rejected;
    check(refused, "a rejection");
  }
  check(runs.load() == (refused ? 0 : 1), "a rejected child not to have run");
}

void an_awaited_capacity_for_a_child_is_granted() {
  race_checked<int> runs{0};
  event go;
  thread_pool pool(small(1));
  const auto body = [](executor& on, event& e, race_checked<int>& into) -> task<> {
    const auto in_scope = [&](scope& s) -> task<> {
      s.start(until_stopped(e, into));
      auto second = s.async_start(until_stopped(e, into));
      const status outcome = co_await std::move(second);
      check(outcome == status::ok, "capacity after the first child has ended");
    };
    auto whole = with_scope(on, in_scope, scope_options(1));
    co_await std::move(whole);
  };
  std::jthread other([&] { go.set(); });
  spawn(pool, body(pool, go, runs)).get();
  check(runs.read() == 0, "no stopped child");
}

void a_child_that_is_cancelled_alone_leaves_the_others() {
  event never;
  event go;
  thread_pool pool(small(1));
  const int got = sync_scope(pool, [&](scope& s) {
    auto first = s.spawn(answers(never));
    auto second = s.spawn(answers(go));
    std::jthread other([&] { go.set(); });
    first.cancel();
    int sum = second.get();
    try {
      sum += first.get();
    } catch (const future_error& e) {
      check(e.why() == future_error::cancelled, "a cancellation before it began");
    }
    return sum;
  });
  check(got == 5, "the result of the other child");
}

void a_stop_token_of_the_options_reaches_the_children() {
  event never;
  race_checked<int> stopped{0};
  std::stop_source asks;
  thread_pool pool(small(1));
  scope s(pool, scope_options(asks.get_token()));
  s.start(until_stopped(never, stopped));
  std::jthread other([&] { asks.request_stop(); });
  s.join();
}

[[maybe_unused]] const bool added =
    add({.name = "scope: join sees the effects of all children",
         .options = {.schedules = 3'500},
         .body = &join_sees_the_effects_of_all_children}) &&
    add({.name = "scope: the first failure stops the rest and is thrown",
         .options = {.schedules = 3'000},
         .body = &the_first_failure_stops_the_rest_and_is_thrown}) &&
    add({.name = "scope: a cancel from outside ends all children, every schedule",
         .options = exhaustively(1),
         .body = &a_cancel_from_outside_ends_all_children}) &&
    add({.name = "scope: a cancel from outside ends all children",
         .options = {.schedules = 3'500},
         .body = &a_cancel_from_outside_ends_all_children}) &&
    add({.name = "scope: a join with a time limit requests a stop",
         .options = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_join_with_a_time_limit_requests_a_stop}) &&
    add({.name = "scope: at most the configured number at a time",
         .options = {.schedules = 3'000},
         .body = &at_most_the_configured_number_at_a_time}) &&
    add({.name = "scope: a body in a task resumes when all children have ended",
         .options = {.schedules = 3'000},
         .body = &a_body_in_a_task_resumes_when_all_children_have_ended}) &&
    add({.name = "scope: a scope whose executor closes leaks no child",
         .options = {.schedules = 3'000},
         .body = &a_scope_whose_executor_closes_fails_and_leaks_no_child}) &&
    add({.name = "scope: an awaited capacity for a child is granted",
         .options = {.schedules = 2'500},
         .body = &an_awaited_capacity_for_a_child_is_granted}) &&
    add({.name = "scope: a child that is cancelled alone leaves the others",
         .options = {.schedules = 2'500},
         .body = &a_child_that_is_cancelled_alone_leaves_the_others}) &&
    add({.name = "scope: a stop token of the options reaches the children",
         .options = {.schedules = 2'500},
         .body = &a_stop_token_of_the_options_reaches_the_children});

}  // namespace
}  // namespace sluice::sim
