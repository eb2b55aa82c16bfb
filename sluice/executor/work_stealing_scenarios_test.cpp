// The situations of the JSR-166 tests of ForkJoinPool, ForkJoinTask and RecursiveTask that apply,
// with the guarantees of this library.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/parallel.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::work_stealing_scenarios_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;

struct fib_failed : std::runtime_error {
  fib_failed() : std::runtime_error("fib") {}
};

int fib(int n) {
  if (n <= 1) return n;
  auto first = fork([n] { return fib(n - 1); });
  const int second = fib(n - 2);
  return second + first.join();
}
int failing_fib(int n) {
  if (n <= 1) throw fib_failed();
  auto first = fork([n] { return failing_fib(n - 1); });
  const int second = failing_fib(n - 2);
  return second + first.join();
}

// ---- a pool

TEST(ForkJoinPoolScenario, ANewlyMadePoolHasItsThreadsAndIsIdle) {
  work_stealing_pool pool({.threads = 3, .name = "fresh"});
  EXPECT_EQ(pool.threads(), 3U);
  EXPECT_EQ(pool.stats().threads, 3U);
  EXPECT_EQ(pool.name(), "fresh");
  EXPECT_FALSE(pool.is_closed());
  EXPECT_FALSE(pool.stop_token().stop_requested());
  EXPECT_EQ(pool.queued(), 0U);
  EXPECT_EQ(pool.stats().stolen, 0U);
  EXPECT_EQ(pool.stats().executed, 0U);
  eventually([&] { return pool.stats().running == 0; }, "it to become quiet");
}

TEST(ForkJoinPoolScenario, ByDefaultItHasAThreadForEveryProcessor) {
  work_stealing_pool pool;
  EXPECT_EQ(pool.threads(), seam::usable_cpus().size());
}

TEST(ForkJoinPoolScenario, ItBecomesQuietAfterEverySubmissionAndEndsWhenAsked) {
  work_stealing_pool pool({.threads = 2});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(fork(pool, [] { return fib(12); }).join(), 144);
    eventually([&] { return pool.stats().running == 0; }, "it to become quiet");
    EXPECT_EQ(pool.stats().queued, 0U);
  }
  EXPECT_TRUE(pool.close());
  EXPECT_EQ(pool.join(), status::ok);
  EXPECT_EQ(pool.submit([] {}), status::closed);
  EXPECT_EQ(pool.join(deadline::after(0s)), status::ok);
}

TEST(ForkJoinPoolScenario, WaitingForARunningPoolTimesOut) {
  work_stealing_pool pool({.threads = 1});
  event release;
  ASSERT_TRUE(pool.submit([&] { release.wait(); }));
  EXPECT_EQ(pool.join(deadline::after(2ms)), status::timed_out);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(pool.join(source.get_token()), status::stopped);
  pool.close();
  EXPECT_EQ(pool.join(deadline::after(2ms)), status::timed_out) << "closed, but not at its end";
  release.set();
  EXPECT_EQ(pool.join(), status::ok);
}

TEST(ForkJoinPoolScenario, TheHandlerGetsTheExceptionOfAFunctionAndTheWorkerContinues) {
  std::atomic<int> seen{0};
  work_stealing_pool pool({.threads = 1, .on_error = [&](const std::exception_ptr& error) {
                             EXPECT_THROW(std::rethrow_exception(error), fib_failed);
                             ++seen;
                           }});
  std::atomic<std::thread::id> before;
  std::atomic<std::thread::id> after;
  ASSERT_TRUE(pool.submit([&] {
    before = std::this_thread::get_id();
    throw fib_failed();
  }));
  ASSERT_TRUE(pool.submit([&] { after = std::this_thread::get_id(); }));
  pool.drain();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(pool.stats().failed, 1U);
  EXPECT_EQ(before.load(), after.load());
}

TEST(ForkJoinPoolScenario, WorkQueuedBehindABusyWorkerIsCountedAndReturnedByStop) {
  work_stealing_pool pool({.threads = 1, .spares_max = 0});
  event begun;
  ASSERT_TRUE(pool.submit([&] {
    begun.set();
    eventually([&] { return pool.stop_token().stop_requested(); }, "the stop to be seen");
  }));
  begun.wait();
  int ran = 0;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  EXPECT_EQ(pool.queued(), 3U);
  auto back = pool.stop();
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(ran, 0);
  for (auto& f : back) f();
  EXPECT_EQ(ran, 3);
}

TEST(ForkJoinPoolScenario, AnEmptyFunctionIsRefused) {
  EXPECT_DEATH(
      {
        work_stealing_pool pool({.threads = 1});
        (void)pool.submit(submission());
      },
      "a function to run");
}

// ForkJoinPool.managedBlock: a lock and a queue that a worker waits for.
TEST(ForkJoinPoolScenario, WorkersThatWaitForALockOrAQueueAreReplaced) {
  work_stealing_pool pool({.threads = 1});
  sluice::mutex lock;
  bounded_queue<int> items({.capacity = 1});
  std::atomic<int> got{0};
  lock.lock();
  latch done(3);
  ASSERT_TRUE(pool.submit([&] {
    const std::lock_guard hold(lock);
    done.count_down();
  }));
  ASSERT_TRUE(pool.submit([&] {
    got = *items.pop();
    done.count_down();
  }));
  eventually([&] { return pool.stats().blocked == 2; }, "two workers to be blocked");
  ASSERT_TRUE(pool.submit([&] {
    EXPECT_TRUE(items.push(7));
    done.count_down();
  }));
  eventually([&] { return got == 7; });
  lock.unlock();
  done.wait();
  pool.drain();  // the lock is released after the count
  EXPECT_EQ(pool.stats().blocked, 0U);
}

// ---- a forked child

TEST(ForkJoinTaskScenario, AChildIsDoneOnceItIsJoinedAndNotBeforeItHasRun) {
  work_stealing_pool pool({.threads = 1});
  fork(pool, [] {
    auto child = fork([] { return fib(8); });
    EXPECT_FALSE(child.is_done()) << "the only worker is here";
    EXPECT_EQ(child.join(), 21);
  }).join();
  event release;
  auto outside = fork(pool, [&] {
    release.wait();
    return fib(8);
  });
  EXPECT_FALSE(outside.is_done());
  release.set();
  eventually([&] { return outside.is_done(); });
  EXPECT_EQ(outside.join(), 21);
}

TEST(ForkJoinTaskScenario, AnExceptionPropagatesThroughEveryJoin) {
  for (const std::size_t threads : {1U, 2U, 4U}) {
    work_stealing_pool pool({.threads = threads});
    EXPECT_THROW(fork(pool, [] { return failing_fib(8); }).join(), fib_failed);
    fork(pool, [] {
      auto child = fork([] { return failing_fib(8); });
      EXPECT_THROW(child.join(), fib_failed);
      EXPECT_EQ(fib(8), 21) << "the worker still works";
    }).join();
  }
}

TEST(ForkJoinTaskScenario, ForkingTwoAndJoiningBothInEitherOrder) {
  work_stealing_pool pool({.threads = 2});
  for (int round = 0; round < 100; ++round) {
    fork(pool, [&] {
      auto eight = fork([] { return fib(8); });
      auto nine = fork([] { return fib(9); });
      if (round % 2 == 0) {
        EXPECT_EQ(nine.join(), 34);
        EXPECT_EQ(eight.join(), 21);
      } else {
        EXPECT_EQ(eight.join(), 21);
        EXPECT_EQ(nine.join(), 34);
      }
    }).join();
  }
}

TEST(ForkJoinTaskScenario, AMuchDeeperTreeThanThereAreWorkers) {
  work_stealing_pool pool({.threads = 2});
  const std::function<int(int)> depth = [&](int left) {
    if (left == 0) return 0;
    auto child = fork([&depth, left] { return depth(left - 1); });
    return child.join() + 1;
  };
  EXPECT_EQ(fork(pool, [&] { return depth(2000); }).join(), 2000);
}

TEST(ForkJoinTaskScenario, AWideRowOfChildren) {
  work_stealing_pool pool({.threads = 3});
  fork(pool, [&] {
    const auto square = [](int i) { return [i] { return i * i; }; };
    using child = forked<decltype(square(0))>;
    std::vector<std::unique_ptr<child>> row;
    for (int i = 0; i < 5000; ++i) {  // more than a deque holds
      row.push_back(std::make_unique<child>(pool, square(i)));
    }
    for (int i = 0; i < 5000; ++i) EXPECT_EQ(row[static_cast<std::size_t>(i)]->join(), i * i);
  }).join();
}

TEST(ForkJoinTaskScenario, ForksFromManyThreadsThatAreNoWorkers) {
  work_stealing_pool pool({.threads = 2});
  std::vector<std::jthread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        auto first = fork(pool, [] { return fib(7); });
        auto second = fork(pool, [] { return fib(8); });
        EXPECT_EQ(first.join(), 13);
        EXPECT_EQ(second.join(), 21);
      }
    });
  }
}

TEST(ForkJoinTaskScenario, APoolInsideAFunctionOfAnother) {
  work_stealing_pool outer({.threads = 2, .name = "outer"});
  const int result = fork(outer, [] {
    work_stealing_pool inner({.threads = 2, .name = "inner"});
    return fork(inner, [] { return fib(10); }).join();
  }).join();
  EXPECT_EQ(result, 55);
}

// ---- invokeAll

TEST(InvokeAllScenario, OneTwoAndThreeFunctions) {
  work_stealing_pool pool({.threads = 2});
  int a = 0;
  int b = 0;
  int c = 0;
  parallel_invoke(pool, [&] { a = fib(8); });
  EXPECT_EQ(a, 21);
  parallel_invoke(pool, [&] { a = fib(7); }, [&] { b = fib(8); });
  EXPECT_EQ(a, 13);
  EXPECT_EQ(b, 21);
  parallel_invoke(pool, [&] { a = fib(6); }, [&] { b = fib(7); }, [&] { c = fib(8); });
  EXPECT_EQ(a, 8);
  EXPECT_EQ(b, 13);
  EXPECT_EQ(c, 21);
}

TEST(InvokeAllScenario, AFailureAtAnyPositionIsRethrownAfterAllHaveEnded) {
  work_stealing_pool pool({.threads = 2});
  for (int failing = 0; failing < 3; ++failing) {
    std::atomic<int> running{0};
    const auto part = [&](int place) {
      return [&running, failing, place] {
        ++running;
        const int result = place == failing ? 0 : fib(10);
        --running;
        if (result == 0) throw fib_failed();
      };
    };
    EXPECT_THROW(parallel_invoke(pool, part(0), part(1), part(2)), fib_failed);
    EXPECT_EQ(running, 0);
  }
}

}  // namespace
}  // namespace sluice::work_stealing_scenarios_test
