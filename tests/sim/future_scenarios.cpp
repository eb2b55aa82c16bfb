#include "sluice/future/future.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/base/shared.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"
#include "sluice/sim/testing/scenario.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// The cause of a failed future.
template <class F>
std::optional<future_error::reason> reason_of(F&& get) {
  try {
    get();
  } catch (const future_error& e) {
    return e.why();
  }
  return std::nullopt;
}

void what_was_done_before_the_value_is_seen_by_who_gets_it() {
  shared<int> before{0};
  promise<int> p;
  future<int> f = p.get_future();
  std::jthread producer([&] {
    before.write(1);
    p.set_value(2);
  });
  check(f.get() == 2 && before.read() == 1, "the value, and what came before it");
}

void a_promise_that_goes_unset_says_so() {
  future<int> f;
  std::jthread dropper;
  {
    promise<int> p;
    f = p.get_future();
    dropper = std::jthread([q = std::move(p)]() mutable { promise<int> gone(std::move(q)); });
  }
  check(reason_of([&] { (void)f.get(); }) == future_error::broken_promise, "a broken promise");
}

void one_of_two_who_set_it_does() {
  promise<std::string> p;
  future<std::string> f = p.get_future();
  bool other_set = false;
  std::jthread other([&] { other_set = p.try_set_value("theirs"); });
  const bool i_set = p.try_set_value("mine");
  const std::string got = f.get();
  other.join();
  check(i_set != other_set, "exactly one of them to set it");
  check(got == (i_set ? "mine" : "theirs"), "the value of the one who did");
}

void a_stage_runs_once_whoever_comes_first() {
  shared<int> runs{0};
  promise<int> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_value(20); });
  auto last = std::move(f).then([&](int v) {
                 ++runs.change();
                 return v + 1;
               }).then([](int v) { return 2 * v; });
  check(last.get() == 42 && runs.read() == 1, "each stage to run once, in order");
}

void what_a_stage_throws_goes_past_those_that_want_a_value() {
  promise<int> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_exception(std::runtime_error("no")); });
  bool skipped = true;
  const int got = std::move(f).then([&](int v) {
                     skipped = false;
                     return v;
                   })
                      .recover([](const std::runtime_error&) { return 7; })
                      .get();
  check(got == 7 && skipped, "the error to be taken up where it is wanted");
}

void a_wait_that_timed_out_left_the_future_as_it_was() {
  promise<std::unique_ptr<int>> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_value(std::make_unique<int>(3)); });
  const auto began = seam::now();
  auto soon = f.try_get_for(1s);
  if (!soon) {
    check(soon.status() == status::timed_out && seam::now() - began >= 1s, "the time to have come");
    check(f.valid() && *f.get() == 3, "the value to be there later");
  } else {
    check(**soon == 3 && !f.valid(), "the value");
  }
}

void a_wait_that_was_stopped_left_the_future_as_it_was() {
  promise<int> p;
  auto f = p.get_future();
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  std::jthread producer([&] { p.set_value(3); });
  const auto soon = f.get(asks.get_token());
  if (!soon) check(soon.status() == status::stopped && f.get() == 3, "the value to be there later");
}

void a_cancelled_chain_asks_its_producer() {
  promise<int> p;
  auto f = p.get_future().then([](int v) { return v + 1; });
  bool asked = false;
  std::jthread producer([&] {
    const auto token = p.stop_token();
    asked = token.stop_requested();
    if (asked) {
      p.set_exception(future_error(future_error::cancelled));
    } else {
      p.set_value(1);
    }
  });
  f.cancel();
  const auto why = reason_of([&] { check(f.get() == 2, "the value of the chain"); });
  producer.join();
  check(asked ? why == future_error::cancelled : !why, "what the producer made of it");
}

// The way back to the producer changes when the inner future takes the outer one's place.
void a_cancel_reaches_whoever_makes_the_value_now() {
  promise<int> outer;
  promise<int> inner;
  auto f = outer.get_future().and_then([&](int) { return inner.get_future(); });
  std::jthread producer([&] {
    outer.set_value(1);
    inner.set_value(2);
  });
  std::jthread cancels([&] { f.cancel(); });
  cancels.join();
  check(f.get() == 2, "the value all the same");
}

void a_cancel_that_comes_first_is_heard_by_the_inner_one() {
  promise<int> outer;
  promise<int> inner;
  auto f = outer.get_future().and_then([&](int) { return inner.get_future(); });
  std::jthread producer([&] { outer.set_value(1); });
  f.cancel();
  producer.join();
  check(inner.stop_token().stop_requested(), "the inner producer to be asked");
  inner.set_exception(future_error(future_error::cancelled));
  check(reason_of([&] { (void)f.get(); }) == future_error::cancelled, "what it made of it");
}

void a_stage_that_is_dropped_while_it_is_cancelled() {
  promise<int> p;
  std::optional<future<int>> f(p.get_future().then([](int v) { return v; }));
  std::jthread producer([&] { p.set_value(1); });
  std::jthread cancels([g = std::move(*f)]() mutable { g.cancel(); });
  f.reset();
}

void what_is_cancelled_of_many_reaches_each() {
  promise<int> a;
  promise<int> b;
  auto both = when_all(a.get_future(), b.get_future());
  std::jthread producer([&] { a.set_value(1); });
  both.cancel();
  check(b.stop_token().stop_requested(), "the one that is at work to be asked");
  b.set_value(2);
  const auto [first, second] = both.get();
  check(first == 1 && second == 2, "what they made of it");
}

void a_timeout_and_a_value_at_once_give_one_of_the_two() {
  promise<int> p;
  auto f = p.get_future().with_timeout(1s);
  std::jthread producer([&] {
    std::this_thread::sleep_for(1s);
    (void)p.try_set_value(1);
  });
  const auto why = reason_of([&] { check(f.get() == 1, "the value"); });
  check(!why || *why == future_error::timed_out, "the value or that it timed out");
}

void a_stop_and_a_value_at_once_give_one_of_the_two() {
  std::stop_source stop;
  promise<int> p;
  auto f = p.get_future().with_stop(stop.get_token());
  std::jthread producer([&] { (void)p.try_set_value(1); });
  std::jthread stopper([&] { stop.request_stop(); });
  const auto why = reason_of([&] { check(f.get() == 1, "the value"); });
  check(!why || *why == future_error::cancelled, "the value or that it was stopped");
}

void a_stop_while_both_sides_let_go() {
  std::stop_source stop;
  auto p = std::make_unique<promise<int>>();
  auto f = p->get_future().with_stop(stop.get_token());
  std::jthread producer([&] { p.reset(); });
  std::jthread stopper([&] { stop.request_stop(); });
  f = future<int>();
}

void an_hour_passes_before_it_times_out() {
  promise<int> p;
  const auto began = seam::now();
  auto f = p.get_future().with_timeout(1h);
  check(reason_of([&] { (void)f.get(); }) == future_error::timed_out, "that it timed out");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
  check(p.stop_token().stop_requested(), "the producer to be asked to stop");
}

void all_of_them_give_all_the_values() {
  promise<int> a;
  promise<int> b;
  auto both = when_all(a.get_future(), b.get_future());
  std::jthread other([&] { a.set_value(1); });
  b.set_value(2);
  const auto [first, second] = both.get();
  check(first == 1 && second == 2, "the values in the order of the futures");
}

void the_first_failure_of_all_cancels_the_rest() {
  promise<int> a;
  promise<int> b;
  std::vector<future<int>> futures;
  futures.push_back(a.get_future());
  futures.push_back(b.get_future());
  auto both = when_all(std::move(futures));
  std::jthread other([&] { a.set_exception(std::runtime_error("no")); });
  bool failed = false;
  try {
    (void)both.get();
  } catch (const std::runtime_error&) {
    failed = true;
  }
  check(failed && b.stop_token().stop_requested(), "the other to be cancelled");
  b.set_value(1);
}

void the_first_of_them_wins_and_the_others_are_cancelled() {
  promise<int> a;
  promise<int> b;
  auto first = when_any(a.get_future(), b.get_future());
  std::jthread other([&] { (void)a.try_set_value(1); });
  (void)b.try_set_value(2);
  const auto won = first.get();
  check(won.result.value() == (won.index == 0 ? 1 : 2), "the value of the one that won");
}

void the_first_success_waits_past_a_failure() {
  promise<int> a;
  promise<int> b;
  auto first = when_any_success(a.get_future(), b.get_future());
  std::jthread other(
      [&] { (void)a.try_set_exception(std::make_exception_ptr(std::runtime_error("no"))); });
  (void)b.try_set_value(2);
  const auto won = first.get();
  check(won.index == 1 && won.value == 2, "the one that gave a value");
}

void everybody_sees_the_one_value() {
  promise<int> p;
  shared_future<int> all(p.get_future());
  int by_stage = 0;
  std::jthread producer([&] { p.set_value(5); });
  std::jthread other([copy = all] { check(copy.get() == 5, "the value"); });
  auto stage = all.then([&](const int& v) { by_stage = v; });
  check(all.get() == 5, "the value");
  stage.get();
  check(by_stage == 5, "what is attached to it to run once");
}

void the_last_copy_may_go_while_it_is_set() {
  promise<int> p;
  std::optional<shared_future<int>> one(shared_future<int>(p.get_future()));
  std::jthread producer([&] { p.set_value(5); });
  one.reset();
}

void a_limited_wait_of_many_leaves_the_others_waiting() {
  promise<int> p;
  const shared_future<int> all(p.get_future());
  std::jthread producer([&] { p.set_value(5); });
  std::jthread other([copy = all] { check(copy.get() == 5, "the value"); });
  const auto soon = all.try_get_for(1s);
  check(soon ? *soon == 5 : soon.status() == status::timed_out, "the value or timed out");
}

void a_function_on_a_pool_gives_its_result_or_is_cancelled() {
  atomic<int> runs{0};
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  auto f = async(pool, [&] {
    runs.fetch_add(1, relaxed);
    return 3;
  });
  std::jthread other([&] { f.cancel(); });
  other.join();
  const auto why = reason_of([&] { check(f.get() == 3, "its result"); });
  pool.drain();
  check(runs.load() == (why ? 0 : 1), "one that was cancelled before not to have run");
}

void an_executor_that_refuses_or_drops_it_says_so() {
  std::optional<future<int>> left;
  {
    manual_executor later({.capacity = 2});
    std::jthread closes([&] { later.close(); });
    left = async(later, [] { return 1; });
  }
  const auto why = reason_of([&] { (void)left->get(); });
  check(why == future_error::rejected || why == future_error::broken_promise,
        "to hear that it was refused, or destroyed unrun");
}

void stages_run_on_the_executor_that_was_named() {
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  promise<int> p;
  auto f = p.get_future().via(pool).then([&](int v) {
    check(executor::current() == &pool, "to run on the pool");
    return v;
  });
  std::jthread producer([&] { p.set_value(4); });
  check(f.get() == 4, "the value");
}

void the_last_of_a_callbacks_copies_breaks_the_promise() {
  std::optional<completion<int>> kept;
  auto f = from_callback<int>([&](auto done) { kept.emplace(done); });
  std::jthread other([mine = *kept]() mutable { mine(6); });
  kept.reset();
  check(f.get() == 6, "the call to count, though the others are gone");
}

void a_future_that_is_dropped_with_its_stage_leaks_nothing() {
  shared<int> runs{0};
  promise<std::unique_ptr<int>> p;
  std::jthread producer([&] { p.set_value(std::make_unique<int>(1)); });
  {
    auto f = p.get_future().then([&](std::unique_ptr<int> v) { runs.change() += *v; });
  }
  producer.join();
  check(runs.read() == 1, "what was attached to run all the same");
}

[[maybe_unused]] const bool added =
    add({.name = "future: who gets the value sees what came before it",
         .how = exhaustively(),
         .body = &what_was_done_before_the_value_is_seen_by_who_gets_it}) &&
    add({.name = "future: who gets the value sees what came before it, at random",
         .how = {.schedules = 6'000},
         .body = &what_was_done_before_the_value_is_seen_by_who_gets_it}) &&
    add({.name = "promise: one that goes unset says so",
         .how = exhaustively(),
         .body = &a_promise_that_goes_unset_says_so}) &&
    add({.name = "promise: one of two who set it does",
         .how = exhaustively(),
         .body = &one_of_two_who_set_it_does}) &&
    add({.name = "future: a stage runs once, whoever comes first",
         .how = exhaustively(),
         .body = &a_stage_runs_once_whoever_comes_first}) &&
    add({.name = "future: what a stage throws goes past",
         .how = {.schedules = 2'500},
         .body = &what_a_stage_throws_goes_past_those_that_want_a_value}) &&
    add({.name = "future: a wait that timed out left it as it was",
         .how = {.schedules = 6'000},
         .body = &a_wait_that_timed_out_left_the_future_as_it_was}) &&
    add({.name = "future: a wait that timed out left it as it was, every schedule",
         .how = exhaustively(),
         .body = &a_wait_that_timed_out_left_the_future_as_it_was}) &&
    add({.name = "future: a wait that was stopped left it as it was",
         .how = {.schedules = 6'000},
         .body = &a_wait_that_was_stopped_left_the_future_as_it_was}) &&
    add({.name = "future: a cancelled chain asks its producer",
         .how = {.schedules = 6'000},
         .body = &a_cancelled_chain_asks_its_producer}) &&
    add({.name = "future: a cancel reaches whoever makes the value now",
         .how = {.schedules = 3'500},
         .body = &a_cancel_reaches_whoever_makes_the_value_now}) &&
    add({.name = "future: a cancel that comes first is heard by the inner one",
         .how = {.schedules = 5'000},
         .body = &a_cancel_that_comes_first_is_heard_by_the_inner_one}) &&
    add({.name = "future: a stage that is dropped while it is cancelled",
         .how = {.schedules = 5'000},
         .body = &a_stage_that_is_dropped_while_it_is_cancelled}) &&
    add({.name = "when_all: a cancel reaches each",
         .how = {.schedules = 3'500},
         .body = &what_is_cancelled_of_many_reaches_each}) &&
    add({.name = "future: a timeout and a value at once give one of them",
         .how = {.schedules = 6'000},
         .body = &a_timeout_and_a_value_at_once_give_one_of_the_two}) &&
    add({.name = "future: a stop and a value at once give one of them",
         .how = {.schedules = 6'000},
         .body = &a_stop_and_a_value_at_once_give_one_of_the_two}) &&
    add({.name = "future: a stop while both sides let go",
         .how = {.schedules = 6'000},
         .body = &a_stop_while_both_sides_let_go}) &&
    add({.name = "future: an hour passes before it times out",
         .how = {.schedules = 500},
         .body = &an_hour_passes_before_it_times_out}) &&
    add({.name = "when_all: all of them give all the values",
         .how = exhaustively(),
         .body = &all_of_them_give_all_the_values}) &&
    add({.name = "when_all: the first failure cancels the rest",
         .how = {.schedules = 3'500},
         .body = &the_first_failure_of_all_cancels_the_rest}) &&
    add({.name = "when_any: the first wins, the others are cancelled",
         .how = exhaustively(),
         .body = &the_first_of_them_wins_and_the_others_are_cancelled}) &&
    add({.name = "when_any: the first success waits past a failure",
         .how = {.schedules = 3'500},
         .body = &the_first_success_waits_past_a_failure}) &&
    add({.name = "shared_future: everybody sees the one value",
         .how = {.schedules = 6'000},
         .body = &everybody_sees_the_one_value}) &&
    add({.name = "shared_future: the last copy may go while it is set",
         .how = exhaustively(),
         .body = &the_last_copy_may_go_while_it_is_set}) &&
    add({.name = "shared_future: a limited wait leaves the others waiting",
         .how = {.schedules = 5'000},
         .body = &a_limited_wait_of_many_leaves_the_others_waiting}) &&
    add({.name = "async: a function gives its result or is cancelled",
         .how = {.schedules = 3'500},
         .body = &a_function_on_a_pool_gives_its_result_or_is_cancelled}) &&
    add({.name = "async: an executor that refuses or drops it says so",
         .how = {.schedules = 2'500},
         .body = &an_executor_that_refuses_or_drops_it_says_so}) &&
    add({.name = "future: stages run on the executor that was named",
         .how = {.schedules = 3'500},
         .body = &stages_run_on_the_executor_that_was_named}) &&
    add({.name = "from_callback: the call counts though other copies are gone",
         .how = {.schedules = 3'500},
         .body = &the_last_of_a_callbacks_copies_breaks_the_promise}) &&
    add({.name = "future: one that is dropped with its stage leaks nothing",
         .how = {.schedules = 3'500},
         .body = &a_future_that_is_dropped_with_its_stage_leaks_nothing});

}  // namespace
}  // namespace sluice::sim
