#include "sluice/sync/spin_lock.hpp"

#include <gtest/gtest.h>

#include "sluice/sync/testing/lock_suite.hpp"

namespace sluice::testing::spin_lock_test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(spin_lock, lock_suite, spin_lock);

TEST(spin_lock_test, AnyThreadMayUnlock) {
  spin_lock lock;
  lock.lock();
  std::jthread([&] { lock.unlock(); }).join();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(spin_lock_test, IsFourBytes) {
  EXPECT_EQ(sizeof(spin_lock), 4U);
}

TEST(spin_lock_test, APreemptedOwnerGetsTheCoreBack) {
  // More threads than cores, all spinning: the owner must still make progress.
  stress run;
  spin_lock lock;
  int sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          const std::lock_guard hold(lock);
          if (i % 50 == 0) std::this_thread::yield();  // give the core away inside the section
          ++sum;
        }
        run.did(500);
      });
    }
  }
  EXPECT_EQ(sum, 16 * 500);
}

TEST(spin_lock_DeathTest, UnlockingAFreeLockIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(spin_lock().unlock(), "sluice::spin_lock.*to be locked when it is unlocked");
}

}  // namespace
}  // namespace sluice::testing::spin_lock_test
