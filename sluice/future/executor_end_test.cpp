// Futures, tasks, scopes and timers use an executor: an executor that ends before them is a broken
// contract that names them. An executor that ends after them never is.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::testing::executor_end_test {
namespace {

using namespace std::chrono_literals;

task<> wait_for(event& e) { (void)co_await e.async_wait(); }
task<> wait_on(executor& other, event& e) {
  co_await resume_on(other);
  (void)co_await e.async_wait();
}

struct executor_end_DeathTest : ::testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(executor_end_DeathTest, ASuspendedTaskIsNamed) {
  EXPECT_DEATH(
      {
        event never;
        future<void> f;
        thread_pool pool({.core = 1, .name = "io"});
        f = spawn(pool, wait_for(never));
        eventually([&] { return never.waiting() == 1; });
      },
      "sluice::thread_pool \"io\": expected no users at its end, found 1 spawned task ");
  EXPECT_DEATH(
      {
        event never;
        work_stealing_pool pool({.threads = 1, .name = "cores"});
        auto dropped = std::make_optional(spawn(pool, wait_for(never)));
        dropped.reset();
        eventually([&] { return never.waiting() == 1; });
      },
      "sluice::work_stealing_pool \"cores\": .*found 1 spawned task ");
}

TEST_F(executor_end_DeathTest, ATaskThatMovedThereIsNamed) {
  EXPECT_DEATH(
      {
        event never;
        thread_pool pool(1);
        {
          thread_pool disk({.core = 1, .name = "disk"});
          (void)spawn(pool, wait_on(disk, never));
          eventually([&] { return never.waiting() == 1; });
        }
      },
      "sluice::thread_pool \"disk\": .*found 1 spawned task ");
}

TEST_F(executor_end_DeathTest, ATaskThatNeverBeganIsNamedToo) {
  EXPECT_DEATH(
      {
        std::vector<submission> left;
        event never;
        thread_pool pool({.core = 1, .name = "io"});
        event begun;
        event go_on;
        ASSERT_TRUE(pool.submit([&] {
          begun.set();
          go_on.wait();
        }));
        begun.wait();
        (void)spawn(pool, wait_for(never));
        std::jthread stops([&] { left = pool.stop(); });
        eventually([&] { return pool.is_closed() && pool.queued() == 0; });
        go_on.set();
      },
      "sluice::thread_pool \"io\": .*found 1 spawned task ");
}

TEST_F(executor_end_DeathTest, AStageThatWaitsForItsFutureIsNamed) {
  EXPECT_DEATH(
      {
        promise<int> p;
        future<int> f;
        thread_pool pool({.core = 1, .name = "io"});
        f = p.get_future().via(pool).then([](int n) { return n; }).then([](int n) { return n; });
      },
      "sluice::thread_pool \"io\": .*found 2 pending stages of futures ");
  EXPECT_DEATH(
      {
        promise<int> p;
        strand* late = nullptr;
        thread_pool pool({.core = 1, .name = "io"});
        {
          strand one(pool, {.name = "one"});
          late = &one;
          (void)p.get_future().via(*late).and_then([](int n) { return make_ready_future<int>(n); });
        }
      },
      "sluice::strand \"one\": .*found 1 pending stage of a future ");
}

TEST_F(executor_end_DeathTest, AChildOfAScopeIsNamed) {
  EXPECT_DEATH(
      {
        event never;
        std::optional<scope> late;
        thread_pool pool({.core = 1, .name = "io"});
        late.emplace(pool);
        late->start(wait_for(never));
        late->start(wait_for(never));
        eventually([&] { return never.waiting() == 2; });
      },
      "sluice::thread_pool \"io\": .*found 2 children of scopes ");
}

TEST_F(executor_end_DeathTest, ATimerIsNamed) {
  EXPECT_DEATH(
      {
        future<void> ticking;
        thread_pool pool({.core = 1, .name = "io"});
        ticking = every(1h, pool, [] {});
      },
      "sluice::thread_pool \"io\": .*found 1 timer .every. ");
  EXPECT_DEATH(
      {
        future<void> later;
        thread_pool pool({.core = 1, .name = "io"});
        later = after(1h).via(pool).then([] {});
      },
      "sluice::thread_pool \"io\": .*found 1 pending stage of a future ");
}

TEST_F(executor_end_DeathTest, ATaskThatIsLeftOnTheThreadOfASyncWaitIsNamed) {
  EXPECT_DEATH(
      {
        event never;
        sync_wait([](event& e) -> task<> {
          executor* const here = co_await this_task::executor();
          (void)spawn(*here, wait_for(e));
          co_await this_task::yield();
        }(never));
      },
      "sluice::sync_wait \"sync_wait\": .*found 1 spawned task ");
}

// ---- correct orders

TEST(executor_end_test, FuturesMayOutliveTheirPoolOnceTheyAreReady) {
  future<int> spawned;
  future<int> chained;
  future<int> dropped;
  {
    thread_pool pool(1);
    spawned = spawn(pool, []() -> task<int> { co_return 1; }());
    chained = async(pool, [] { return 1; }).then([](int n) { return n + 1; });
    dropped = async(pool, [] { return 3; });
    spawned = std::move(spawned).via(pool).then([](int n) { return n; });
  }  // drained
  EXPECT_EQ(spawned.get(), 1);
  EXPECT_EQ(chained.get(), 2);
}

TEST(executor_end_test, APromiseThatIsBrokenBeforeTheEndOfThePoolEndsItsStages) {
  thread_pool pool(1);
  promise<int> p;
  (void)p.get_future().via(pool).then([](int n) { return n; });
}

TEST(executor_end_test, RefusedOrDroppedOrCancelledTasksUseNothing) {
  {
    thread_pool pool(1);
    pool.close();
    EXPECT_THROW(spawn(pool, []() -> task<> { co_return; }()).get(), future_error);
    EXPECT_EQ(try_spawn(pool, []() -> task<> { co_return; }()).status(), status::closed);
    EXPECT_THROW(every(1h, pool, [] {}).get(), future_error);
  }
  {
    manual_executor later({.capacity = 1, .overflow = overflow::drop_newest});
    auto cancelled = spawn(later, []() -> task<> { co_return; }());
    cancelled.cancel();
    EXPECT_THROW(spawn(later, []() -> task<> { co_return; }()).get(), future_error);
    later.run_all();
    auto unrun = spawn(later, []() -> task<> { co_return; }());
  }  // destroyed unrun
}

TEST(executor_end_test, AJoinedScopeMayOutliveItsPool) {
  std::optional<scope> late;
  std::optional<scope> unused;
  {
    thread_pool pool(1);
    late.emplace(pool);
    unused.emplace(pool);
    late->start([] {});
    late->join();
  }
}

// A task stops using its executor before its end is visible.
TEST(executor_end_test, APoolMayEndAsSoonAsTheResultIsThere) {
  for (int round = 0; round < 200; ++round) {
    std::vector<future<int>> results;
    future<void> ticking;
    {
      event go;
      work_stealing_pool pool({.threads = 2});
      thread_pool other(1);
      promise<int> p;
      const auto wait = [](event& e, executor& there) -> task<int> {
        (void)co_await e.async_wait();
        co_await resume_on(there);
        co_return 1;
      };
      for (int i = 0; i < 4; ++i) results.push_back(spawn(pool, wait(go, other)));
      results.push_back(p.get_future().via(pool).then([](int n) { return n; }));
      results.push_back(async(other, [] { return 1; }).and_then([&](int n) {
        return async(pool, [n] { return n; });
      }));
      ticking = every(1h, pool, [] {});
      ticking.cancel();
      go.set();
      p.set_value(1);
      for (auto& each : results) EXPECT_EQ(each.get(), 1);
      EXPECT_TRUE(std::move(ticking).handle([](const settled<void>&) { return true; }).get());
    }
  }
}

}  // namespace
}  // namespace sluice::testing::executor_end_test
