// The situations of the JSR-166 tests of java.util.concurrent.ThreadPoolExecutor, for thread_pool,
// with the outcomes documented here. Left out, because they have no counterpart: removing from the
// queue, changing sizes while it runs, interrupts, hooks around functions, invokeAll and invokeAny
// (futures have those).

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/testing/blocker.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::thread_pool_scenarios_test {
namespace {

using namespace std::chrono_literals;
using testing::blocker;
using testing::eventually;

// A pool of one blocked thread, with a full queue of one.
struct saturated {
  explicit saturated(overflow policy)
      : pool({.core = 1, .capacity = 1, .overflow = policy, .on_drop = [this](submission&&) {
                ++dropped;
              }}) {
    EXPECT_TRUE(pool.submit(held.function()));
    held.until_inside(1);
    EXPECT_TRUE(pool.submit([this] { ++ran; }));
  }
  ~saturated() { held.release(); }  // otherwise the pool's destructor would wait for it

  std::atomic<int> ran{0};
  std::atomic<int> dropped{0};
  blocker held;
  thread_pool pool;
};

// ---- running

TEST(thread_pool_scenarios, ASubmittedFunctionIsRun) {
  event done;
  thread_pool pool(1);
  ASSERT_TRUE(pool.submit([&] { done.set(); }));
  done.wait();
}

TEST(thread_pool_scenarios, TheActiveCountRisesWhenAFunctionBeginsAndFallsWhenItEnds) {
  thread_pool pool(2);
  blocker held;
  EXPECT_EQ(pool.stats().active, 0U);
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  EXPECT_EQ(pool.stats().active, 1U);
  held.release();
  eventually([&] { return pool.stats().active == 0; });
}

TEST(thread_pool_scenarios, CoreThreadsAreThereBeforeTheFirstSubmission) {
  thread_pool pool({.core = 2, .max = 6});
  EXPECT_EQ(pool.threads(), 2U);
  EXPECT_EQ(pool.stats().threads_largest, 2U);
}

TEST(thread_pool_scenarios, TheCompletedCountRisesWhenAFunctionHasEndedNotWhenItBegins) {
  thread_pool pool(2);
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  EXPECT_EQ(pool.stats().completed, 0U);
  held.release();
  eventually([&] { return pool.stats().completed == 1; });
}

TEST(thread_pool_scenarios, TheLargestThreadCountIsRememberedAfterTheEnd) {
  constexpr int count = 3;
  thread_pool pool({.core = 1, .max = count});
  blocker held;
  EXPECT_EQ(pool.stats().threads_largest, 1U);
  for (int i = 0; i < count; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(count);
  EXPECT_EQ(pool.stats().threads_largest, 3U);
  held.release();
  pool.drain();
  EXPECT_EQ(pool.stats().threads_largest, 3U);
}

TEST(thread_pool_scenarios, TheQueueHoldsUnbegunSubmissions) {
  thread_pool pool({.core = 1, .capacity = 10});
  blocker held;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  EXPECT_EQ(pool.queued(), 4U);
  EXPECT_EQ(pool.stats().queued + pool.stats().active + pool.stats().completed, 5U);
}

TEST(thread_pool_scenarios, FunctionsOfAnElasticPoolRunSideBySide) {
  constexpr int count = 4;
  thread_pool pool({.core = 1, .max = count});
  std::atomic<int> together{0};
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      ++together;
      eventually([&] { return together == count; });
    }));
  }
  pool.drain();
}

TEST(thread_pool_scenarios, AFixedPoolNeverStartsMore) {
  thread_pool pool({.core = 2, .capacity = 100});
  blocker held;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(2);
  EXPECT_EQ(pool.threads(), 2U);
  held.release();
  pool.drain();
  EXPECT_EQ(pool.stats().threads_largest, 2U);
  EXPECT_EQ(pool.stats().completed, 50U);
}

TEST(thread_pool_scenarios, ThreadsAreUsedAgain) {
  std::set<std::thread::id> used;
  thread_pool pool(1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pool.submit([&] { used.insert(std::this_thread::get_id()); }));
  }
  pool.drain();
  EXPECT_EQ(used.size(), 1U);
}

// ---- saturation

TEST(thread_pool_scenarios, ASaturatedPoolThatRejectsReturnsFull) {
  saturated s(overflow::reject);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(s.pool.submit([] {}), status::full);
  EXPECT_EQ(s.pool.stats().rejected, 5U);
}

TEST(thread_pool_scenarios, ASaturatedPoolMakesItsCallersRun) {
  saturated s(overflow::caller_runs);
  const auto me = std::this_thread::get_id();
  for (int i = 0; i < 5; ++i) {
    std::thread::id where;
    EXPECT_TRUE(s.pool.submit([&] { where = std::this_thread::get_id(); }));
    EXPECT_EQ(where, me);
  }
}

TEST(thread_pool_scenarios, ASaturatedPoolDiscardsTheNewest) {
  saturated s(overflow::drop_newest);
  std::atomic<bool> newest{false};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(s.pool.submit([&] { newest = true; }), status::dropped);
  }
  s.held.release();
  s.pool.drain();
  EXPECT_FALSE(newest);
  EXPECT_EQ(s.ran, 1);
  EXPECT_EQ(s.dropped, 5);
}

TEST(thread_pool_scenarios, ASaturatedPoolDiscardsTheOldest) {
  saturated s(overflow::drop_oldest);
  std::atomic<int> later{0};
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(s.pool.submit([&, i] { later = i; }));
  s.held.release();
  s.pool.drain();
  EXPECT_EQ(s.ran, 0) << "the oldest submission was dropped";
  EXPECT_EQ(later, 4) << "only the last is left";
  EXPECT_EQ(s.dropped, 5);
}

TEST(thread_pool_scenarios, ASaturatedPoolThatBlocksAcceptsWhenCapacityIsFreed) {
  saturated s(overflow::block);
  EXPECT_EQ(s.pool.try_submit([] {}), status::full);
  EXPECT_EQ(s.pool.submit([] {}, 1ms), status::timed_out);
  std::atomic<bool> ran{false};
  std::jthread waits([&] { EXPECT_TRUE(s.pool.submit([&] { ran = true; })); });
  eventually([&] { return s.pool.waiting_to_submit() == 1; });
  EXPECT_FALSE(ran);
  s.held.release();
  waits.join();
  s.pool.drain();
  EXPECT_TRUE(ran);
}

TEST(thread_pool_scenarios, ASubmitterThatWaitsCanBeStopped) {
  saturated s(overflow::block);
  std::stop_source source;
  std::jthread waits([&] {
    EXPECT_EQ(s.pool.submit([] { ADD_FAILURE(); }, source.get_token()), status::stopped);
  });
  eventually([&] { return s.pool.waiting_to_submit() == 1; });
  source.request_stop();
  waits.join();
}

// ---- after the end

TEST(thread_pool_scenarios, AfterTheEndEveryPolicyReturnsClosedAndRunsNothing) {
  for (const auto policy : {overflow::block, overflow::reject, overflow::caller_runs,
                            overflow::drop_newest, overflow::drop_oldest, overflow::latest}) {
    thread_pool pool({.core = 1, .capacity = 1, .overflow = policy});
    pool.close();
    std::atomic<bool> ran{false};
    submission f = [&] { ran = true; };
    EXPECT_EQ(pool.submit(std::move(f)), status::closed) << to_string(policy);
    EXPECT_TRUE(f) << "it is still the caller's";
    pool.drain();
    EXPECT_FALSE(ran);
    EXPECT_EQ(pool.stats().dropped, 0U);
    EXPECT_EQ(pool.stats().run_by_caller, 0U);
  }
}

TEST(thread_pool_scenarios, ItIsClosedAfterClose) {
  thread_pool pool(1);
  EXPECT_FALSE(pool.is_closed());
  EXPECT_TRUE(pool.close());
  EXPECT_TRUE(pool.is_closed());
  EXPECT_FALSE(pool.close());
}

TEST(thread_pool_scenarios, JoiningARunningPoolTimesOut) {
  thread_pool pool(1);
  EXPECT_EQ(pool.join(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(pool.join(deadline::after(1ms)), status::timed_out);
  EXPECT_FALSE(pool.is_closed());
}

TEST(thread_pool_scenarios, AClosedPoolHasNotEndedWhileAFunctionRuns) {
  thread_pool pool(1);
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  pool.close();
  EXPECT_EQ(pool.join(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(pool.threads(), 1U);
  held.release();
  EXPECT_EQ(pool.join(), status::ok);
  EXPECT_EQ(pool.threads(), 0U);
}

TEST(thread_pool_scenarios, StopHandsBackTheUnstartedAndTheStartedCompletes) {
  constexpr std::size_t threads = 2;
  constexpr std::size_t count = 5;
  thread_pool pool({.core = threads});
  blocker held;
  std::atomic<int> extra{0};
  for (std::size_t i = 0; i < threads; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(threads);
  for (std::size_t i = threads; i < count; ++i) ASSERT_TRUE(pool.submit([&] { ++extra; }));
  const std::stop_callback release(pool.stop_token(), [&] { held.release(); });
  EXPECT_EQ(pool.stop().size(), count - threads);
  EXPECT_TRUE(pool.is_closed());
  EXPECT_EQ(pool.queued(), 0U);
  EXPECT_EQ(pool.stats().completed, threads);
  EXPECT_EQ(extra, 0);
}

TEST(thread_pool_scenarios, StopOfAnIdlePoolReturnsNothing) {
  thread_pool pool(3);
  EXPECT_TRUE(pool.stop().empty());
  EXPECT_EQ(pool.threads(), 0U);
}

TEST(thread_pool_scenarios, ReturnedSubmissionsMayGoToAnotherPool) {
  thread_pool first({.core = 1});
  thread_pool second({.core = 1});
  blocker held;
  std::atomic<int> ran{0};
  ASSERT_TRUE(first.submit(held.function()));
  held.until_inside(1);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(first.submit([&] { ++ran; }));
  const std::stop_callback release(first.stop_token(), [&] { held.release(); });
  for (auto& each : first.stop()) ASSERT_TRUE(second.submit(std::move(each)));
  second.drain();
  EXPECT_EQ(ran, 10);
}

TEST(thread_pool_scenarios, ReturnedSubmissionsMayBeDroppedUnrun) {
  const auto held_by_function = std::make_shared<int>(0);
  thread_pool pool(1);
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  ASSERT_TRUE(pool.submit([held_by_function] { ADD_FAILURE(); }));
  const std::stop_callback release(pool.stop_token(), [&] { held.release(); });
  EXPECT_EQ(pool.stop().size(), 1U);
  EXPECT_EQ(held_by_function.use_count(), 1);
}

// ---- threads and functions that fail

TEST(thread_pool_scenarios, AStarterThatFailsAtFirstLeavesAPoolThatRunsEverything) {
  std::atomic<int> calls{0};
  thread_pool pool({.core = 1, .max = 4, .make_thread = [&](std::function<void()> life) {
                      // Every second thread start fails.
                      const auto error = std::errc::resource_unavailable_try_again;
                      if (calls++ % 2 == 1) throw std::system_error(std::make_error_code(error));
                      return seam::thread(std::move(life));
                    }});
  std::atomic<int> ran{0};
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  pool.drain();
  EXPECT_EQ(ran, 500);
}

TEST(thread_pool_scenarios, FunctionsThatThrowDoNotWearThePoolOut) {
  thread_pool pool({.core = 2, .on_error = [](std::exception_ptr) {}});
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(pool.submit([] { throw std::runtime_error("again"); }));
  }
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool.submit([&] { ran = true; }));
  EXPECT_EQ(pool.threads(), 2U);
  pool.drain();
  EXPECT_TRUE(ran);
  EXPECT_EQ(pool.stats().failed, 200U);
  EXPECT_EQ(pool.stats().threads_largest, 2U);
}

TEST(thread_pool_scenarios, AFunctionThatWasRefusedMayBeSubmittedAgain) {
  saturated s(overflow::reject);
  std::atomic<int> again{0};
  submission f = [&] { ++again; };
  while (!s.pool.submit(std::move(f))) {
    ASSERT_TRUE(f) << "a refused function stays with its caller";
    s.held.release();
  }
  s.pool.drain();
  EXPECT_EQ(again, 1);
}

}  // namespace
}  // namespace sluice::thread_pool_scenarios_test
