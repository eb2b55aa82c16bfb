#include "sluice/sync/fair_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/lock_suite.hpp"

namespace sluice::testing::fair_mutex_test {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TYPED_TEST_SUITE_P(fair_mutex, lock_suite, fair_mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(fair_mutex, lock_suite_DeathTest, fair_mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(fair_mutex, waiting_suite, lock_gate<fair_mutex>);

// A held lock, and waiters in a known order.
class fair_mutex_test : public ::testing::Test {
 protected:
  fair_mutex_test() { lock.lock(); }

  void in_line(std::size_t count) {
    eventually([&] { return lock.waiting() == count; });
  }
  void thread_joins(int number, wait_limits limits = {}) {
    const auto before = lock.waiting();
    threads.emplace_back([this, number, limits] {
      if (!lock.lock(limits)) return;
      order.push_back(number);
      lock.unlock();
    });
    in_line(before + 1);
  }
  static detached coroutine_joins(fair_mutex_test& test, int number) {
    auto held = co_await test.lock.async_lock();
    test.order.push_back(number);
  }
  void all_leave() { threads.clear(); }

  fair_mutex lock;
  std::vector<int> order;  // protected by lock
  std::vector<std::jthread> threads;
};

TEST_F(fair_mutex_test, ServesInOrderOfArrival) {
  for (int i = 1; i <= 10; ++i) thread_joins(i);
  lock.unlock();
  all_leave();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(fair_mutex_test, ServesThreadsAndCoroutinesInOneOrder) {
  thread_joins(1);
  coroutine_joins(*this, 2);
  thread_joins(3);
  coroutine_joins(*this, 4);
  in_line(4);
  lock.unlock();
  all_leave();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST_F(fair_mutex_test, NoCallerOvertakesTheWaiters) {
  thread_joins(1);
  lock.unlock();
  // The lock belongs to the first waiter from the unlock on, even before that thread runs.
  while (!lock.try_lock()) {
  }
  EXPECT_EQ(order, (std::vector{1}));
  lock.unlock();
}

TEST_F(fair_mutex_test, AWaiterThatGivesUpLeavesTheListToTheOthers) {
  std::stop_source source;
  thread_joins(1, {{}, source.get_token()});
  thread_joins(2);
  thread_joins(3);
  source.request_stop();
  in_line(2);
  lock.unlock();
  all_leave();
  EXPECT_EQ(order, (std::vector{2, 3}));
}

TEST_F(fair_mutex_test, NoThreadStarvesBesideAGreedyThread) {
  std::jthread greedy([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::lock_guard hold(lock);
    }
  });
  in_line(1);
  // It locks again at once, but every time the waiter is served first.
  for (int i = 0; i < 200; ++i) {
    lock.unlock();
    lock.lock();
  }
  lock.unlock();
}

TEST_F(fair_mutex_test, KnowsWhetherTheCallingThreadHoldsIt) {
  EXPECT_TRUE(lock.held_by_me());
  std::jthread([&] { EXPECT_FALSE(lock.held_by_me()); }).join();
  lock.unlock();
  EXPECT_FALSE(lock.held_by_me());
}

TEST(fair_mutex_chain_test, AHundredThousandHandOversNeedNoStack) {
  fair_mutex lock;
  int passed = 0;
  constexpr int coroutines = 100'000;
  lock.lock();
  for (int i = 0; i < coroutines; ++i) {
    [](fair_mutex& m, int& count) -> detached {
      auto held = co_await m.async_lock();
      ++count;
    }(lock, passed);
  }
  lock.unlock();
  EXPECT_EQ(passed, coroutines);
}

TEST(fair_mutex_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const m = new fair_mutex;
        m->lock();
        std::jthread waits([m] { m->lock(); });
        eventually([&] { return m->waiting() == 1; });
        delete m;
      },
      "sluice::fair_mutex.*neither owner nor waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::fair_mutex_test
