// The threads of a thread_pool: start and end, names, processors, and threads that cannot be
// started.

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/executor/testing/blocker.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::thread_pool_threads_test {
namespace {

using namespace std::chrono_literals;
using testing::blocker;
using testing::eventually;

// ---- start and end

TEST(thread_pool_threads, TheCoreIsThereFromTheBeginning) {
  const thread_pool pool({.core = 3, .max = 5});
  EXPECT_EQ(pool.threads(), 3U);
}

TEST(thread_pool_threads, ByDefaultThereAreAsManyAsUsableCores) {
  const thread_pool pool;
  EXPECT_EQ(pool.threads(), seam::usable_cpus().size());
  EXPECT_EQ(pool.stats().threads_limit, pool.threads());
}

TEST(thread_pool_threads, ASubmissionThatFindsNoIdleThreadStartsOne) {
  thread_pool pool({.core = 1, .max = 3});
  blocker held;
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(pool.submit(held.function()));
    held.until_inside(static_cast<int>(i));  // without waiting for the queue to fill up
    EXPECT_EQ(pool.threads(), i);
  }
  ASSERT_TRUE(pool.submit(held.function()));
  EXPECT_EQ(pool.threads(), 3U) << "no more than max";
  EXPECT_EQ(pool.queued(), 1U);
  held.release();
}

TEST(thread_pool_threads, ASubmissionThatFindsAnIdleThreadStartsNone) {
  thread_pool pool({.core = 1, .max = 8});
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> ran{false};
    ASSERT_TRUE(pool.submit([&] { ran = true; }));
    eventually([&] { return ran && pool.stats().active == 0; });
  }
  EXPECT_EQ(pool.stats().threads_largest, 1U);
}

TEST(thread_pool_threads, APostThatFindsNoIdleThreadStartsOneToo) {
  thread_pool pool({.core = 1, .max = 2});
  blocker held;
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  testing::posted item([&] { ran = true; });
  pool.post(item);
  eventually([&] { return ran.load(); });
  EXPECT_EQ(pool.threads(), 2U);
  held.release();
}

// For every interleaving of submissions and threads that begin a function: as many functions begin
// as threads are allowed, and none is left waiting.
TEST(thread_pool_threads, NoFunctionIsLeftWaitingWhileAThreadCouldBeStarted) {
  const auto rounds = testing::effort(testing::test_name(), "pools",
                                      {.ci = 300, .full = 3'000, .sanitized = 60});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    thread_pool pool({.core = 1, .max = 4});
    blocker held;
    std::vector<std::jthread> submitters;
    for (int i = 0; i < 4; ++i) {
      submitters.emplace_back([&] { ASSERT_TRUE(pool.submit(held.function())); });
    }
    held.until_inside(4);
    EXPECT_EQ(pool.threads(), 4U);
    held.release();
  }
}

TEST(thread_pool_threads, OnesBeyondTheCoreEndWhenIdleForTheKeepAlive) {
  manual_clock time;
  thread_pool pool({.core = 1, .max = 3, .keep_alive = 10s, .clock = &time});
  blocker held;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(3);
  held.release();
  eventually([&] { return time.pending() == 3; }, "all of them to be idle");
  time.advance(9s);
  EXPECT_EQ(pool.threads(), 3U);
  time.advance(1s);
  eventually([&] { return pool.threads() == 1; });
  eventually([&] { return time.pending() == 0; }, "the last one to wait without an end");
  EXPECT_EQ(pool.stats().threads_largest, 3U);
  EXPECT_EQ(pool.stats().completed, 3U) << "functions of ended threads still count";
}

TEST(thread_pool_threads, TheKeepAliveRestartsWithEveryFunction) {
  manual_clock time;
  thread_pool pool({.core = 1, .max = 2, .keep_alive = 10s, .clock = &time});
  for (int round = 0; round < 5; ++round) {
    blocker held;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool.submit(held.function()));
    held.until_inside(2);
    held.release();
    eventually([&] { return time.pending() == 2; });
    EXPECT_EQ(pool.threads(), 2U);
    time.advance(9s);
  }
  time.advance(1s);
  eventually([&] { return pool.threads() == 1; });
}

TEST(thread_pool_threads, AKeepAliveOfZeroEndsThemImmediately) {
  for (const auto none : {0ns, std::chrono::nanoseconds(-1s)}) {
    thread_pool pool({.core = 1, .max = 4, .keep_alive = none});
    blocker held;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.submit(held.function()));
    held.until_inside(4);
    held.release();
    eventually([&] { return pool.threads() == 1; });
  }
}

TEST(thread_pool_threads, ItGrowsAgainAfterItShrank) {
  thread_pool pool({.core = 1, .max = 3, .keep_alive = 0s});
  for (int round = 0; round < 50; ++round) {
    blocker held;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.submit(held.function()));
    held.until_inside(3);
    held.release();
    eventually([&] { return pool.threads() == 1; });
  }
  eventually([&] { return pool.stats().completed == 150; }, "every function to be counted");
  EXPECT_EQ(pool.stats().threads_largest, 3U);
}

// ---- names and processors

std::string os_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

std::set<std::string> names_of(thread_pool& pool, int threads) {
  std::mutex guard;
  std::set<std::string> names;
  std::atomic<int> there{0};
  for (int i = 0; i < threads; ++i) {
    EXPECT_TRUE(pool.submit([&] {
      {
        const std::lock_guard hold(guard);
        names.insert(os_name());
      }
      ++there;
      eventually([&] { return there == threads; });
    }));
  }
  pool.drain();
  return names;
}

TEST(thread_pool_threads, TheOperatingSystemKnowsThemByNameAndNumber) {
  thread_pool pool({.core = 3, .name = "mails"});
  EXPECT_EQ(names_of(pool, 3), (std::set<std::string>{"mails-1", "mails-2", "mails-3"}));
}

TEST(thread_pool_threads, ALongNameIsCutAndTheNumberIsNot) {
  thread_pool pool({.core = 12, .name = "a name of many words"});
  const auto names = names_of(pool, 12);
  EXPECT_EQ(names.size(), 12U) << "all are different";
  EXPECT_TRUE(names.contains("a name of man-1"));
  EXPECT_TRUE(names.contains("a name of ma-12"));
}

TEST(thread_pool_threads, OneEachBindsEveryThreadToOneProcessorInTurn) {
  const auto usable = seam::usable_cpus();
  thread_pool pool({.core = 2 * usable.size(), .affinity = cpu_affinity::one_each()});
  std::mutex guard;
  std::multiset<unsigned> bound;
  std::atomic<std::size_t> there{0};
  for (std::size_t i = 0; i < pool.threads(); ++i) {
    ASSERT_TRUE(pool.submit([&] {
      const auto cpus = seam::usable_cpus();
      {
        const std::lock_guard hold(guard);
        EXPECT_EQ(cpus.size(), 1U);
        bound.insert(cpus.front());
      }
      ++there;
      eventually([&] { return there == 2 * usable.size(); });
    }));
  }
  pool.drain();
  for (const unsigned cpu : usable) EXPECT_EQ(bound.count(cpu), 2U) << "processor " << cpu;
}

TEST(thread_pool_threads, WholeSetBindsEveryThreadToAllOfThem) {
  const auto last = seam::usable_cpus().back();
  thread_pool pool({.core = 2, .affinity = cpu_affinity::whole_set({last})});
  std::atomic<int> right{0};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pool.submit([&] {
      if (seam::usable_cpus() == std::vector<unsigned>{last}) ++right;
    }));
  }
  pool.drain();
  EXPECT_EQ(right, 10);
}

TEST(thread_pool_threads, AProcessorThatMayNotBeUsedIsAnErrorThatNamesIt) {
  for (const auto& asked : {cpu_affinity::one_each({0, 8000}), cpu_affinity::whole_set({8000})}) {
    try {
      const thread_pool pool({.core = 1, .affinity = asked});
      FAIL() << "it was made";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("may not use CPU 8000"), std::string::npos) << e.what();
    }
  }
}

// ---- threads that cannot be started

// Starts a number of threads, then fails until the test changes that.
struct failing_starter {
  std::atomic<int> left;

  auto function() {
    return [this](std::function<void()> life) {
      if (left.fetch_sub(1) <= 0) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }
      return seam::thread(std::move(life));
    };
  }
};

TEST(thread_pool_threads, TheConstructorRethrowsAFailedThreadStartAndLeavesNone) {
  for (const int can_start : {0, 2}) {
    failing_starter starter{can_start};
    try {
      const thread_pool pool({.core = 4, .make_thread = starter.function()});
      FAIL() << "it was made";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
    }
  }
}

TEST(thread_pool_threads, APoolThatCannotGrowContinuesAndRetriesAtTheNextNeed) {
  failing_starter starter{1};
  thread_pool pool({.core = 1, .max = 3, .make_thread = starter.function()});
  blocker held;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(1);
  ASSERT_TRUE(pool.submit(held.function())) << "it waits for the existing thread";
  EXPECT_EQ(pool.threads(), 1U);
  EXPECT_EQ(pool.stats().start_failures, 1U);
  starter.left = 10;
  ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(3);
  EXPECT_EQ(pool.threads(), 3U);
  EXPECT_EQ(pool.stats().start_failures, 1U);
  held.release();
}

// ---- sizing by measurement

// Reports given times of waiting and computing for every function.
class scripted_times {
 public:
  void say(std::chrono::nanoseconds wait, std::chrono::nanoseconds compute) {
    wait_ = wait.count();
    compute_ = compute.count();
  }
  auto function() {
    // Called before and after a function, on its thread: each call advances that thread's times.
    return [this] {
      static thread_local seam::thread_times times;
      times.wall += std::chrono::nanoseconds(wait_ + compute_);
      times.computing += std::chrono::nanoseconds(compute_);
      return times;
    };
  }

 private:
  std::atomic<std::int64_t> wait_{0};
  std::atomic<std::int64_t> compute_{0};
};

class sizing_pool : public ::testing::Test {
 protected:
  void run(int functions) {
    for (int i = 0; i < functions; ++i) {
      std::atomic<bool> ran{false};
      ASSERT_TRUE(pool.submit([&] { ran = true; }));
      eventually([&] { return ran && pool.stats().active == 0; });
    }
  }

  scripted_times times;
  thread_pool pool{{.core = 1,
                    .max = 8,
                    .keep_alive = 1h,
                    .sizing = sizing::adaptive{
                        .cores = 1, .window = 4, .measure = times.function()}}};
};

TEST_F(sizing_pool, WaitingFunctionsRaiseTheLimitAndComputingFunctionsLowerIt) {
  EXPECT_EQ(pool.stats().threads_limit, 1U) << "initially the number of cores";
  times.say(3ms, 1ms);
  run(4);
  EXPECT_EQ(pool.stats().threads_limit, 4U);
  times.say(100ms, 1ms);
  run(4);
  EXPECT_EQ(pool.stats().threads_limit, 8U) << "no more than max";
  times.say(0ms, 50ms);
  run(40);
  EXPECT_EQ(pool.stats().threads_limit, 1U) << "and no fewer than core";
}

TEST_F(sizing_pool, ItGrowsAndShrinksToTheLimit) {
  times.say(3ms, 1ms);
  run(4);
  blocker held;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool.submit(held.function()));
  held.until_inside(4);
  EXPECT_EQ(pool.threads(), 4U);
  EXPECT_EQ(pool.queued(), 2U);
  held.release();
  times.say(0ms, 50ms);
  eventually([&] {
    (void)pool.submit([] {});
    return pool.threads() == 1;
  });
}

TEST_F(sizing_pool, ARaisedLimitServesSubmissionsThatWaitAlready) {
  times.say(0ms, 1ms);
  run(1);
  blocker first;
  blocker rest;
  ASSERT_TRUE(pool.submit(first.function()));
  first.until_inside(1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.submit(rest.function()));
  EXPECT_EQ(pool.threads(), 1U);
  times.say(1s, 1ms);
  first.release();  // its end is measured: it waited
  rest.until_inside(4);
  EXPECT_GE(pool.threads(), 4U);
  rest.release();
}

// With the times of the operating system: the result must not depend on the load of the machine.
TEST(thread_pool_threads, ItDistinguishesWaitingFromComputing) {
  thread_pool pool({.core = 1,
                    .max = 16,  // 50 ms of waiting: even on a busy machine 15 times the computing
                    .keep_alive = 1h,
                    .sizing = sizing::adaptive{.cores = 1, .window = 8}});
  event never;
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(pool.submit([&] { (void)never.wait(50ms); }));
  }
  eventually([&] { return pool.stats().completed == 16; });
  EXPECT_EQ(pool.stats().threads_limit, 16U) << "they only waited";

  if (!seam::runnable_time_is_known()) GTEST_SKIP() << "the kernel has no schedstat";
  const auto compute = [] {
    const auto end = seam::this_thread_times().computing + 2ms;
    while (seam::this_thread_times().computing < end) {
    }
  };
  eventually(
      [&] {
        std::atomic<bool> ran{false};
        EXPECT_TRUE(pool.submit([&] {
          compute();
          ran = true;
        }));
        eventually([&] { return ran.load(); });
        return pool.stats().threads_limit <= 2;
      },
      "functions that only compute to lower the limit");
}

}  // namespace
}  // namespace sluice::thread_pool_threads_test
