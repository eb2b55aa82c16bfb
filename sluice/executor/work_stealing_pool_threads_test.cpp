// The threads of a work_stealing_pool: names, start and end of spares, and threads that cannot be
// started.

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::work_stealing_pool_threads_test {
namespace {

using namespace std::chrono_literals;
using testing::eventually;

// ---- names

std::string name_here() {
  std::array<char, seam::thread_name_max + 1> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

// Returns the names of the threads of `functions` functions that run concurrently.
std::set<std::string> names_on(work_stealing_pool& pool, int functions) {
  std::mutex guard;
  std::set<std::string> names;
  std::atomic<int> there{0};
  for (int i = 0; i < functions; ++i) {
    EXPECT_TRUE(pool.submit([&] {
      {
        const std::lock_guard hold(guard);
        names.insert(name_here());
      }
      ++there;
      eventually([&] { return there == functions; }, "all of them to run side by side");
    }));
  }
  eventually([&] { return there == functions; });
  pool.drain();
  return names;
}

TEST(WorkStealingPoolThreadsTest, TheOperatingSystemKnowsThemByNameAndNumber) {
  work_stealing_pool pool({.threads = 3, .name = "rows"});
  EXPECT_EQ(names_on(pool, 3), (std::set<std::string>{"rows-1", "rows-2", "rows-3"}));
}

TEST(WorkStealingPoolThreadsTest, ALongNameIsCutAndTheNumberIsNot) {
  work_stealing_pool pool({.threads = 12, .name = "a name of many words"});
  const auto names = names_on(pool, 12);
  EXPECT_EQ(names.size(), 12U) << "all are different";
  EXPECT_TRUE(names.contains("a name of man-1"));
  EXPECT_TRUE(names.contains("a name of ma-12"));
}

TEST(WorkStealingPoolThreadsTest, ASpareIsNamedAfterItsNumberToo) {
  work_stealing_pool pool({.threads = 1, .name = "rows"});
  event release;
  ASSERT_TRUE(pool.submit([&] { release.wait(); }));
  eventually([&] { return pool.stats().blocked == 1; }, "the worker to sleep");
  std::string name;
  ASSERT_TRUE(pool.submit([&] {
    name = name_here();
    release.set();
  }));
  pool.drain();
  EXPECT_EQ(name, "rows-2");
}

// ---- start and end

// A spare that gave up its slot may not have ended yet when another spare is needed.
TEST(WorkStealingPoolThreadsTest, ASpareMayBeCalledForWhileTheLastOneEnds) {
  sluice::testing::stress stress_run;
  auto dice = stress_run.generator(0);
  const auto rounds = sluice::testing::effort(sluice::testing::test_name(), "spares",
                                              {.ci = 5'000, .full = 20'000, .sanitized = 1'000});
  event release;  // before the pool, whose worker waits for it to the end
  work_stealing_pool pool({.threads = 1, .spares_max = 1, .keep_alive = 0ns});
  ASSERT_TRUE(pool.submit([&] { release.wait(); }));
  eventually([&] { return pool.stats().blocked == 1; }, "the worker to sleep");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::atomic<bool> ran{false};
    ASSERT_TRUE(pool.submit([&] { ran = true; }));
    eventually([&] { return ran.load(); }, "a spare to run it");
    for (auto pauses = dice.below(3000); pauses > 0; --pauses) seam::pause();
  }
  EXPECT_GT(pool.stats().spares_started, 1U);
  EXPECT_LE(pool.stats().threads, 2U);
  release.set();
  stress_run.did(rounds);
}

// ---- threads that cannot be started

// Starts a number of threads. A further start blocks until the test releases it, and then fails.
class failing_starter {
 public:
  explicit failing_starter(int starts) : left_(starts) {}

  auto function() {
    return [this](std::function<void()> life) {
      if (left_.fetch_sub(1) > 0) return seam::thread(std::move(life));
      asked_.set();
      failing_.wait();
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    };
  }
  void until_asked() { asked_.wait(); }
  void fail() { failing_.set(); }
  void start_again() { left_ = 1000; }

 private:
  std::atomic<int> left_;
  event asked_;
  event failing_;
};

TEST(WorkStealingPoolThreadsTest, TheConstructorRethrowsAFailedThreadStartAndLeavesNone) {
  for (const int can_start : {0, 2}) {
    failing_starter starter(can_start);
    starter.fail();
    try {
      const work_stealing_pool pool({.threads = 4, .make_thread = starter.function()});
      FAIL() << "it was made";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
    }
  }
}

// Of two workers, one sleeps in a wait and the other is busy; a third thread submits and is about
// to start a spare.
class without_a_spare : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pool.submit([&] { blocked_.wait(); }));
    ASSERT_TRUE(pool.submit([&] {
      eventually([&] { return pool.stats().blocked == 1; }, "the other worker to sleep");
      busy_.set();
      eventually([&] { return idle_.is_set(); }, "the test to release it");
    }));
    busy_.wait();
    submitter_ = std::jthread([&] { EXPECT_TRUE(pool.submit([&] { ++ran; })); });
    starter.until_asked();
  }
  // Only the thread that is being started counts as running.
  void until_both_rest() {
    blocked_.set();
    idle_.set();
    eventually([&] { return ran == 1 && pool.stats().running == 1; }, "both workers to rest");
  }
  void fail_to_start() {
    starter.fail();
    submitter_.join();
    EXPECT_EQ(pool.stats().start_failures, 1U);
  }
  void TearDown() override {
    blocked_.set();
    idle_.set();
  }

  std::atomic<int> ran{0};
  failing_starter starter{2};
  event blocked_;
  event busy_;
  event idle_;
  work_stealing_pool pool{{.threads = 2, .make_thread = starter.function()}};
  std::jthread submitter_;
};

TEST_F(without_a_spare, ThePoolContinuesAndRetriesAtTheNextNeed) {
  fail_to_start();
  EXPECT_EQ(ran, 0) << "it waits for the existing threads";
  starter.start_again();
  ASSERT_TRUE(pool.submit([&] { ++ran; }));
  eventually([&] { return ran == 2; }, "the spare to run both");
  EXPECT_EQ(pool.stats().spares_started, 1U);
  EXPECT_EQ(pool.stats().start_failures, 1U);
}

TEST_F(without_a_spare, WorkAddedWhileTheSpareWasExpectedRuns) {
  until_both_rest();
  // For a few milliseconds one of them is the watcher and would find it.
  event never;
  EXPECT_FALSE(never.wait(30ms));
  ASSERT_TRUE(pool.submit([&] { ++ran; }));  // wakes no worker: one is about to search
  fail_to_start();
  eventually([&] { return ran == 2; }, "a resting worker to run it");
}

TEST_F(without_a_spare, APoolThatWasClosedMeanwhileEnds) {
  pool.close();
  until_both_rest();
  EXPECT_EQ(pool.join(deadline::after(0s)), status::timed_out);
  fail_to_start();
  EXPECT_EQ(pool.join(deadline::after(1min)), status::ok);
}

}  // namespace
}  // namespace sluice::work_stealing_pool_threads_test
