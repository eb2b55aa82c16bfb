// Functions in a thread_pool: order, errors, calls by its own threads, counting and timing,
// shutdown. Its threads are in thread_pool_threads_test.cpp; overflow, posts and closing in
// the suite of every executor.

#include "sluice/executor/thread_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/seam.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/testing/blocker.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/testing/cpu_time.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::thread_pool_test {
namespace {

using namespace std::chrono_literals;
using testing::blocker;
using testing::eventually;

// ---- order

TEST(thread_pool, OneThreadRunsInTheOrderOfArrivalAlsoWhenItBorrowsMany) {
  thread_pool pool({.core = 1, .capacity = 2000});
  blocker held;
  std::vector<int> order;
  ASSERT_TRUE(pool.submit(held.function()));
  for (int i = 0; i < 1500; ++i) ASSERT_TRUE(pool.submit([&order, i] { order.push_back(i); }));
  held.release();
  pool.drain();
  ASSERT_EQ(order.size(), 1500U);
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(thread_pool, TheMostUrgentIsRunFirst) {
  thread_pool pool({.core = 1, .by_priority = true});
  blocker held;
  std::string order;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  for (const char each : std::string("badc")) {
    ASSERT_TRUE(pool.submit({'z' - each, [&order, each] { order += each; }}));
  }
  ASSERT_TRUE(pool.submit({'z' - 'a', [&order] { order += 'A'; }}));
  held.release();
  pool.drain();
  EXPECT_EQ(order, "aAbcd");
}

TEST(thread_pool, AgeingRunsOldSubmissionsFirst) {
  manual_clock time;
  thread_pool pool({.core = 1, .by_priority = true, .ageing = 1s, .clock = &time});
  blocker held;
  std::string order;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  ASSERT_TRUE(pool.submit({0, [&order] { order += "old "; }}));
  time.advance(6s);
  ASSERT_TRUE(pool.submit({5, [&order] { order += "urgent "; }}));
  ASSERT_TRUE(pool.submit({7, [&order] { order += "very "; }}));
  held.release();
  pool.drain();
  EXPECT_EQ(order, "very old urgent ");
}

// ---- lent batches

TEST(thread_pool, NothingWaitsBehindALongFunctionWhileAThreadIsIdle) {
  thread_pool pool({.core = 2, .capacity = 1000});
  blocker first;
  blocker second;
  ASSERT_TRUE(pool.submit(first.function()));
  ASSERT_TRUE(pool.submit(second.function()));
  second.until_inside(1);
  first.until_inside(1);
  blocker lasting;
  std::atomic<int> ran{0};
  ASSERT_TRUE(pool.submit(lasting.function()));
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  first.release();  // its thread borrows a batch that begins with the long function
  lasting.until_inside(1);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(pool.queued(), 500U) << "includes lent submissions that have not begun";
  second.release();  // its thread can only steal from the batch
  eventually([&] { return ran == 500; }, "all functions behind the long one to run");
  eventually([&] { return pool.stats().active == 1; }, "the thread that ran it to be idle");
  lasting.release();
}

TEST(thread_pool, ASubmissionBehindALongFunctionRunsBeforeMuchLaterOnes) {
  thread_pool pool({.core = 2, .capacity = 1000});
  blocker first;
  blocker second;
  ASSERT_TRUE(pool.submit(first.function()));
  ASSERT_TRUE(pool.submit(second.function()));
  second.until_inside(1);
  first.until_inside(1);
  blocker lasting;
  std::mutex guard;
  std::vector<int> order;
  ASSERT_TRUE(pool.submit(lasting.function()));
  for (int i = 0; i < 999; ++i) {
    ASSERT_TRUE(pool.submit([&, i] {
      const std::lock_guard hold(guard);
      order.push_back(i);
    }));
  }
  first.release();
  lasting.until_inside(1);
  second.release();
  eventually([&] {
    const std::lock_guard hold(guard);
    return order.size() == 999;
  });
  lasting.release();
  pool.drain();
  // At most four later batches of 32 begin before the submissions that were lent first.
  for (std::size_t at = 300; at < order.size(); ++at) {
    ASSERT_GE(order[at], 100) << "it was overtaken by " << at;
  }
}

TEST(thread_pool, StopAlsoReturnsLentSubmissions) {
  thread_pool pool({.core = 1, .capacity = 1000});
  blocker first;
  ASSERT_TRUE(pool.submit(first.function()));
  first.until_inside(1);
  blocker second;
  std::vector<int> order;
  ASSERT_TRUE(pool.submit(second.function()));
  for (int i = 0; i < 900; ++i) ASSERT_TRUE(pool.submit([&order, i] { order.push_back(i); }));
  first.release();
  second.until_inside(1);
  const std::stop_callback release(pool.stop_token(), [&] { second.release(); });
  auto unstarted = pool.stop();
  EXPECT_TRUE(order.empty());
  ASSERT_EQ(unstarted.size(), 900U);
  for (auto& each : unstarted) each();
  for (int i = 0; i < 900; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

// ---- exceptions

TEST(thread_pool, AFunctionThatThrowsEndsNothing) {
  std::atomic<int> reported{0};
  thread_pool pool({.core = 1, .on_error = [&](std::exception_ptr) { ++reported; }});
  ASSERT_TRUE(pool.submit([] { throw std::runtime_error("no"); }));
  ASSERT_TRUE(pool.submit([] { throw 7; }));
  ASSERT_TRUE(pool.submit([] {}));
  pool.drain();
  EXPECT_EQ(reported, 2);
  const auto seen = pool.stats();
  EXPECT_EQ(seen.failed, 2U);
  EXPECT_EQ(seen.completed, 3U);
  EXPECT_EQ(seen.threads_largest, 1U) << "the same thread continued";
}

TEST(thread_pool, WithoutOnErrorItIsWrittenToStandardError) {
  ::testing::internal::CaptureStderr();
  {
    thread_pool pool({.core = 1, .name = "mails"});
    ASSERT_TRUE(pool.submit([] { throw std::runtime_error("no paper"); }));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: a function submitted to executor 'mails' threw: no paper\n");
}

TEST(thread_pool, AnExceptionOfOnErrorIsReportedAndEndsNothing) {
  ::testing::internal::CaptureStderr();
  std::atomic<bool> ran{false};
  {
    thread_pool pool({.core = 1, .on_error = [](std::exception_ptr) {
                        throw std::runtime_error("on_error is broken");
                      }});
    ASSERT_TRUE(pool.submit([] { throw 1; }));
    ASSERT_TRUE(pool.submit([&] { ran = true; }));
  }
  EXPECT_TRUE(ran);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("on_error is broken"), std::string::npos);
}

// ---- the pool's own threads

TEST(thread_pool, AThreadOfThePoolRunsASubmissionInsteadOfWaiting) {
  thread_pool pool({.core = 1, .capacity = 1});
  std::atomic<int> ran{0};
  std::atomic<int> here{0};
  ASSERT_TRUE(pool.submit([&] {
    const auto me = std::this_thread::get_id();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(pool.submit([&, me] {
        ++ran;
        here += std::this_thread::get_id() == me ? 1 : 0;
      }),
                status::ok);
      EXPECT_EQ(ran, i) << "the first fits, the others run immediately";
    }
    EXPECT_EQ(pool.try_submit([] {}), status::full) << "try_submit neither waits nor runs it";
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(pool.submit([] {}, stopped.get_token()), status::stopped);
  }));
  eventually([&] { return ran == 5; });
  pool.drain();
  EXPECT_EQ(here, 5);
  EXPECT_EQ(pool.stats().run_by_caller, 4U);
  EXPECT_EQ(pool.stats().rejected, 1U);
  EXPECT_EQ(pool.stats().completed, 6U);
}

TEST(thread_pool, AllItsThreadsMaySubmitToAFullPoolAtOnce) {
  thread_pool pool({.core = 4, .capacity = 2});
  latch ran(2000);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      for (int j = 0; j < 10; ++j) ASSERT_TRUE(pool.submit([&] { ran.count_down(); }));
    }));
  }
  ran.wait();
}

TEST(thread_pool, SubmissionsRunByTheirCallersNestToALimit) {
  thread_pool pool({.core = 1, .capacity = 1});
  blocker held;
  std::atomic<int> deepest{0};
  std::atomic<bool> refused{false};
  struct nest {
    thread_pool& pool;
    std::atomic<int>& deepest;
    std::atomic<bool>& refused;
    int depth;
    void operator()() const {
      deepest = std::max(deepest.load(), depth);
      if (pool.submit(nest{pool, deepest, refused, depth + 1}) == status::full) refused = true;
    }
  };
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit(held.function()));  // fills the queue
    nest{pool, deepest, refused, 0}();
  }));
  eventually([&] { return refused.load(); });
  EXPECT_EQ(deepest, queued_executor::caller_nesting_max);
  held.release();
}

TEST(thread_pool, AFunctionOfAnotherExecutorOnItsThreadDoesNotWaitEither) {
  thread_pool pool({.core = 1, .capacity = 1});
  inline_executor on_top;
  std::atomic<int> ran{0};
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(on_top.submit([&] {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
    }));
  }));
  eventually([&] { return ran == 3; });
}

// ---- counting and timing

TEST(thread_pool, CountsEveryOutcome) {
  thread_pool pool({.core = 2, .capacity = 3, .overflow = overflow::reject});
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit([] {}));
  EXPECT_EQ(pool.submit([] {}), status::full);
  auto seen = pool.stats();
  EXPECT_EQ(seen.threads, 2U);
  EXPECT_EQ(seen.threads_limit, 2U);
  EXPECT_EQ(seen.active, 2U);
  EXPECT_EQ(seen.queued, 3U);
  EXPECT_EQ(seen.completed, 0U);
  EXPECT_EQ(seen.rejected, 1U);
  held.release();
  eventually([&] { return pool.stats().completed == 5 && pool.stats().active == 0; });
  pool.drain();
  seen = pool.stats();
  EXPECT_EQ(seen.threads, 0U);
  EXPECT_EQ(seen.threads_largest, 2U);
  EXPECT_EQ(seen.completed, 5U) << "including threads that have ended";
  EXPECT_EQ(pool.submit([] {}), status::closed);
  EXPECT_EQ(pool.stats().rejected, 1U) << "closed is not full";
}

TEST(thread_pool, CountsDroppedSubmissionsAndThoseRunByCallers) {
  blocker held;
  thread_pool dropping({.core = 1, .capacity = 1, .overflow = overflow::drop_oldest});
  thread_pool calling({.core = 1, .capacity = 1, .overflow = overflow::caller_runs});
  for (thread_pool* each : {&dropping, &calling}) ASSERT_TRUE(each->submit(held.function()));
  held.until_inside(2);
  for (thread_pool* each : {&dropping, &calling}) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(each->submit([] {}));
  }
  EXPECT_EQ(dropping.stats().dropped, 3U);
  EXPECT_EQ(calling.stats().run_by_caller, 3U);
  EXPECT_EQ(calling.stats().completed, 3U);
  EXPECT_EQ(calling.stats().rejected, 0U);
  held.release();
}

TEST(thread_pool, CountsPostsApart) {
  thread_pool pool(1);
  std::atomic<int> ran{0};
  testing::posted item([&] { ++ran; });
  pool.post(item);
  eventually([&] { return pool.stats().posts == 1; });
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(pool.stats().completed, 0U);
}

TEST(thread_pool, TimesHowLongFunctionsWaitAndRun) {
  manual_clock time;
  thread_pool pool({.core = 1, .time_every = 1, .clock = &time});
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  ASSERT_TRUE(pool.submit([&] { time.advance(3ms); }));
  time.advance(10ms);
  held.release();
  pool.drain();
  const auto waits = pool.wait_times();
  const auto runs = pool.run_times();
  ASSERT_EQ(waits.count(), 2U);
  EXPECT_EQ(waits.smallest(), 0U);
  EXPECT_EQ(waits.largest(), 10'000'000U);
  ASSERT_EQ(runs.count(), 2U);
  EXPECT_EQ(runs.smallest(), 3'000'000U);
  EXPECT_EQ(runs.largest(), 10'000'000U);
}

TEST(thread_pool, TimesTheFirstAndEveryNthOrNone) {
  thread_pool some({.core = 1, .time_every = 10});
  thread_pool none({.core = 1, .time_every = 0});
  for (thread_pool* each : {&some, &none}) {
    for (int i = 0; i < 41; ++i) ASSERT_TRUE(each->submit([] {}));
    each->drain();
  }
  EXPECT_EQ(some.wait_times().count(), 5U);
  EXPECT_EQ(some.run_times().count(), 5U);
  EXPECT_EQ(none.wait_times().count(), 0U);
}

TEST(thread_pool, AReturnedSubmissionLosesItsTimeMark) {
  manual_clock time;
  std::vector<submission> back;
  {
    blocker held;
    thread_pool first({.core = 1,
                       .capacity = 1,
                       .overflow = overflow::drop_oldest,
                       .on_drop = [&](submission&& f) { back.push_back(std::move(f)); },
                       .time_every = 1,
                       .clock = &time});
    ASSERT_TRUE(first.submit(held.function()));
    held.until_inside(1);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(first.submit([] {}));  // the second drops the first
    const std::stop_callback release(first.stop_token(), [&] { held.release(); });
    for (auto& each : first.stop()) back.push_back(std::move(each));
  }
  ASSERT_EQ(back.size(), 2U) << "one dropped, one not begun";
  time.advance(1h);
  thread_pool second({.core = 1, .time_every = 0});
  for (auto& each : back) ASSERT_TRUE(second.submit(std::move(each)));
  second.drain();
  EXPECT_EQ(second.wait_times().count(), 0U);
  EXPECT_EQ(second.run_times().count(), 0U);
}

// ---- shutdown

TEST(thread_pool, DrainRunsEverythingAndMayBeCalledAgain) {
  std::atomic<int> ran{0};
  thread_pool pool({.core = 2});
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  pool.drain();
  EXPECT_EQ(ran, 1000);
  pool.drain();
  EXPECT_TRUE(pool.stop().empty());
  EXPECT_TRUE(pool.shutdown(deadline::after(1h)).empty());
  EXPECT_TRUE(pool.join());
}

TEST(thread_pool, TheDestructorDrains) {
  std::atomic<int> ran{0};
  {
    thread_pool pool({.core = 2});
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 1000);
}

TEST(thread_pool, StopRequestsRunningFunctionsToEndAndReturnsTheRest) {
  thread_pool pool({.core = 1, .capacity = 10});
  event inside;
  ASSERT_TRUE(pool.submit([&pool, &inside] {
    inside.set();
    const auto stop = pool.stop_token();
    eventually([&] { return stop.stop_requested(); });
  }));
  inside.wait();
  std::string order;
  for (const char each : std::string("abc")) {
    ASSERT_TRUE(pool.submit([&order, each] { order += each; }));
  }
  auto unstarted = pool.stop();
  ASSERT_EQ(unstarted.size(), 3U);
  EXPECT_EQ(order, "");
  for (auto& each : unstarted) each();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(pool.threads(), 0U);
}

TEST(thread_pool, ShutdownDrainsWithinItsLimits) {
  std::atomic<int> ran{0};
  thread_pool pool({.core = 2});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  EXPECT_TRUE(pool.shutdown(deadline::after(1h)).empty());
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(pool.stop_token().stop_requested());
}

TEST(thread_pool, ShutdownWithinStopsAtTheDeadlineOrTheStop) {
  for (const bool by_stop : {false, true}) {
    blocker held;
    manual_clock time;
    std::stop_source enough;
    thread_pool pool({.core = 1, .capacity = 10});
    ASSERT_TRUE(pool.submit(held.function()));
    held.until_inside(1);
    ASSERT_TRUE(pool.submit([] {}));
    const std::stop_callback release(pool.stop_token(), [&] { held.release(); });
    std::size_t unstarted = 0;
    std::jthread ending([&] {
      unstarted = pool.shutdown({deadline::after(1h, time), enough.get_token()}).size();
    });
    eventually([&] { return time.pending() == 1; });
    EXPECT_FALSE(pool.stop_token().stop_requested());
    if (by_stop) {
      enough.request_stop();
    } else {
      time.advance(1h);
    }
    ending.join();
    EXPECT_EQ(unstarted, 1U);
  }
}

TEST(thread_pool, JoinWaitsForAPoolClosedByAnotherThread) {
  thread_pool pool(2);
  EXPECT_EQ(pool.join(deadline::after(1ms)), status::timed_out);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(pool.join(source.get_token()), status::stopped);
  std::jthread closing([&] { pool.close(); });
  EXPECT_EQ(pool.join(), status::ok);
}

TEST(thread_pool, AFunctionMayCloseItsPool) {
  thread_pool pool(2);
  ASSERT_TRUE(pool.submit([&] { EXPECT_TRUE(pool.close()); }));
  EXPECT_TRUE(pool.join());
  EXPECT_EQ(pool.submit([] {}), status::closed);
}

// A function may wait for a post that is made after the other threads have run out of work.
TEST(thread_pool, AClosedPoolRunsPostsThatOneOfItsFunctionsWaitsFor) {
  for (const std::size_t core : {2U, 1U}) {
    for (const bool by_stop : {false, true}) {
      thread_pool pool({.core = core, .max = 2, .keep_alive = 0s});
      event first;
      event second;
      std::atomic<bool> inside{false};
      ASSERT_TRUE(pool.submit([&] {
        inside = true;
        first.wait();
        second.wait();
      }));
      eventually([&] { return inside.load(); });
      testing::posted sets_first([&] { first.set(); });
      testing::posted sets_second([&] { second.set(); });
      std::jthread ends([&] {
        if (by_stop) {
          EXPECT_TRUE(pool.stop().empty());
        } else {
          pool.drain();
        }
      });
      eventually([&] { return pool.is_closed(); });
      for (auto* const each : {&sets_first, &sets_second}) {
        // Long enough for the other thread to leave, if it were wrong.
        EXPECT_EQ(pool.join(deadline::after(5ms)), status::timed_out);
        pool.post(*each);
      }
      ends.join();
      EXPECT_EQ(pool.stats().posts, 2U);
      EXPECT_EQ(pool.threads(), 0U);
    }
  }
}

// Posts from outside and functions that wait for them, while the pool closes and its threads rest.
TEST(thread_pool, NoPostIsLeftBehindWhileAPoolEnds) {
  testing::stress run;
  const auto rounds = testing::effort(testing::test_name(), "pools",
                                      {.ci = 500, .full = 5'000, .sanitized = 100});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool elastic = round % 2 == 0;
    thread_pool pool({.core = elastic ? 1U : 3U, .max = 3, .keep_alive = 0s});
    std::array<event, 2> done;
    testing::posted one([&] { done[0].set(); });
    testing::posted two([&] { done[1].set(); });
    for (event& each : done) ASSERT_TRUE(pool.submit([&] { each.wait(); }));
    std::jthread posts_one([&] { pool.post(one); });
    std::jthread posts_two([&] { pool.post(two); });
    pool.close();
    ASSERT_TRUE(pool.join(deadline::after(1min))) << "a post was left behind";
    run.did(2);
  }
}

TEST(thread_pool, ManyMayEndItAtOnce) {
  for (int round = 0; round < 50; ++round) {
    thread_pool pool({.core = 3, .capacity = 100});
    std::atomic<int> ran{0};
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
    std::atomic<std::size_t> back{0};
    {
      std::vector<std::jthread> threads;
      threads.emplace_back([&] { back += pool.stop().size(); });
      threads.emplace_back([&] { pool.drain(); });
      threads.emplace_back([&] { back += pool.shutdown(deadline::after(0s)).size(); });
      threads.emplace_back([&] { EXPECT_TRUE(pool.join()); });
    }
    EXPECT_EQ(static_cast<std::size_t>(ran) + back, 100U) << "each was run or returned";
  }
}

TEST(thread_pool, AnIdlePoolUsesNoCpu) {
  thread_pool pool(16);
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  eventually([&] { return ran == 100; });
  EXPECT_LT(testing::least_cpu_time_while_idle(100us), 100us) << "in 200 ms";
}

// A thread may run the item before its post has returned. The sanitizers check this.
TEST(thread_pool, ItMayBeDestroyedAsSoonAsAPostedItemHasRun) {
  testing::stress run;
  for (int round = 0; round < 1'500; ++round) {
    auto pool = std::make_unique<thread_pool>(
        thread_pool_options{.core = 1, .max = round % 2 == 0 ? 1U : 2U});
    std::atomic<bool> ran{false};
    testing::posted item([&] { ran = true; });
    std::jthread posts([&, on = pool.get()] { on->post(item); });
    while (!ran) seam::yield();
    pool.reset();
    run.did(1);
  }
}

// Bursts to several pools in a row, with functions that submit and functions that throw: all of it
// runs, and every pool ends.
TEST(thread_pool, NothingIsLostInBurstsAndEveryPoolEnds) {
  testing::stress run;
  auto choose = run.generator(0);
  for (int round = 0; round < 150; ++round) {
    const auto threads = 1 + choose.below(5);
    const bool elastic = choose.below(3) == 0;
    std::atomic<int> ran{0};
    int expected = 0;
    thread_pool pool({.core = elastic ? 1 : threads,
                      .max = threads,
                      .keep_alive = std::chrono::microseconds(choose.below(30)),
                      .capacity = 1 + choose.below(500),
                      .by_priority = choose.below(4) == 0,
                      .on_error = [](std::exception_ptr) {}});
    const int count = static_cast<int>(choose.below(2000));
    for (int i = 0; i < count; ++i) {
      ++expected;
      switch (choose.below(16)) {
        case 0:
          ASSERT_TRUE(pool.submit([&] {
            ++ran;
            throw 1;
          }));
          break;
        case 1:
          ASSERT_TRUE(pool.submit([&] {
            if (!pool.submit([&] { ++ran; })) ++ran;  // it may be closed by now
          }));
          break;
        default:
          ASSERT_TRUE(pool.submit([&] { ++ran; }));
      }
    }
    ASSERT_TRUE((pool.close(), pool.join(deadline::after(1min)))) << "it does not end";
    EXPECT_EQ(ran, expected);
    run.did(static_cast<std::uint64_t>(count));
  }
}

// ---- misuse

class thread_pool_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(thread_pool_DeathTest, NoThreadsIsABrokenContract) {
  EXPECT_DEATH(thread_pool(0), "sluice::thread_pool.*pool.*at least one thread");
}

TEST_F(thread_pool_DeathTest, MaxBelowCoreIsABrokenContract) {
  EXPECT_DEATH(thread_pool({.core = 3, .max = 2, .name = "mails"}), "mails.*max not to be below");
  EXPECT_DEATH(thread_pool({.core = 1, .max = 0}), "max not to be below core");
  EXPECT_DEATH(thread_pool({.core = 1, .max = thread_pool::threads_max + 1}), "at most 65536");
}

TEST_F(thread_pool_DeathTest, OtherImpossibleOptionsAreBrokenContracts) {
  EXPECT_DEATH(thread_pool({.core = 1, .capacity = 0}), "a capacity of at least 1");
  EXPECT_DEATH(thread_pool({.core = 1, .by_priority = true, .ageing = -1s}), "not negative");
  EXPECT_DEATH(thread_pool({.core = 1, .max = 2, .sizing = sizing::adaptive{.window = 0}}),
               "a window of");
}

TEST_F(thread_pool_DeathTest, SizingWithoutAMaxIsABrokenContract) {
  EXPECT_DEATH(thread_pool({.core = 1, .sizing = sizing::adaptive{}, .name = "mails"}),
               "mails.*a max, the upper limit of sizing");
  const thread_pool fixed({.core = 1, .max = 1, .sizing = sizing::adaptive{}});
  EXPECT_EQ(fixed.stats().threads_limit, 1U);
}

TEST_F(thread_pool_DeathTest, EndingItFromOneOfItsOwnThreadsIsABrokenContract) {
  const auto from_inside = [](auto&& body) {
    thread_pool pool(1);
    (void)pool.submit([&] { body(pool); });
    (void)pool.join();
  };
  const char* const says = "would wait for itself";
  EXPECT_DEATH(from_inside([](thread_pool& p) { p.drain(); }), says);
  EXPECT_DEATH(from_inside([](thread_pool& p) { (void)p.stop(); }), says);
  EXPECT_DEATH(from_inside([](thread_pool& p) { (void)p.join(); }), says);
  EXPECT_DEATH(from_inside([](thread_pool& p) { (void)p.shutdown({}); }), says);
  EXPECT_DEATH(from_inside([](thread_pool& p) { p.~thread_pool(); }), says);
}

}  // namespace
}  // namespace sluice::thread_pool_test
