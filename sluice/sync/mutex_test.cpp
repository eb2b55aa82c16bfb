#include "sluice/sync/mutex.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/lock_suite.hpp"

namespace sluice::testing::mutex_test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(mutex, lock_suite, mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(mutex, lock_suite_DeathTest, mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(mutex, waiting_suite, lock_gate<mutex>);

TEST(mutex_test, KnowsWhetherTheCallingThreadHoldsIt) {
  mutex m;
  EXPECT_FALSE(m.held_by_me());
  m.lock();
  EXPECT_TRUE(m.held_by_me());
  std::jthread([&] { EXPECT_FALSE(m.held_by_me()); }).join();
  m.unlock();
  EXPECT_FALSE(m.held_by_me());
}

TEST(mutex_test, AThreadThatHasWaitedLongIsHandedTheLock) {
  // One thread takes and releases it without a pause. Without a hand-over the other, which has to
  // wake up first, might never find it free.
  mutex m;
  std::atomic<bool> got{false};
  std::jthread greedy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::lock_guard hold(m);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const std::lock_guard hold(m);
    got = true;
  }
  EXPECT_TRUE(got);
}

TEST(mutex_test, ACoroutinesHoldMayBeReleasedOnAnyThread) {
  mutex m;
  std::unique_lock<mutex> held;
  [](mutex& lock, std::unique_lock<mutex>& out) -> detached { out = *co_await lock.async_lock(); }(
                                                    m, held);
  ASSERT_TRUE(held.owns_lock());
  EXPECT_FALSE(m.held_by_me());
  std::jthread([&] { held.unlock(); }).join();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(mutex_test, AWaitingCoroutineIsHandedTheLockBeforeTheOwnerCanTakeItBack) {
  mutex m;
  bool ran = false;
  m.lock();
  [](mutex& lock, bool& out) -> detached {
    auto held = co_await lock.async_lock();
    out = true;
  }(m, ran);
  EXPECT_FALSE(ran);
  m.unlock();
  EXPECT_TRUE(ran);
}

TEST(mutex_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const m = new mutex;
        m->lock();
        std::jthread waits([m] { m->lock(); });
        eventually([&] { return m->waiting() == 1; });
        delete m;
      },
      "sluice::mutex.*neither owner nor waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::mutex_test
