// The message of a broken contract of a sync type names the object and the place of the call.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::testing::contract_test {
namespace {

using namespace std::chrono_literals;

// The whole message of an object named "it", for a call in this file.
std::string message(const std::string& type, const std::string& expected, int line) {
  return "sluice: contract broken on sluice::" + type + " \"it\": expected " + expected +
         ".*\n  called at .*contract_test.cpp:" + std::to_string(line) + " .*\n  checked in ";
}
// The message for a call of which only the function is known.
std::string message(const std::string& type, const std::string& expected) {
  return "sluice: contract broken on sluice::" + type + " \"it\": expected " + expected +
         ".*\n  called at .*TestBody.*\n  checked in ";
}

class contract_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

template <class Lock>
class lock_contract_DeathTest : public contract_DeathTest {
 protected:
  static std::string type() { return std::string(Lock::type_name).substr(8); }
};
using locks = ::testing::Types<mutex, fair_mutex, shared_mutex>;
TYPED_TEST_SUITE(lock_contract_DeathTest, locks);

TYPED_TEST(lock_contract_DeathTest, ARelockReportsTheNameAndThePlace) {
  TypeParam lock(named("it"));
  lock.lock();
  const auto again = [&](int line) {
    return message(this->type(), "not to be locked again", line);
  };
  EXPECT_DEATH(lock.lock(), again(__LINE__));
  EXPECT_DEATH((void)lock.try_lock_for(1h), again(__LINE__));
  EXPECT_DEATH((void)lock.lock(1h), again(__LINE__));
  lock.unlock();
}

TYPED_TEST(lock_contract_DeathTest, AnUnlockOfAFreeLockReportsTheNameAndThePlace) {
  TypeParam lock(named("it"));
  const auto free = [&](int line) { return message(this->type(), "to be locked", line); };
  EXPECT_DEATH(lock.unlock(), free(__LINE__));
  lock.lock();
  const auto other = [&](int line) { return message(this->type(), "to be unlocked by", line); };
  EXPECT_DEATH(std::jthread([&] { lock.unlock(); }).join(), other(__LINE__));
  lock.unlock();
}

TYPED_TEST(lock_contract_DeathTest, ALockOfTheStandardLibraryNamesTheFunctionAroundIt) {
  TypeParam lock(named("it"));
  const std::lock_guard hold(lock);
  const std::string expected = message(this->type(), "not to be locked again");
  EXPECT_DEATH(const std::lock_guard again(lock), expected);
  EXPECT_DEATH(const std::unique_lock again(lock), expected);
  EXPECT_DEATH(const std::scoped_lock again(lock), expected);
}

TYPED_TEST(lock_contract_DeathTest, DestructionWhileHeldReportsTheName) {
  EXPECT_DEATH(
      {
        TypeParam lock(named("it"));
        lock.lock();
      },
      message(this->type(), "neither owner"));
}

TEST_F(contract_DeathTest, OfASharedLock) {
  shared_mutex table(named("it"));
  EXPECT_DEATH(table.unlock_shared(), message("shared_mutex", "a reader inside", __LINE__));
  const std::shared_lock reading(table);
  EXPECT_DEATH(table.lock(), message("shared_mutex", "not to be waited for by", __LINE__));
  std::jthread([&] {
    table.lock_shared();
    table.unlock_shared();
  }).join();
}

TEST_F(contract_DeathTest, OfASemaphore) {
  semaphore slots(semaphore::max(), named("it"));
  EXPECT_DEATH(slots.acquire(0), message("semaphore", "to acquire at least", __LINE__));
  EXPECT_DEATH((void)slots.try_acquire(0), message("semaphore", "to acquire at least", __LINE__));
  EXPECT_DEATH((void)slots.async_acquire(0), message("semaphore", "to acquire at least", __LINE__));
  EXPECT_DEATH(slots.release(0), message("semaphore", "to release at least", __LINE__));
  EXPECT_DEATH(slots.release(), message("semaphore", "not to be released past", __LINE__));
}

TEST_F(contract_DeathTest, OfALatchAndABarrier) {
  latch done(1, named("it"));
  EXPECT_DEATH(done.count_down(2), message("latch", "not to be counted down below", __LINE__));
  EXPECT_DEATH(done.arrive_and_wait(2), message("latch", "not to be counted down", __LINE__));
  barrier meeting(2, named("it"));
  EXPECT_DEATH((void)meeting.arrive(3), message("barrier", "at most the expected", __LINE__));
  EXPECT_DEATH((void)meeting.arrive(0), message("barrier", "at least one arrival", __LINE__));
}

TEST_F(contract_DeathTest, OfACondition) {
  condition changed(named("it"));
  mutex lock;
  std::unique_lock hold(lock, std::defer_lock);
  const auto never = [] { return false; };
  EXPECT_DEATH(changed.wait(hold, never), message("condition", "the lock to be held", __LINE__));
  const std::string expected = message("condition", "the lock to be held", __LINE__ + 1);
  EXPECT_DEATH((void)changed.wait_for(hold, 1h, never), expected);
}

TEST_F(contract_DeathTest, OfALazyValue) {
  lazy<int>* self = nullptr;
  lazy<int> value([&]() -> int { return self->get(); }, named("it"));
  self = &value;
  EXPECT_DEATH(value.get(), message("lazy", "its initialiser not to call get", __LINE__ - 2));
}

TEST_F(contract_DeathTest, OfAGuardedValueReportsTheNameOfItsLock) {
  guarded<int> balance(named("it"), 1);
  const auto held = balance.lock();
  EXPECT_DEATH((void)balance.lock(), message("mutex", "not to be locked again", __LINE__));
}

TEST_F(contract_DeathTest, OfAnEventReportsTheNameWhenItIsDestroyedTooEarly) {
  EXPECT_DEATH(
      {
        event ready(named("it"));
        std::jthread waits([&] { ready.wait(); });
        while (ready.waiting() == 0) std::this_thread::yield();
        std::destroy_at(&ready);
      },
      message("event", "no waiters"));
}

TEST_F(contract_DeathTest, OfASpinLockReportsThePlace) {
  const std::string line = std::to_string(__LINE__ + 1);
  EXPECT_DEATH(spin_lock().unlock(), "expected to be locked.*\n.*contract_test.cpp:" + line);
}

}  // namespace
}  // namespace sluice::testing::contract_test
