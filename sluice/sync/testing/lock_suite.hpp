#pragma once

// Tests of the guarantees of every exclusive lock. A lock that can also wait in a
// coroutine gets the rest from waiting_suite, through `lock_gate`.
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(mutex, lock_suite, mutex);
//   INSTANTIATE_TYPED_TEST_SUITE_P(mutex, waiting_suite, lock_gate<mutex>);

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing {

// A lock as a gate: shut while it is held. The holder is a coroutine, so that any thread may open
// the gate; a released waiter unlocks for the next.
template <class Lock>
class lock_gate {
 public:
  lock_gate() { take(*this); }
  ~lock_gate() { open(); }

  status wait(const wait_limits& limits) {
    const auto ended = lock_.lock(limits);
    if (ended) lock_.unlock();
    return ended;
  }
  template <class Where>
  static detached await(lock_gate& gate, Where&, wait_limits limits, ending& ended) {
    status result = status::ok;
    {
      auto held = co_await gate.lock_.async_lock(std::move(limits));
      result = held.status();
    }
    ended.set(result);
  }
  void open() {
    if (held_.owns_lock()) held_.unlock();
  }
  std::size_t waiting() const { return lock_.waiting(); }

 private:
  static detached take(lock_gate& gate) { gate.held_ = *co_await gate.lock_.async_lock(); }

  Lock lock_;
  std::unique_lock<Lock> held_;
};

template <class Lock>
class lock_suite : public ::testing::Test {
 protected:
  Lock lock;
};

TYPED_TEST_SUITE_P(lock_suite);

TYPED_TEST_P(lock_suite, HasOneHolderAtATime) {
  stress run;
  constexpr int threads = 4;
  constexpr int each = 5'000;
  long long total = 0;  // no atomic: the lock must be enough
  std::atomic<int> inside{0};
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        auto choose = run.generator(static_cast<std::uint64_t>(i));
        for (int n = 0; n < each; ++n) {
          if (choose.below(4) == 0) {
            while (!this->lock.try_lock()) std::this_thread::yield();
          } else {
            this->lock.lock();
          }
          EXPECT_EQ(inside.fetch_add(1), 0);
          ++total;
          inside.fetch_sub(1);
          this->lock.unlock();
        }
        run.did(each);
      });
    }
  }
  EXPECT_EQ(total, threads * each);
}

TYPED_TEST_P(lock_suite, TryLockFailsWhileAnotherHoldsIt) {
  this->lock.lock();
  std::jthread([&] { EXPECT_FALSE(this->lock.try_lock()); }).join();
  this->lock.unlock();
  std::jthread([&] {
    EXPECT_TRUE(this->lock.try_lock());
    this->lock.unlock();
  }).join();
}

TYPED_TEST_P(lock_suite, ATimedLockGivesUpWithoutTheLock) {
  using namespace std::chrono_literals;
  this->lock.lock();
  std::jthread([&] {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(this->lock.try_lock_for(2ms));
    EXPECT_GE(std::chrono::steady_clock::now() - start, 2ms);
    EXPECT_FALSE(this->lock.try_lock_until(std::chrono::system_clock::now() + 2ms));
    EXPECT_FALSE(this->lock.try_lock_for(-1s));
    EXPECT_FALSE(this->lock.try_lock_for(std::chrono::nanoseconds::min()));
  }).join();
  this->lock.unlock();
  EXPECT_TRUE(this->lock.try_lock_for(-1s)) << "a free lock is taken even when time is up";
  this->lock.unlock();
  EXPECT_TRUE(this->lock.try_lock_for(std::chrono::hours::max()));
  this->lock.unlock();
}

TYPED_TEST_P(lock_suite, AStopEndsTheWaitWithoutTheLock) {
  this->lock.lock();
  std::stop_source source;
  std::jthread waits([&] { EXPECT_EQ(this->lock.lock(source.get_token()), status::stopped); });
  source.request_stop();
  waits.join();
  EXPECT_EQ(this->lock.lock(source.get_token()), status::stopped);
  this->lock.unlock();
  EXPECT_EQ(this->lock.lock(source.get_token()), status::stopped) << "stop wins over readiness";
  EXPECT_EQ(this->lock.lock(std::stop_token{}), status::ok);
  this->lock.unlock();
}

TYPED_TEST_P(lock_suite, WorksWithTheStandardGuards) {
  using namespace std::chrono_literals;
  { const std::lock_guard hold(this->lock); }
  {
    TypeParam other;
    const std::scoped_lock hold(this->lock, other);
  }
  {
    std::unique_lock hold(this->lock, 1ms);
    EXPECT_TRUE(hold.owns_lock());
  }
  std::unique_lock hold(this->lock, std::try_to_lock);
  EXPECT_TRUE(hold.owns_lock());
}

TYPED_TEST_P(lock_suite, LimitsThatRaceWithUnlocksLoseNoHold) {
  stress run;
  constexpr int threads = 4;
  constexpr int each = 1'000;
  long long total = 0;
  std::atomic<long long> taken{0};
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        auto choose = run.generator(static_cast<std::uint64_t>(i));
        for (int n = 0; n < each; ++n) {
          std::stop_source source;
          bool got = false;
          if (choose.below(2) == 0) {
            got = this->lock.try_lock_for(std::chrono::microseconds(choose.below(60)));
          } else {
            std::jthread stopper;
            if (choose.below(8) == 0) stopper = std::jthread([&] { source.request_stop(); });
            got = static_cast<bool>(this->lock.lock(source.get_token()));
          }
          if (!got) continue;
          ++total;
          ++taken;
          this->lock.unlock();
        }
        run.did(each);
      });
    }
  }
  EXPECT_EQ(total, taken.load());
  EXPECT_TRUE(this->lock.try_lock()) << "it is free once all have left";
  this->lock.unlock();
}

REGISTER_TYPED_TEST_SUITE_P(lock_suite, HasOneHolderAtATime, TryLockFailsWhileAnotherHoldsIt,
                            ATimedLockGivesUpWithoutTheLock, AStopEndsTheWaitWithoutTheLock,
                            WorksWithTheStandardGuards, LimitsThatRaceWithUnlocksLoseNoHold);

// Misuse of a lock that records its owner. Each is a broken contract that names the lock.
template <class Lock>
class lock_suite_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TYPED_TEST_SUITE_P(lock_suite_DeathTest);

TYPED_TEST_P(lock_suite_DeathTest, LockingAgainIsABrokenContract) {
  const auto again = [](auto&& lock_call) {
    TypeParam lock;
    lock.lock();
    lock_call(lock);
  };
  EXPECT_DEATH(again([](auto& l) { l.lock(); }), "mutex.*not to be locked again by the thread");
  EXPECT_DEATH(again([](auto& l) { (void)l.lock(std::stop_token{}); }), "not to be locked again");
  EXPECT_DEATH(again([](auto& l) { (void)l.try_lock_for(std::chrono::hours(1)); }),
               "not to be locked again");
}

TYPED_TEST_P(lock_suite_DeathTest, UnlockingAnothersLockIsABrokenContract) {
  EXPECT_DEATH(
      {
        TypeParam lock;
        lock.lock();
        std::jthread([&] { lock.unlock(); }).join();
      },
      "mutex.*to be unlocked by the thread that locked it");
}

TYPED_TEST_P(lock_suite_DeathTest, UnlockingAFreeLockIsABrokenContract) {
  EXPECT_DEATH(TypeParam().unlock(), "mutex.*to be locked.* when it is unlocked");
}

TYPED_TEST_P(lock_suite_DeathTest, DestroyingAHeldLockIsABrokenContract) {
  EXPECT_DEATH(
      {
        TypeParam lock;
        lock.lock();
      },
      "mutex.*at (its )?destruction");
}

REGISTER_TYPED_TEST_SUITE_P(lock_suite_DeathTest, LockingAgainIsABrokenContract,
                            UnlockingAnothersLockIsABrokenContract,
                            UnlockingAFreeLockIsABrokenContract,
                            DestroyingAHeldLockIsABrokenContract);

}  // namespace sluice::testing
