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

#include "sluice/base/race_checked.hpp"
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

// Returns the cause of a failed future.
template <class F>
std::optional<future_error::reason> reason_of(F&& get) {
  try {
    get();
  } catch (const future_error& e) {
    return e.why();
  }
  return std::nullopt;
}

void get_sees_the_writes_before_the_value() {
  race_checked<int> before{0};
  promise<int> p;
  future<int> f = p.get_future();
  std::jthread producer([&] {
    before.write(1);
    p.set_value(2);
  });
  check(f.get() == 2 && before.read() == 1, "the value and the writes before it");
}

void a_promise_destroyed_unset_fails_its_future() {
  future<int> f;
  std::jthread dropper;
  {
    promise<int> p;
    f = p.get_future();
    dropper = std::jthread([q = std::move(p)]() mutable { promise<int> gone(std::move(q)); });
  }
  check(reason_of([&] { (void)f.get(); }) == future_error::broken_promise, "a broken promise");
}

void one_of_two_setters_succeeds() {
  promise<std::string> p;
  future<std::string> f = p.get_future();
  bool other_set = false;
  std::jthread other([&] { other_set = p.try_set_value("theirs"); });
  const bool i_set = p.try_set_value("ours");
  const std::string got = f.get();
  other.join();
  check(i_set != other_set, "exactly one setter to succeed");
  check(got == (i_set ? "ours" : "theirs"), "the value of the successful setter");
}

void a_stage_runs_once_on_either_thread() {
  race_checked<int> runs{0};
  promise<int> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_value(20); });
  auto last = std::move(f)
                  .then([&](int v) {
                    ++runs.change();
                    return v + 1;
                  })
                  .then([](int v) { return 2 * v; });
  check(last.get() == 42 && runs.read() == 1, "each stage to run once, in order");
}

void an_exception_of_a_stage_skips_value_stages() {
  promise<int> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_exception(std::runtime_error("no")); });
  bool skipped = true;
  const int got = std::move(f)
                      .then([&](int v) {
                        skipped = false;
                        return v;
                      })
                      .recover([](const std::runtime_error&) { return 7; })
                      .get();
  check(got == 7 && skipped, "the error to reach its handler");
}

void a_wait_that_timed_out_leaves_the_future_valid() {
  promise<std::unique_ptr<int>> p;
  auto f = p.get_future();
  std::jthread producer([&] { p.set_value(std::make_unique<int>(3)); });
  const auto began = seam::now();
  auto soon = f.get(1s);
  if (!soon) {
    check(soon.status() == status::timed_out && seam::now() - began >= 1s,
          "a time-out after a second");
    check(f.valid() && *f.get() == 3, "the value later");
  } else {
    check(**soon == 3 && !f.valid(), "the value");
  }
}

void a_wait_that_was_stopped_leaves_the_future_valid() {
  promise<int> p;
  auto f = p.get_future();
  std::stop_source asks;
  std::jthread stops([&] { asks.request_stop(); });
  std::jthread producer([&] { p.set_value(3); });
  const auto soon = f.get(asks.get_token());
  if (!soon) check(soon.status() == status::stopped && f.get() == 3, "the value later");
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
  check(asked ? why == future_error::cancelled : !why, "the producer's result");
}

// The path to the producer changes when the inner future replaces the outer one.
void a_cancel_reaches_the_current_producer() {
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

void an_earlier_cancel_reaches_the_inner_producer() {
  promise<int> outer;
  promise<int> inner;
  auto f = outer.get_future().and_then([&](int) { return inner.get_future(); });
  std::jthread producer([&] { outer.set_value(1); });
  f.cancel();
  producer.join();
  check(inner.stop_token().stop_requested(), "a stop request for the inner producer");
  inner.set_exception(future_error(future_error::cancelled));
  check(reason_of([&] { (void)f.get(); }) == future_error::cancelled, "its result");
}

void a_stage_that_is_dropped_while_it_is_cancelled() {
  promise<int> p;
  std::optional<future<int>> f(p.get_future().then([](int v) { return v; }));
  std::jthread producer([&] { p.set_value(1); });
  std::jthread cancels([g = std::move(*f)]() mutable { g.cancel(); });
  f.reset();
}

void a_cancel_of_many_reaches_each() {
  promise<int> a;
  promise<int> b;
  auto both = when_all(a.get_future(), b.get_future());
  std::jthread producer([&] { a.set_value(1); });
  both.cancel();
  check(b.stop_token().stop_requested(), "a stop request for the running producer");
  b.set_value(2);
  const auto [first, second] = both.get();
  check(first == 1 && second == 2, "their results");
}

void a_concurrent_timeout_and_value_give_one_outcome() {
  promise<int> p;
  auto f = p.get_future().with_timeout(1s);
  std::jthread producer([&] {
    std::this_thread::sleep_for(1s);
    (void)p.try_set_value(1);
  });
  const auto why = reason_of([&] { check(f.get() == 1, "the value"); });
  check(!why || *why == future_error::timed_out, "the value or a time-out");
}

void a_concurrent_stop_and_value_give_one_outcome() {
  std::stop_source stop;
  promise<int> p;
  auto f = p.get_future().with_stop(stop.get_token());
  std::jthread producer([&] { (void)p.try_set_value(1); });
  std::jthread stopper([&] { stop.request_stop(); });
  const auto why = reason_of([&] { check(f.get() == 1, "the value"); });
  check(!why || *why == future_error::cancelled, "the value or a cancellation");
}

void a_stop_while_both_sides_are_destroyed() {
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
  check(reason_of([&] { (void)f.get(); }) == future_error::timed_out, "a time-out");
  check(seam::now() - began >= 1h, "a whole hour");
  check(p.stop_token().stop_requested(), "a stop request for the producer");
}

void all_futures_give_all_values() {
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

void the_first_wins_and_the_others_are_cancelled() {
  promise<int> a;
  promise<int> b;
  auto first = when_any(a.get_future(), b.get_future());
  std::jthread other([&] { (void)a.try_set_value(1); });
  (void)b.try_set_value(2);
  const auto won = first.get();
  check(won.result.value() == (won.index == 0 ? 1 : 2), "the value of the winner");
}

void the_first_success_ignores_a_failure() {
  promise<int> a;
  promise<int> b;
  auto first = when_any_success(a.get_future(), b.get_future());
  std::jthread other(
      [&] { (void)a.try_set_exception(std::make_exception_ptr(std::runtime_error("no"))); });
  (void)b.try_set_value(2);
  const auto won = first.get();
  check(won.index == 1 && won.value == 2, "the future with a value");
}

void all_copies_see_the_value() {
  promise<int> p;
  shared_future<int> all(p.get_future());
  int by_stage = 0;
  std::jthread producer([&] { p.set_value(5); });
  std::jthread other([copy = all] { check(copy.get() == 5, "the value"); });
  auto stage = all.then([&](const int& v) { by_stage = v; });
  check(all.get() == 5, "the value");
  stage.get();
  check(by_stage == 5, "its continuation to run once");
}

void the_last_copy_may_be_destroyed_while_it_is_set() {
  promise<int> p;
  std::optional<shared_future<int>> one(shared_future<int>(p.get_future()));
  std::jthread producer([&] { p.set_value(5); });
  one.reset();
}

void a_timed_out_wait_leaves_the_others_waiting() {
  promise<int> p;
  const shared_future<int> all(p.get_future());
  std::jthread producer([&] { p.set_value(5); });
  std::jthread other([copy = all] { check(copy.get() == 5, "the value"); });
  const auto soon = all.get(1s);
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
  check(runs.load() == (why ? 0 : 1), "a function cancelled before its start not to have run");
}

void a_rejected_or_dropped_function_fails_its_future() {
  std::optional<future<int>> left;
  {
    manual_executor later({.capacity = 2});
    std::jthread closes([&] { later.close(); });
    left = async(later, [] { return 1; });
  }
  const auto why = reason_of([&] { (void)left->get(); });
  check(why == future_error::rejected || why == future_error::broken_promise,
        "rejected or broken_promise");
}

void stages_run_on_the_given_executor() {
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  promise<int> p;
  auto f = p.get_future().via(pool).then([&](int v) {
    check(executor::current() == &pool, "to run on the pool");
    return v;
  });
  std::jthread producer([&] { p.set_value(4); });
  check(f.get() == 4, "the value");
}

void one_call_of_a_callback_copy_sets_the_value() {
  std::optional<completion<int>> kept;
  auto f = from_callback<int>([&](auto done) { kept.emplace(done); });
  std::jthread other([copy = *kept]() mutable { copy(6); });
  kept.reset();
  check(f.get() == 6, "the value of the call");
}

void a_future_that_is_dropped_with_its_stage_leaks_nothing() {
  race_checked<int> runs{0};
  promise<std::unique_ptr<int>> p;
  std::jthread producer([&] { p.set_value(std::make_unique<int>(1)); });
  {
    auto f = p.get_future().then([&](std::unique_ptr<int> v) { runs.change() += *v; });
  }
  producer.join();
  check(runs.read() == 1, "the attached stage to run");
}

[[maybe_unused]] const bool added =
    add({.name = "future: get sees the writes before the value",
         .options = exhaustively(),
         .body = &get_sees_the_writes_before_the_value}) &&
    add({.name = "future: get sees the writes before the value, at random",
         .options = {.schedules = 6'000},
         .body = &get_sees_the_writes_before_the_value}) &&
    add({.name = "promise: one destroyed unset fails its future",
         .options = exhaustively(),
         .body = &a_promise_destroyed_unset_fails_its_future}) &&
    add({.name = "promise: one of two setters succeeds",
         .options = exhaustively(),
         .body = &one_of_two_setters_succeeds}) &&
    add({.name = "future: a stage runs once, on either thread",
         .options = exhaustively(),
         .body = &a_stage_runs_once_on_either_thread}) &&
    add({.name = "future: an exception of a stage skips value stages",
         .options = {.schedules = 2'500},
         .body = &an_exception_of_a_stage_skips_value_stages}) &&
    add({.name = "future: a wait that timed out leaves it valid",
         .options = {.schedules = 6'000},
         .body = &a_wait_that_timed_out_leaves_the_future_valid}) &&
    add({.name = "future: a wait that timed out leaves it valid, every schedule",
         .options = exhaustively(),
         .body = &a_wait_that_timed_out_leaves_the_future_valid}) &&
    add({.name = "future: a wait that was stopped leaves it valid",
         .options = {.schedules = 6'000},
         .body = &a_wait_that_was_stopped_leaves_the_future_valid}) &&
    add({.name = "future: a cancelled chain asks its producer",
         .options = {.schedules = 6'000},
         .body = &a_cancelled_chain_asks_its_producer}) &&
    add({.name = "future: a cancel reaches the current producer",
         .options = {.schedules = 3'500},
         .body = &a_cancel_reaches_the_current_producer}) &&
    add({.name = "future: an earlier cancel reaches the inner producer",
         .options = {.schedules = 5'000},
         .body = &an_earlier_cancel_reaches_the_inner_producer}) &&
    add({.name = "future: a stage that is dropped while it is cancelled",
         .options = {.schedules = 5'000},
         .body = &a_stage_that_is_dropped_while_it_is_cancelled}) &&
    add({.name = "when_all: a cancel reaches each",
         .options = {.schedules = 3'500},
         .body = &a_cancel_of_many_reaches_each}) &&
    add({.name = "future: a concurrent timeout and value give one outcome",
         .options = {.schedules = 6'000},
         .body = &a_concurrent_timeout_and_value_give_one_outcome}) &&
    add({.name = "future: a concurrent stop and value give one outcome",
         .options = {.schedules = 6'000},
         .body = &a_concurrent_stop_and_value_give_one_outcome}) &&
    add({.name = "future: a stop while both sides are destroyed",
         .options = {.schedules = 6'000},
         .body = &a_stop_while_both_sides_are_destroyed}) &&
    add({.name = "future: an hour passes before it times out",
         .options = {.schedules = 500},
         .body = &an_hour_passes_before_it_times_out}) &&
    add({.name = "when_all: all futures give all values",
         .options = exhaustively(),
         .body = &all_futures_give_all_values}) &&
    add({.name = "when_all: the first failure cancels the rest",
         .options = {.schedules = 3'500},
         .body = &the_first_failure_of_all_cancels_the_rest}) &&
    add({.name = "when_any: the first wins, the others are cancelled",
         .options = exhaustively(),
         .body = &the_first_wins_and_the_others_are_cancelled}) &&
    add({.name = "when_any: the first success ignores a failure",
         .options = {.schedules = 3'500},
         .body = &the_first_success_ignores_a_failure}) &&
    add({.name = "shared_future: all copies see the value",
         .options = {.schedules = 6'000},
         .body = &all_copies_see_the_value}) &&
    add({.name = "shared_future: the last copy may be destroyed while it is set",
         .options = exhaustively(),
         .body = &the_last_copy_may_be_destroyed_while_it_is_set}) &&
    add({.name = "shared_future: a timed-out wait leaves the others waiting",
         .options = {.schedules = 5'000},
         .body = &a_timed_out_wait_leaves_the_others_waiting}) &&
    add({.name = "async: a function gives its result or is cancelled",
         .options = {.schedules = 3'500},
         .body = &a_function_on_a_pool_gives_its_result_or_is_cancelled}) &&
    add({.name = "async: a rejected or dropped function fails its future",
         .options = {.schedules = 2'500},
         .body = &a_rejected_or_dropped_function_fails_its_future}) &&
    add({.name = "future: stages run on the given executor",
         .options = {.schedules = 3'500},
         .body = &stages_run_on_the_given_executor}) &&
    add({.name = "from_callback: the call counts after other copies were destroyed",
         .options = {.schedules = 3'500},
         .body = &one_call_of_a_callback_copy_sets_the_value}) &&
    add({.name = "future: a future dropped with its stage leaks nothing",
         .options = {.schedules = 3'500},
         .body = &a_future_that_is_dropped_with_its_stage_leaks_nothing});

}  // namespace
}  // namespace sluice::sim
