#include "sluice/sync/semaphore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::semaphore_test {
namespace {

using namespace std::chrono_literals;

// Shut: no permit. A released waiter gives its permits back for the next.
class semaphore_gate {
 public:
  status wait(const wait_limits& limits) {
    const auto ended = semaphore_.acquire(wanted, limits);
    if (ended) semaphore_.release(wanted);
    return ended;
  }
  template <class Where>
  static detached await(semaphore_gate& gate, Where&, wait_limits limits, ending& ended) {
    const auto result = co_await gate.semaphore_.async_acquire(wanted, std::move(limits));
    if (result) gate.semaphore_.release(wanted);
    ended.set(result);
  }
  void open() { semaphore_.release(wanted); }
  std::size_t waiting() const { return semaphore_.waiting(); }

 private:
  static constexpr semaphore::count_type wanted = 2;
  semaphore semaphore_{0};
};

INSTANTIATE_TYPED_TEST_SUITE_P(semaphore, waiting_suite, semaphore_gate);

// Threads that queue in a known order, and the order in which they were served.
class semaphore_test : public ::testing::Test {
 protected:
  void acquires(int number, semaphore::count_type wanted, wait_limits limits = {}) {
    const auto before = permits.waiting();
    threads.emplace_back([this, number, wanted, limits] {
      if (!permits.acquire(wanted, limits)) return;
      const std::lock_guard hold(mutex);
      order.push_back(number);
    });
    in_line(before + 1);
  }
  void in_line(std::size_t count) {
    eventually([&] { return permits.waiting() == count; });
  }
  std::vector<int> served(std::size_t count) {
    eventually([&] {
      const std::lock_guard hold(mutex);
      return order.size() == count;
    });
    const std::lock_guard hold(mutex);
    return order;
  }

  semaphore permits{0};
  std::mutex mutex;
  std::vector<int> order;  // protected by mutex
  std::vector<std::jthread> threads;
};

TEST_F(semaphore_test, CountsItsPermits) {
  permits.release(3);
  EXPECT_TRUE(permits.try_acquire(2));
  EXPECT_FALSE(permits.try_acquire(2));
  EXPECT_EQ(permits.available(), 1);
  permits.acquire();
  EXPECT_FALSE(permits.try_acquire());
  EXPECT_EQ(permits.try_acquire_for(1ms), status::timed_out);
  EXPECT_EQ(permits.try_acquire_until(std::chrono::system_clock::now()), status::timed_out);
}

TEST_F(semaphore_test, ServesInOrderOfArrival) {
  for (int i = 1; i <= 8; ++i) acquires(i, 1);
  for (std::size_t i = 1; i <= 8; ++i) {
    permits.release();
    EXPECT_EQ(served(i).back(), static_cast<int>(i));
  }
}

TEST_F(semaphore_test, ALargeRequestIsNotOvertakenBySmallOnes) {
  acquires(1, 3);
  acquires(2, 1);
  permits.release(2);
  EXPECT_FALSE(permits.try_acquire()) << "a try does not overtake either";
  EXPECT_EQ(permits.waiting(), 2U);
  permits.release(1);
  EXPECT_EQ(served(1), (std::vector{1}));
  permits.release(1);
  EXPECT_EQ(served(2), (std::vector{1, 2}));
}

TEST_F(semaphore_test, ALargeRequestThatGivesUpUnblocksLaterOnes) {
  std::stop_source source;
  acquires(1, 3, {{}, source.get_token()});
  acquires(2, 1);
  acquires(3, 1);
  permits.release(2);
  EXPECT_EQ(permits.waiting(), 3U);
  source.request_stop();
  threads.clear();
  auto both = served(2);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, (std::vector{2, 3}));
  EXPECT_EQ(permits.available(), 0);
}

TEST_F(semaphore_test, OneReleaseServesSeveral) {
  for (int i = 1; i <= 4; ++i) acquires(i, 1);
  permits.release(4);
  threads.clear();
  EXPECT_EQ(order.size(), 4U);
  EXPECT_EQ(permits.available(), 0);
}

TEST(semaphore_stress_test, NoPermitIsLostOrMade) {
  stress run;
  constexpr int all = 5;
  semaphore permits(all);
  std::atomic<int> out{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 1'500; ++i) {
          const int wanted = 1 + static_cast<int>(choose.below(3));
          const auto wait = std::chrono::microseconds(choose.below(50));
          const bool got = choose.below(2) == 0
                               ? permits.try_acquire(wanted)
                               : static_cast<bool>(permits.try_acquire_for(wait, wanted));
          if (!got) continue;
          EXPECT_LE(out.fetch_add(wanted) + wanted, all);
          if (choose.below(4) == 0) std::this_thread::yield();
          out.fetch_sub(wanted);
          permits.release(wanted);
        }
        run.did(1'500);
      });
    }
  }
  EXPECT_EQ(permits.available(), all);
  EXPECT_EQ(permits.waiting(), 0U);
}

TEST(semaphore_chain_test, AHundredThousandHandOversNeedNoStack) {
  // Each coroutine is resumed by the release of its predecessor.
  semaphore permits(0);
  int passed = 0;
  constexpr int coroutines = 100'000;
  for (int i = 0; i < coroutines; ++i) {
    [](semaphore& s, int& count) -> detached {
      (void)co_await s.async_acquire();
      ++count;
      s.release();
    }(permits, passed);
  }
  permits.release();
  EXPECT_EQ(passed, coroutines);
  EXPECT_EQ(permits.available(), 1);
}

TEST(semaphore_DeathTest, InvalidCountsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(semaphore(-1), "sluice::semaphore.*not negative");
  EXPECT_DEATH(semaphore(1).acquire(0), "sluice::semaphore.*at least one permit");
  EXPECT_DEATH(semaphore(1).release(-1), "sluice::semaphore.*at least one permit");
  EXPECT_DEATH(semaphore(semaphore::max()).release(), "sluice::semaphore.*past its largest count");
}

TEST(semaphore_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const s = new semaphore(0);
        std::jthread waits([s] { s->acquire(); });
        eventually([&] { return s->waiting() == 1; });
        delete s;
      },
      "sluice::semaphore.*no waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::semaphore_test
