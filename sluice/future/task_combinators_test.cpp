#include "sluice/future/task_combinators.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::task_combinators_test {
namespace {

using namespace std::chrono_literals;

class task_combinators_test : public leak_checked {
 protected:
  event never;
};

task<int> number(int n, tracked = {}) { co_return n; }
task<> nothing(tracked = {}) { co_return; }
task<int> fail(const char* why, tracked = {}) {
  throw std::runtime_error(why);
  co_return 0;
}
// -1 if it was stopped.
task<int> wait_for(event& e, int n, tracked = {}) {
  const status s = co_await e.async_wait();
  co_return s ? n : -1;
}
std::vector<task<int>> numbers(int count) {
  std::vector<task<int>> made;
  for (int i = 0; i < count; ++i) made.push_back(number(i));
  return made;
}

// ---- when_all

TEST_F(task_combinators_test, WhenAllGivesAllResultsInTheOrderOfItsArguments) {
  int target = 0;
  const auto reference = [](int& value) -> task<int&> { co_return value; };
  const auto moved = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(9); };
  auto [a, b, c, d] = sync_wait(when_all(number(1), nothing(), reference(target), moved()));
  static_assert(std::is_same_v<decltype(b), std::monostate>);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(&c.get(), &target);
  EXPECT_EQ(*d, 9);
  const auto many = sync_wait(when_all(numbers(1'000)));
  ASSERT_EQ(many.size(), 1'000U);
  for (std::size_t i = 0; i < many.size(); ++i) EXPECT_EQ(many[i], static_cast<int>(i));
}

TEST_F(task_combinators_test, WhenAllOfNoTasksIsEmpty) {
  EXPECT_TRUE(sync_wait(when_all(std::vector<task<int>>())).empty());
  EXPECT_TRUE(sync_wait(when_all_settled(std::vector<task<int>>())).empty());
  sync_wait(when_all(std::vector<task<>>()));
}

TEST_F(task_combinators_test, WhenAllIsLazy) {
  bool ran = false;
  const auto sets = [](bool& flag, tracked) -> task<> {
    flag = true;
    co_return;
  };
  { const auto unused = when_all(sets(ran, {}), sets(ran, {})); }
  EXPECT_FALSE(ran);
}

TEST_F(task_combinators_test, WhenAllRunsItsTasksAtOnce) {
  event a;
  event b;
  const auto sets = [](event& own, event& other) -> task<> {
    own.set();
    (void)co_await other.async_wait();
  };
  (void)sync_wait(when_all(sets(a, b), sets(b, a)));
  EXPECT_TRUE(a.is_set() && b.is_set());
}

TEST_F(task_combinators_test, WhenAllRunsInParallelOnAPool) {
  thread_pool pool(2);
  std::atomic<int> inside{0};
  const auto meets = [](std::atomic<int>& in) -> task<> {
    ++in;
    eventually([&] { return in == 2; });  // blocks its thread: another must be the second
    co_return;
  };
  (void)spawn(pool, when_all(meets(inside), meets(inside))).get();
}

TEST_F(task_combinators_test, TheFirstFailureStopsTheOthersAndIsThrownWhenAllHaveEnded) {
  for (const bool as_vector : {false, true}) {
    try {
      if (as_vector) {
        std::vector<task<int>> ts;
        ts.push_back(wait_for(never, 1));
        ts.push_back(fail("first"));
        ts.push_back(fail("second"));
        (void)sync_wait(when_all(std::move(ts)));
      } else {
        (void)sync_wait(when_all(wait_for(never, 1), fail("first"), fail("second")));
      }
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "first");
    }
    EXPECT_EQ(never.waiting(), 0U);
    EXPECT_EQ(tracked::alive(), 0);
  }
}

TEST_F(task_combinators_test, WhenAllPassesOnTheStopOfTheTaskThatAwaits) {
  manual_executor ex;
  auto f = spawn(ex, when_all(wait_for(never, 1), wait_for(never, 2)));
  ex.run_all();
  EXPECT_EQ(never.waiting(), 2U);
  f.cancel();
  ex.run_all();
  EXPECT_EQ(f.get(), std::make_tuple(-1, -1));
}

// ---- when_any

TEST_F(task_combinators_test, WhenAnyGivesTheFirstToEndAndStopsTheOthers) {
  const auto first = sync_wait(when_any(wait_for(never, 1), number(2), wait_for(never, 3)));
  EXPECT_EQ(first.index, 1U);
  EXPECT_EQ(first.result.value(), 2);
  EXPECT_EQ(never.waiting(), 0U);
  std::vector<task<int>> ts;
  ts.push_back(wait_for(never, 1));
  ts.push_back(wait_for(never, 1));
  ts.push_back(number(7));
  const auto chosen = sync_wait(when_any(std::move(ts)));
  EXPECT_EQ(chosen.index, 2U);
  EXPECT_EQ(chosen.result.value(), 7);
}

TEST_F(task_combinators_test, WhenAnyOfDifferentTypesGivesAVariant) {
  const auto text = []() -> task<std::string> { co_return "text"; };
  const auto first = sync_wait(when_any(wait_for(never, 1), text()));
  EXPECT_EQ(first.index, 1U);
  EXPECT_EQ(std::get<1>(first.result).value(), "text");
  const auto done = sync_wait(when_any(nothing(), wait_for(never, 1)));
  EXPECT_EQ(done.index, 0U);
  std::vector<task<>> voids;
  voids.push_back(nothing());
  EXPECT_EQ(sync_wait(when_any(std::move(voids))).index, 0U);
}

TEST_F(task_combinators_test, WhenAnyAlsoReturnsAFirstFailure) {
  const auto failed = sync_wait(when_any(wait_for(never, 1), fail("first")));
  EXPECT_EQ(failed.index, 1U);
  EXPECT_THROW((void)failed.result.value(), std::runtime_error);
  EXPECT_EQ(sync_wait(when_any(number(1), fail("too late"))).result.value(), 1)
      << "the exception of a loser is dropped";
}

TEST_F(task_combinators_test, WhenAnySuccessGivesTheFirstValue) {
  const auto got = sync_wait(when_any_success(fail("a"), wait_for(never, 1), number(7)));
  EXPECT_EQ(got.index, 2U);
  EXPECT_EQ(got.value, 7);
  std::vector<task<int>> ts;
  ts.push_back(fail("a"));
  ts.push_back(number(8));
  ts.push_back(wait_for(never, 1));
  EXPECT_EQ(sync_wait(when_any_success(std::move(ts))).value, 8);
  EXPECT_EQ(sync_wait(when_any_success(nothing(), nothing())).index, 0U);
}

TEST_F(task_combinators_test, WhenAnySuccessRethrowsTheLastFailureWhenAllFail) {
  try {
    (void)sync_wait(when_any_success(fail("a"), fail("b")));
    FAIL() << "no exception";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "b");
  }
  std::vector<task<int>> ts;
  ts.push_back(fail("a"));
  EXPECT_THROW((void)sync_wait(when_any_success(std::move(ts))), std::runtime_error);
}

TEST_F(task_combinators_test, WhenAllSettledWaitsForAllAndStopsNone) {
  event go;
  const auto opens = [](event& e) -> task<int> {
    e.set();
    co_return 2;
  };
  const auto [a, b, c] = sync_wait(when_all_settled(fail("a"), wait_for(go, 1), opens(go)));
  EXPECT_THROW((void)a.value(), std::runtime_error);
  EXPECT_EQ(b.value(), 1);
  EXPECT_EQ(c.value(), 2);
  std::vector<task<int>> ts;
  ts.push_back(fail("a"));
  ts.push_back(number(3));
  const auto all = sync_wait(when_all_settled(std::move(ts)));
  EXPECT_FALSE(all[0].has_value());
  EXPECT_EQ(all[1].value(), 3);
}

TEST_F(task_combinators_test, WhenAnyResumesOnlyWhenTheLosersHaveEnded) {
  manual_executor ex;
  bool loser_ended = false;
  const auto slow = [](event& on, bool& flag, tracked) -> task<int> {
    (void)co_await on.async_wait();
    co_await this_task::yield();
    co_await this_task::yield();
    flag = true;
    co_return 1;
  };
  auto f = spawn(ex, when_any(slow(never, loser_ended, {}), number(2)));
  while (!f.is_ready()) ASSERT_TRUE(ex.run_one());
  EXPECT_TRUE(loser_ended);
  EXPECT_EQ(f.get().index, 1U);
}

TEST_F(task_combinators_test, TheFirstOfNoTasksIsABrokenPromise) {
  EXPECT_THROW((void)sync_wait(when_any(std::vector<task<int>>())), future_error);
  EXPECT_THROW((void)sync_wait(when_any_success(std::vector<task<int>>())), future_error);
}

TEST_F(task_combinators_test, AnEmptyTaskAmongThemIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)sync_wait(when_all(number(1), task<int>())), "task.*not been awaited yet");
}

// ---- within

TEST_F(task_combinators_test, WithinGivesTheValueInTime) {
  EXPECT_EQ(*sync_wait(within(number(3), deadline::after(1h))), 3);
  EXPECT_EQ(sync_wait(within(nothing(), deadline::after(1h))), status::ok);
  EXPECT_EQ(*sync_wait(within(number(3), {})), 3);
}

TEST_F(task_combinators_test, WithinStopsTheTaskAtItsDeadlineAndResumesWhenItHasEnded) {
  manual_clock clock;
  manual_executor ex;
  auto f = spawn(ex, within(wait_for(never, 1), deadline::after(1min, clock)));
  ex.run_all();
  clock.advance(59s);
  ex.run_all();
  EXPECT_FALSE(f.is_ready());
  EXPECT_EQ(clock.pending(), 1U);
  clock.advance(1s);
  ex.run_all();
  EXPECT_EQ(f.get().status(), status::timed_out);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(task_combinators_test, WithinStopsOnItsOwnTokenAndOnThatOfTheAwaitingTask) {
  for (const bool by_own : {false, true}) {
    std::stop_source source;
    manual_executor ex;
    auto f = spawn(ex, within(wait_for(never, 1), {deadline::after(1h), source.get_token()}));
    ex.run_all();
    if (by_own) {
      source.request_stop();
    } else {
      f.cancel();
    }
    ex.run_all();
    EXPECT_EQ(f.get().status(), status::stopped);
  }
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(sync_wait(within(number(1), source.get_token())).status(), status::stopped);
}

TEST_F(task_combinators_test, WithinRethrowsTheExceptionOfTheTask) {
  EXPECT_THROW((void)sync_wait(within(fail("now"), deadline::after(1h))), std::runtime_error);
  const auto complains = [](event& e) -> task<int> {
    const status s = co_await e.async_wait();
    if (!s) throw std::runtime_error("interrupted");
    co_return 1;
  };
  EXPECT_THROW((void)sync_wait(within(complains(never), deadline::after(1ms))), std::runtime_error);
  const auto cancelled = []() -> task<int> {
    promise<int> p;
    co_return co_await p.get_future();
  };
  EXPECT_EQ(sync_wait(within(cancelled(), deadline::after(1ms))).status(), status::timed_out);
}

// ---- races

TEST_F(task_combinators_test, TasksThatEndFailAndAreStoppedAtOnceAreAllAccountedFor) {
  stress run;
  work_stealing_pool pool({.threads = 4});
  auto choose = run.generator(0);
  for (int round = 0; round < 300; ++round) {
    const auto some = [](event& e, std::uint32_t kind, tracked) -> task<int> {
      co_await this_task::yield();
      switch (kind) {
        case 0: throw std::runtime_error("some");
        case 1: (void)co_await e.async_wait(); break;
        case 2: (void)co_await sleep_for(20us); break;
        default: break;
      }
      co_return 1;
    };
    const auto count = 1 + choose.below(10);
    const auto make = [&](std::uint32_t kinds) {
      std::vector<task<int>> ts;
      for (std::uint32_t i = 0; i < count; ++i) ts.push_back(some(never, choose.below(kinds), {}));
      ts.push_back(some(never, choose.below(2) == 0 ? 0 : 2, {}));  // so that it ends
      return ts;
    };
    try {
      if (choose.below(2) == 0) {
        auto f = spawn(pool, when_any(make(4)));
        EXPECT_LE(f.get().index, count);
      } else {
        auto f = spawn(pool, within(when_all(make(4)), deadline::after(1ms)));
        const auto got = f.get();
        if (got) {
          EXPECT_EQ(got->size(), count + 1);
        } else {
          EXPECT_EQ(got.status(), status::timed_out);
        }
      }
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "some");
    }
    EXPECT_EQ(tracked::alive(), 0);
    run.did(count);
  }
  EXPECT_EQ(never.waiting(), 0U);
}

}  // namespace
}  // namespace sluice::testing::task_combinators_test
