#include "sluice/future/spawn.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::spawn_test {
namespace {

using namespace std::chrono_literals;

class spawn_test : public leak_checked {
 protected:
  manual_executor ex;
  event never;
};

task<int> answer(tracked = {}) { co_return 42; }
task<status> wait_for(event& e, tracked = {}) { co_return co_await e.async_wait(); }

future_error::reason reason_of(future<int>& f) {
  try {
    (void)f.get();
  } catch (const future_error& e) {
    return e.why();
  }
  ADD_FAILURE() << "no future_error";
  return future_error::cycle;
}

TEST_F(spawn_test, RunsTheTaskOnTheExecutorAndGivesItsResult) {
  auto f = spawn(ex, answer());
  EXPECT_FALSE(f.is_ready());
  EXPECT_EQ(ex.queued(), 1U) << "its start is a submission";
  ex.run_all();
  EXPECT_EQ(f.get(), 42);
}

TEST_F(spawn_test, TheFrameIsFreedWhenTheFutureIsReady) {
  int alive_then = -1;
  auto f = spawn(ex, answer()).then([&](int n) {
    alive_then = tracked::alive();
    return n;
  });
  ex.run_all();
  EXPECT_EQ(alive_then, 0);
  EXPECT_EQ(f.get(), 42);
}

TEST_F(spawn_test, CarriesExceptionsReferencesAndMoveOnlyValues) {
  const auto fails = []() -> task<int> {
    throw std::logic_error("no");
    co_return 0;
  };
  int target = 0;
  const auto reference = [&]() -> task<int&> { co_return target; };
  const auto moved = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(1); };
  const auto none = []() -> task<> { co_return; };
  auto a = spawn(ex, fails());
  auto b = spawn(ex, reference());
  auto c = spawn(ex, moved());
  auto d = spawn(ex, none());
  ex.run_all();
  EXPECT_THROW((void)a.get(), std::logic_error);
  EXPECT_EQ(&b.get(), &target);
  EXPECT_EQ(*c.get(), 1);
  d.get();
}

TEST_F(spawn_test, StagesOfTheFutureRunOnTheSameExecutor) {
  executor* ran_on = nullptr;
  auto f = spawn(ex, answer()).then([&](int) { ran_on = executor::current(); });
  ex.run_all();
  f.get();
  EXPECT_EQ(ran_on, &ex);
}

TEST_F(spawn_test, CancelReachesTheTasksWaitThroughAChainOfStages) {
  auto f = spawn(ex, wait_for(never)).then([](status s) { return s == status::stopped; });
  ex.run_all();
  EXPECT_EQ(never.waiting(), 1U);
  f.cancel();
  ex.run_all();
  EXPECT_TRUE(f.get());
}

TEST_F(spawn_test, DroppingTheFutureDoesNotStopTheTask) {
  event go;
  bool ended = false;
  const auto waits = [](event& on, bool& flag, tracked) -> task<> {
    const status s = co_await on.async_wait();
    flag = static_cast<bool>(s);
  };
  { auto dropped = spawn(ex, waits(go, ended, {})); }
  ex.run_all();
  go.set();
  ex.run_all();
  EXPECT_TRUE(ended);
}

TEST_F(spawn_test, CancelledBeforeItBeganItDoesNotRun) {
  bool ran = false;
  const auto runs = [](bool& flag, tracked) -> task<int> {
    flag = true;
    co_return 1;
  };
  auto f = spawn(ex, runs(ran, {}));
  f.cancel();
  ex.run_all();
  EXPECT_EQ(reason_of(f), future_error::cancelled);
  EXPECT_FALSE(ran);
}

TEST_F(spawn_test, DoesNotInheritTheTokenOfTheSpawningTask) {
  future<status> inner;
  const auto outer = [&]() -> task<> {
    inner = spawn(ex, wait_for(never));
    (void)co_await never.async_wait();
  };
  auto f = spawn(ex, outer());
  ex.run_all();
  EXPECT_EQ(never.waiting(), 2U);
  f.cancel();
  ex.run_all();
  EXPECT_EQ(never.waiting(), 1U);
  inner.cancel();
  ex.run_all();
  EXPECT_EQ(inner.get(), status::stopped);
}

TEST_F(spawn_test, ARefusedTaskIsRejected) {
  manual_executor small({.capacity = 1});
  auto first = spawn(small, answer());
  auto full = spawn(small, answer());
  EXPECT_EQ(reason_of(full), future_error::rejected);
  EXPECT_EQ(try_spawn(small, answer()).status(), status::full);
  small.run_all();
  EXPECT_EQ(first.get(), 42);
  auto taken = try_spawn(small, answer());
  small.run_all();
  EXPECT_EQ(taken->get(), 42);
  small.close();
  auto closed = spawn(small, answer());
  EXPECT_EQ(reason_of(closed), future_error::rejected);
  EXPECT_EQ(try_spawn(small, answer()).status(), status::closed);
}

TEST_F(spawn_test, WaitsForCapacityWithinLimits) {
  manual_executor small({.capacity = 1, .overflow = overflow::block});
  auto first = spawn(small, answer());
  auto late = spawn(small, deadline::after(1ms), answer());
  EXPECT_EQ(reason_of(late), future_error::rejected);
  std::stop_source source;
  source.request_stop();
  auto stopped = spawn(small, source.get_token(), answer());
  EXPECT_EQ(reason_of(stopped), future_error::rejected);
  small.run_all();
  EXPECT_EQ(first.get(), 42);
}

TEST_F(spawn_test, ADroppedTaskIsABrokenPromise) {
  manual_executor drops({.capacity = 1, .overflow = overflow::drop_oldest});
  auto first = spawn(drops, answer());
  auto second = spawn(drops, answer());
  EXPECT_EQ(reason_of(first), future_error::broken_promise);
  drops.run_all();
  EXPECT_EQ(second.get(), 42);
  manual_executor newest({.capacity = 1, .overflow = overflow::drop_newest});
  auto kept = spawn(newest, answer());
  auto dropped = spawn(newest, answer());
  EXPECT_EQ(reason_of(dropped), future_error::broken_promise);
  newest.run_all();
  EXPECT_EQ(kept.get(), 42);
}

TEST_F(spawn_test, AResumptionNeedsNoCapacityInAFullExecutor) {
  manual_executor small({.capacity = 1});
  event go;
  auto f = spawn(small, wait_for(go));
  small.run_all();
  ASSERT_TRUE(small.try_submit([] {}));
  go.set();
  small.run_all();
  EXPECT_EQ(f.get(), status::ok);
}

template <class Pool>
void cancel_races(stress& run, Pool& pool) {
  event never;
  auto choose = run.generator(0);
  for (int round = 0; round < 1'000; ++round) {
    event go;
    const auto works = [](event& on, event& shut, tracked) -> task<int> {
      co_await this_task::yield();
      if (const status first = co_await on.async_wait(); !first) co_return 1;
      (void)co_await sleep_for(1us);
      if (const status second = co_await shut.async_wait(); !second) co_return 2;
      co_return 3;
    };
    auto f = spawn(pool, works(go, never, {}));
    std::jthread sets;
    if (choose.below(2) == 0) sets = std::jthread([&] { go.set(); });
    for (auto spin = choose.below(2'000); spin > 0; --spin) seam::pause();
    f.cancel();
    try {
      EXPECT_LE(f.get(), 2);
    } catch (const future_error& e) {
      EXPECT_EQ(e.why(), future_error::cancelled);
    }
    run.did();
  }
}

TEST_F(spawn_test, CancelsThatRaceWithEveryStepOfATaskEndIt) {
  stress run;
  {
    thread_pool pool(2);
    cancel_races(run, pool);
  }
  work_stealing_pool pool({.threads = 2});
  cancel_races(run, pool);
}

TEST_F(spawn_test, AThousandTasksThatWakeEachOtherOnAPoolAllEnd) {
  stress run;
  work_stealing_pool pool({.threads = 4});
  constexpr int count = 1'000;
  std::vector<event> turns(count + 1);
  std::vector<future<void>> all;
  const auto pass_on = [](event& current, event& next, tracked) -> task<> {
    (void)co_await current.async_wait();
    next.set();
  };
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    all.push_back(spawn(pool, pass_on(turns[at], turns[at + 1], {})));
  }
  turns[0].set();
  for (auto& each : all) each.get();
  EXPECT_TRUE(turns[count].is_set());
  run.did(count);
}

}  // namespace
}  // namespace sluice::testing::spawn_test
