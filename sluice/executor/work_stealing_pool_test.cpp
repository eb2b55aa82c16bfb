#include "sluice/executor/work_stealing_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/testing/bounded_executor_suite.hpp"
#include "sluice/executor/testing/executor_suite.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/testing/cpu_time.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::work_stealing_pool_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::posted;
using pool_options = work_stealing_pool_options;

// ---- the suite of every executor

template <std::size_t Threads>
struct stealing_kind {
  static constexpr const char* name = Threads == 1 ? "work_stealing_1" : "work_stealing_3";
  static constexpr std::size_t workers = Threads;
  static constexpr bool is_serial = Threads == 1;
  static constexpr bool keeps_order = Threads == 1;  // submissions from outside only
  static constexpr bool is_bounded = true;

  explicit stealing_kind(testing::executor_setup&& s)
      : pool({.threads = Threads,
              .capacity = s.capacity,
              .overflow = s.overflow,
              .name = s.name,
              .on_drop = std::move(s.on_drop),
              .on_error = std::move(s.on_error)}) {}
  auto& get() { return pool; }
  void finish() { pool.drain(); }

  work_stealing_pool pool;
};

}  // namespace
}  // namespace sluice::work_stealing_pool_test

namespace sluice::testing {
using work_stealing_pool_test::stealing_kind;
using stealing_kinds = ::testing::Types<stealing_kind<1>, stealing_kind<3>>;
INSTANTIATE_TYPED_TEST_SUITE_P(work_stealing, executor_suite, stealing_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(work_stealing, executor_suite_DeathTest, stealing_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(work_stealing, bounded_executor_suite, stealing_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(work_stealing, bounded_executor_suite_DeathTest, stealing_kinds);
}  // namespace sluice::testing

namespace sluice::work_stealing_pool_test {
namespace {

// ---- work made by workers

TEST(WorkStealingPoolTest, ASubmissionByAWorkerStaysOffTheQueue) {
  work_stealing_pool pool({.threads = 1, .capacity = 1});
  std::atomic<int> ran{0};
  event done;
  ASSERT_TRUE(pool.submit([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
    EXPECT_EQ(pool.queued(), 0U);
    EXPECT_EQ(pool.stats().queued, 100U);
    EXPECT_EQ(ran, 0);
    done.set();
  }));
  done.wait();
  pool.drain();
  EXPECT_EQ(ran, 100);
}

TEST(WorkStealingPoolTest, AWorkerWhoseDequeIsFullRunsItsSubmission) {
  work_stealing_pool pool({.threads = 1, .deque_capacity = 4});
  std::vector<int> order;
  event done;
  ASSERT_TRUE(pool.submit([&] {
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool.submit([&order, i] { order.push_back(i); }));
    EXPECT_EQ(order, (std::vector<int>{4, 5}));
    done.set();
  }));
  done.wait();
  pool.drain();
  EXPECT_EQ(order.size(), 6U);
  EXPECT_EQ(pool.stats().run_by_caller, 2U);
}

// In the queue or in a deque.
TEST(WorkStealingPoolTest, RejectedCountsRefusedSubmissionsThatWereNotRun) {
  for (const auto policy : {overflow::reject, overflow::caller_runs}) {
    work_stealing_pool pool(
        {.threads = 1, .capacity = 1, .overflow = policy, .deque_capacity = 4});
    event full;
    event release;
    ASSERT_TRUE(pool.submit([&] {
      for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool.submit([] {}));
      full.set();
      eventually([&] { return release.is_set(); }, "the test to release it");
    }));
    full.wait();
    ASSERT_TRUE(pool.submit([] {}));
    const bool rejects = policy == overflow::reject;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(pool.submit([] {}), rejects ? status::full : status::ok);
    }
    EXPECT_EQ(pool.stats().run_by_caller, rejects ? 2U : 5U);
    EXPECT_EQ(pool.stats().rejected, rejects ? 3U : 0U);
    release.set();
    pool.drain();
  }
}

TEST(WorkStealingPoolTest, ANestTooDeepForItsCallerIsRejected) {
  work_stealing_pool pool({.threads = 1, .deque_capacity = 1});
  int depth = 0;
  status last = status::ok;
  const std::function<void()> nest = [&] {
    ++depth;
    const auto result = pool.submit(std::ref(nest));
    if (!result) last = result;
  };
  event done;
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit([] {}));  // fills the deque
    ASSERT_TRUE(pool.submit(std::ref(nest)));
    done.set();
  }));
  done.wait();
  EXPECT_EQ(depth, work_stealing_pool::caller_nesting_max);
  EXPECT_EQ(last, status::full);
  EXPECT_EQ(pool.stats().run_by_caller, 64U);
  EXPECT_EQ(pool.stats().rejected, 1U);
}

TEST(WorkStealingPoolTest, PostsThatFindTheDequeFullAreNotLost) {
  work_stealing_pool pool({.threads = 1, .deque_capacity = 2});
  std::atomic<int> ran{0};
  std::vector<std::unique_ptr<posted>> items;
  for (int i = 0; i < 20; ++i) items.push_back(std::make_unique<posted>([&] { ++ran; }));
  ASSERT_TRUE(pool.submit([&] {
    for (auto& each : items) pool.post(*each);
  }));
  pool.drain();
  EXPECT_EQ(ran, 20);
}

TEST(WorkStealingPoolTest, IdleWorkersStealFromABusyOne) {
  constexpr int pieces = 4;
  work_stealing_pool pool({.threads = pieces});
  std::atomic<int> together{0};
  event all;
  ASSERT_TRUE(pool.submit([&] {
    // No piece can end before all of them run, each on its own thread.
    for (int i = 0; i < pieces; ++i) {
      ASSERT_TRUE(pool.submit([&] {
        if (++together == pieces) all.set();
        eventually([&] { return all.is_set(); }, "all pieces to run side by side");
      }));
    }
  }));
  all.wait();
  pool.drain();
  EXPECT_GE(pool.stats().stolen, 3U);
  EXPECT_EQ(pool.stats().spares_started, 0U);
}

TEST(WorkStealingPoolTest, APostRunsNextOnItsWorker) {
  work_stealing_pool pool({.threads = 1});
  std::vector<int> order;
  event done;
  posted last([&] { order.push_back(2); });
  posted next([&] { order.push_back(1); });
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit([&] { order.push_back(3); }));
    pool.post(last);
    pool.post(next);  // replaces `last`
    done.set();
  }));
  done.wait();
  pool.drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Two pieces that wake each other, as coroutines over a channel do.
class ping_pong {
 public:
  explicit ping_pong(work_stealing_pool& on) : pool_(on) {}

  void serve() { pool_.post(ping_); }
  void stop() { over_ = true; }
  void until_ended() { ended_.wait(); }
  long turns() const { return turns_.load(); }
  long moves() const { return moves_.load(); }  // turns on another thread than the one before

 private:
  void turn(posted& other) {
    if (std::exchange(last_, std::this_thread::get_id()) != std::this_thread::get_id()) ++moves_;
    ++turns_;
    if (over_) {
      ended_.set();
    } else {
      pool_.post(other);
    }
  }

  work_stealing_pool& pool_;
  posted ping_{[this] { turn(pong_); }};
  posted pong_{[this] { turn(ping_); }};
  std::atomic<long> turns_{0};
  std::atomic<bool> over_{false};
  std::atomic<long> moves_{0};
  std::thread::id last_;  // one runs at a time, each after the other's post
  event ended_;
};

// They move only when a worker loses its processor for milliseconds and another takes its next
// piece: at most once a millisecond.
TEST(WorkStealingPoolTest, TwoThatTakeTurnsStayOnOneWorker) {
  work_stealing_pool pool({.threads = 4});
  ping_pong pair(pool);
  const auto began = std::chrono::steady_clock::now();
  pair.serve();
  eventually([&] { return pair.turns() > 200'000; });
  pair.stop();
  pair.until_ended();
  const auto took = std::chrono::steady_clock::now() - began;
  const auto rescued = static_cast<long>(pool.stats().rescued);
  EXPECT_EQ(pair.moves(), 1 + rescued) << "the first turn is on a thread of its own";
  EXPECT_EQ(pool.stats().stolen, pool.stats().rescued);
  EXPECT_LE(rescued, took / 1ms);
}

TEST(WorkStealingPoolTest, TwoThatTakeTurnsStarveNeitherTheQueueNorTheDeque) {
  work_stealing_pool pool({.threads = 1});
  ping_pong pair(pool);
  pair.serve();
  eventually([&] { return pair.turns() > 1000; });
  event from_outside;
  event from_inside;
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit([&] { from_inside.set(); }));
    from_outside.set();
  }));
  from_outside.wait();
  from_inside.wait();
  pair.stop();
  pair.until_ended();
}

TEST(WorkStealingPoolTest, APieceWaitsForALimitedNumberOfTurnsOfTwoAlternatingOnes) {
  work_stealing_pool pool({.threads = 1});
  ping_pong pair(pool);
  event done;
  long waited = 0;
  pair.serve();
  ASSERT_TRUE(pool.submit([&] {
    const long asked = pair.turns();
    ASSERT_TRUE(pool.submit([&, asked] {
      waited = pair.turns() - asked;
      done.set();
    }));
  }));
  done.wait();
  pair.stop();
  pair.until_ended();
  EXPECT_LE(waited, static_cast<long>(work_stealing_pool::favour_max) + 1);
}

TEST(WorkStealingPoolTest, AFunctionThatSubmitsItselfForEverDoesNotStarveOthers) {
  work_stealing_pool pool({.threads = 1});
  std::atomic<bool> over{false};
  std::atomic<int> oldest_ran{0};
  event ended;
  struct again {
    work_stealing_pool* pool;
    std::atomic<bool>* over;
    event* ended;
    void operator()() const {
      if (*over) {
        ended->set();
      } else {
        EXPECT_EQ(pool->submit(*this), status::ok);
      }
    }
  };
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit([&] { ++oldest_ran; }));  // the worker takes the youngest first
    ASSERT_TRUE(pool.submit(again{&pool, &over, &ended}));
  }));
  eventually([&] { return oldest_ran == 1; }, "the oldest piece to be run");
  event queued;
  ASSERT_TRUE(pool.submit([&] { queued.set(); }));
  queued.wait();
  over = true;
  ended.wait();
}

TEST(WorkStealingPoolTest, AnIdleWorkerTakesTheNextPostOfABusyWorker) {
  work_stealing_pool pool({.threads = 2});
  event rescued;
  posted item([&] { rescued.set(); });
  event done;
  ASSERT_TRUE(pool.submit([&] {
    pool.post(item);
    // Not a wait of the library: the pool is not notified.
    eventually([&] { return rescued.is_set(); }, "another worker to take it");
    done.set();
  }));
  done.wait();
  EXPECT_EQ(pool.stats().rescued, 1U);
}

// ---- blocking

TEST(WorkStealingPoolBlockingTest, AllWorkersMayWaitForAFunctionSubmittedLater) {
  work_stealing_pool pool({.threads = 2});
  event later;
  std::latch waiting(2);
  std::atomic<int> through{0};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      waiting.count_down();
      later.wait();
      ++through;
    }));
  }
  waiting.wait();
  eventually([&] { return pool.stats().blocked == 2; }, "both workers to sleep");
  ASSERT_TRUE(pool.submit([&] { later.set(); }));
  pool.drain();
  EXPECT_EQ(through, 2);
  EXPECT_EQ(pool.stats().spares_started, 1U);
}

TEST(WorkStealingPoolBlockingTest, OthersRunTheQueuedWorkOfASleepingWorker) {
  work_stealing_pool pool({.threads = 1});
  event submitted_ran;
  event posted_ran;
  posted item([&] { posted_ran.set(); });
  event done;
  ASSERT_TRUE(pool.submit([&] {
    ASSERT_TRUE(pool.submit([&] { submitted_ran.set(); }));
    pool.post(item);
    posted_ran.wait();
    submitted_ran.wait();
    done.set();
  }));
  done.wait();
}

// Each level waits for the next, which is submitted before it sleeps.
void wait_nested(work_stealing_pool& pool, int depth) {
  if (depth == 0) return;
  event inner;
  ASSERT_TRUE(pool.submit([&] {
    wait_nested(pool, depth - 1);
    inner.set();
  }));
  inner.wait();
}

TEST(WorkStealingPoolBlockingTest, NestedWaitsEndAsLongAsThereAreSpares) {
  work_stealing_pool pool({.threads = 2, .spares_max = 64});
  event done;
  ASSERT_TRUE(pool.submit([&] {
    wait_nested(pool, 40);
    done.set();
  }));
  done.wait();
  EXPECT_LE(pool.stats().threads, 66U);
}

TEST(WorkStealingPoolBlockingTest, SparesAreBounded) {
  work_stealing_pool pool({.threads = 1, .spares_max = 2});
  event release;
  std::atomic<int> waiting{0};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      ++waiting;
      release.wait();
    }));
  }
  eventually([&] { return pool.stats().blocked == 3; }, "the worker and both spares to sleep");
  EXPECT_EQ(waiting, 3);
  EXPECT_EQ(pool.stats().threads, 3U);
  EXPECT_EQ(pool.queued(), 7U);
  release.set();
  pool.drain();
  EXPECT_EQ(waiting, 10);
}

TEST(WorkStealingPoolBlockingTest, IdleSparesEndAfterTheirKeepAlive) {
  work_stealing_pool pool({.threads = 2, .keep_alive = 1ms});
  event release;
  std::atomic<int> waiting{0};
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      ++waiting;
      release.wait();
    }));
  }
  eventually([&] { return waiting == 6; });
  EXPECT_GE(pool.stats().threads, 6U);
  release.set();
  eventually([&] { return pool.stats().threads == 2; }, "the spares to end");
  // Their slots are reused.
  const auto started = pool.stats().spares_started;
  release.reset();
  waiting = 0;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      ++waiting;
      release.wait();
    }));
  }
  eventually([&] { return waiting == 6; });
  EXPECT_GE(pool.stats().spares_started, started + 4);
  release.set();
  pool.drain();
}

TEST(WorkStealingPoolBlockingTest, MutexesAndSemaphoresBetweenFunctionsDoNotStopThePool) {
  work_stealing_pool pool({.threads = 2});
  sluice::mutex guard;
  semaphore permits(0);
  int guarded = 0;
  constexpr int count = 200;
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      permits.acquire();
      const std::lock_guard hold(guard);
      ++guarded;
    }));
    ASSERT_TRUE(pool.submit([&] { permits.release(); }));
  }
  pool.drain();
  EXPECT_EQ(guarded, count);
}

// Resumed by the pop that frees capacity; it has no executor of its own.
testing::detached submit_then_wait(event& release, std::atomic<int>& through,
                                   work_stealing_pool& pool, submission f) {
  EXPECT_EQ(co_await pool.async_submit(std::move(f)), status::ok);
  release.wait();
  ++through;
}

TEST(WorkStealingPoolBlockingTest, ACoroutineThatAPopLetInMayBlockTheWorker) {
  work_stealing_pool pool({.threads = 1, .capacity = 1});
  for (int round = 0; round < 100; ++round) {
    eventually([&] { return pool.stats().running == 0; }, "the worker to rest");
    event release;
    std::atomic<int> through{0};
    ASSERT_TRUE(pool.submit([&] { ++through; }));  // full, until the worker has woken up
    std::jthread submitter(  // sleeps if the queue was full
        [&] { submit_then_wait(release, through, pool, [&] { ++through; }); });
    eventually([&] { return pool.waiting_to_submit() == 1 || pool.queued() == 0; });
    ASSERT_TRUE(pool.submit([&] { release.set(); }));
    eventually([&] { return through == 3; }, "all of them to run");
  }
}

// ---- idle

TEST(WorkStealingPoolIdleTest, SixteenIdleThreadsUseNoCpu) {
  work_stealing_pool pool({.threads = 16});
  std::atomic<int> ran{0};
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  eventually([&] { return ran == 1000 && pool.stats().running == 0; }, "all of it to rest");
  EXPECT_LT(testing::least_cpu_time_while_idle(100us), 100us) << "in 200 ms";
}

// ---- shutdown

TEST(WorkStealingPoolShutdownTest, DrainRunsQueuedWorkAndTheWorkItCreates) {
  std::atomic<int> ran{0};
  work_stealing_pool pool({.threads = 2});
  posted resumption([&] { ++ran; });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pool.submit([&, i] {
      ++ran;
      if (i == 99) pool.post(resumption);
    }));
  }
  pool.drain();
  EXPECT_EQ(ran, 101);
  EXPECT_EQ(pool.stats().threads, 0U);
  EXPECT_EQ(pool.submit([] {}), status::closed);
  pool.drain();  // a second call does nothing
}

TEST(WorkStealingPoolShutdownTest, AWorkerOfAClosedPoolGetsClosedAndMayStillForkAndPost) {
  std::atomic<int> ran{0};
  work_stealing_pool pool({.threads = 2});
  posted resumption([&] { ++ran; });
  event closed;
  ASSERT_TRUE(pool.submit([&] {
    closed.wait();
    EXPECT_EQ(pool.submit([] {}), status::closed);
    EXPECT_EQ(fork([] { return 3; }).join(), 3);
    pool.post(resumption);
  }));
  EXPECT_TRUE(pool.close());
  EXPECT_FALSE(pool.close());
  closed.set();
  EXPECT_EQ(pool.join(), status::ok);
  EXPECT_EQ(ran, 1);
}

TEST(WorkStealingPoolShutdownTest, ClosingAnIdlePoolEndsIt) {
  work_stealing_pool pool({.threads = 3});
  eventually([&] { return pool.stats().running == 0; });
  EXPECT_EQ(pool.join(deadline::after(1ms)), status::timed_out);
  pool.close();
  EXPECT_EQ(pool.join(), status::ok);
}

TEST(WorkStealingPoolShutdownTest, StopAlsoReturnsUnbegunSubmissionsOfTheDeques) {
  work_stealing_pool pool({.threads = 1, .spares_max = 0});
  event begun;
  std::atomic<int> ran{0};
  ASSERT_TRUE(pool.submit([&] {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
    begun.set();
    eventually([&] { return pool.stop_token().stop_requested(); }, "the stop to be seen");
    ++ran;
  }));
  begun.wait();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  auto unstarted = pool.stop();
  EXPECT_EQ(unstarted.size(), 12U);
  EXPECT_EQ(ran, 1);
  for (auto& f : unstarted) f();
  EXPECT_EQ(ran, 13);
}

TEST(WorkStealingPoolShutdownTest, ShutdownWithinDrainsAsFarAsTheTimeGoes) {
  {
    work_stealing_pool pool({.threads = 2});
    std::atomic<int> ran{0};
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
    EXPECT_TRUE(pool.shutdown(deadline::after(1h)).empty());
    EXPECT_EQ(ran, 50);
  }
  work_stealing_pool pool({.threads = 1, .spares_max = 0});
  event begun;
  ASSERT_TRUE(pool.submit([&] {
    begun.set();
    eventually([&] { return pool.stop_token().stop_requested(); }, "the stop to be seen");
  }));
  begun.wait();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit([] {}));
  EXPECT_EQ(pool.shutdown(deadline::after(1ms)).size(), 3U);
}

TEST(WorkStealingPoolShutdownTest, APostAfterTheEndRunsOnTheThreadThatMakesIt) {
  work_stealing_pool pool({.threads = 1});
  pool.drain();
  std::thread::id where;
  posted late([&] { where = std::this_thread::get_id(); });
  pool.post(late);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(WorkStealingPoolShutdownTest, AResumedFunctionMayDestroyThePoolWhileThePostReturns) {
  for (int round = 0; round < 300; ++round) {
    auto pool = std::make_unique<work_stealing_pool>(pool_options{.threads = 1});
    event resumed;
    posted item([&] { resumed.set(); });
    std::jthread poster([&item, on = pool.get()] { on->post(item); });
    resumed.wait();
    pool.reset();
  }
}

// The pool must not end after an idle worker took the post and before it has run: the work that it
// resumes finds the deque full and needs the queue.
TEST(WorkStealingPoolShutdownTest, APostTakenFromABusyWorkerRunsBeforeTheEnd) {
  sluice::testing::stress stress_run;
  auto dice = stress_run.generator(0);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    work_stealing_pool pool({.threads = 2, .deque_capacity = 2});
    std::array<posted, 4> resumed{posted([&] { ++ran; }), posted([&] { ++ran; }),
                                  posted([&] { ++ran; }), posted([&] { ++ran; })};
    posted item([&] {
      for (auto& each : resumed) pool.post(each);
    });
    const auto length = std::chrono::microseconds(900 + dice.below(1500));
    ASSERT_TRUE(pool.submit([&] {
      pool.post(item);
      const auto end = std::chrono::steady_clock::now() + length;
      eventually([&] { return std::chrono::steady_clock::now() >= end; });
    }));
    pool.drain();
    ASSERT_EQ(ran, 4);
    stress_run.did();
  }
}

TEST(WorkStealingPoolShutdownTest, ManyShortLivesEnd) {
  sluice::testing::stress stress_run;
  for (int round = 0; round < 100; ++round) {
    auto dice = stress_run.generator(static_cast<std::uint64_t>(round));
    std::atomic<int> ran{0};
    const int count = static_cast<int>(dice.below(40));
    {
      work_stealing_pool pool({.threads = 1 + dice.below(4)});
      for (int i = 0; i < count; ++i) {
        ASSERT_TRUE(pool.submit([&] {
          if (pool.submit([&] { ++ran; }) == status::closed) ++ran;
        }));
      }
    }
    ASSERT_EQ(ran, count);
    stress_run.did(static_cast<std::uint64_t>(count));
  }
}

// ---- misuse

TEST(WorkStealingPoolDeathTest, ZeroThreadsAreABrokenContract) {
  EXPECT_DEATH(work_stealing_pool({.threads = 0, .name = "none"}), "none.*at least one thread");
}

TEST(WorkStealingPoolDeathTest, AWorkerThatWaitsForItsOwnPoolIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto from_a_worker = [](auto body) {
    work_stealing_pool pool({.threads = 1});
    fork(pool, [&] { body(pool); }).join();
  };
  EXPECT_DEATH(from_a_worker([](auto& pool) { pool.drain(); }), "by another thread than its own");
  EXPECT_DEATH(from_a_worker([](auto& pool) { (void)pool.stop(); }),
               "by another thread than its own");
  EXPECT_DEATH(from_a_worker([](auto& pool) { (void)pool.join(); }),
               "by another thread than its own");
  EXPECT_DEATH(from_a_worker([](auto& pool) { (void)pool.shutdown({}); }),
               "by another thread than its own");
}

// ---- everything together

TEST(WorkStealingPoolStressTest, ForksPostsSubmissionsAndWaitsTogetherLoseNothing) {
  sluice::testing::stress stress_run;
  std::atomic<long> forks{0};
  std::atomic<long> forks_expected{0};
  constexpr int each = 300;
  latch done(3 * each);
  {
    sluice::mutex guard;
    work_stealing_pool pool({.threads = 3, .capacity = 32, .deque_capacity = 64});
    std::vector<std::jthread> outside;
    for (std::uint64_t who = 0; who < 3; ++who) {
      outside.emplace_back([&, who] {
        auto dice = stress_run.generator(who);
        for (int i = 0; i < each; ++i) {
          const auto choice = dice.below(4);
          ASSERT_TRUE(pool.submit([&, choice] {
            if (choice == 0) {
              event set;
              ASSERT_TRUE(pool.submit([&] { set.set(); }));
              set.wait();
            } else if (choice == 1) {
              auto child = fork([&] { ++forks; });
              ASSERT_TRUE(pool.submit([&] { ++forks; }));
              child.join();
              forks_expected += 2;
            } else if (choice == 2) {
              const std::lock_guard hold(guard);
              std::this_thread::yield();
            }
            done.count_down();
          }));
        }
        stress_run.did(each);
      });
    }
    done.wait();
  }
  EXPECT_EQ(forks, forks_expected);
}

}  // namespace
}  // namespace sluice::work_stealing_pool_test
