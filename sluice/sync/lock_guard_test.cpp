#include "sluice/sync/lock_guard.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <type_traits>

#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::testing::lock_guard_test {
namespace {

template <class Lock>
class lock_guard_test : public ::testing::Test {};
using locks = ::testing::Types<mutex, fair_mutex, shared_mutex, spin_lock, std::mutex>;
TYPED_TEST_SUITE(lock_guard_test, locks);

TYPED_TEST(lock_guard_test, HoldsTheLockForItsScope) {
  TypeParam lock;
  {
    const sluice::lock_guard hold(lock);
    static_assert(std::is_same_v<typename decltype(hold)::mutex_type, TypeParam>);
  }
  EXPECT_TRUE(lock.try_lock());
  {
    const sluice::lock_guard adopted(lock, std::adopt_lock);
  }
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(lock_guard, IsHeldByTheThread) {
  mutex lock;
  const sluice::lock_guard hold(lock);
  EXPECT_TRUE(lock.held_by_me());
  EXPECT_FALSE(lock.try_lock());
}

// Compilers differ in the line of a statement in the argument of a macro.
const std::string line_of_again = std::to_string(__LINE__ + 1);
void lock_it(mutex& ledger) { const sluice::lock_guard again(ledger); }

TEST(lock_guard_DeathTest, ARelockNamesTheLineOfTheGuard) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  mutex ledger(named("ledger"));
  const sluice::lock_guard hold(ledger);
  EXPECT_DEATH(lock_it(ledger), "sluice::mutex \"ledger\": expected not to be locked again.*\n"
                                "  called at .*lock_guard_test.cpp:" + line_of_again);
}

void unlock_by_hand() {
  mutex ledger(named("ledger"));
  const sluice::lock_guard hold(ledger);
  ledger.unlock();
}
const std::string line_of_hold = std::to_string(__LINE__ - 3);

TEST(lock_guard_DeathTest, ALockThatWasReleasedByHandNamesTheLineOfTheGuard) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(unlock_by_hand(),
               "sluice::mutex \"ledger\": expected to be locked when it is unlocked\n"
               "  called at .*lock_guard_test.cpp:" + line_of_hold);
}

}  // namespace
}  // namespace sluice::testing::lock_guard_test
