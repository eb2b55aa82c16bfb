#include "sluice/sync/lock_all.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace lock_all_test {
namespace {

using namespace std::chrono_literals;
using sluice::deadline;
using sluice::guarded;
using sluice::lock_all;
using sluice::manual_clock;
using sluice::status;
using sluice::try_lock_all;
using sluice::testing::eventually;

// Returns true if another thread could take it now.
template <class Lock>
bool is_free(Lock& lock) {
  bool taken = false;
  std::jthread([&] {
    taken = lock.try_lock();
    if (taken) lock.unlock();
  }).join();
  return taken;
}

// Holds a lock on another thread until `release`.
template <class Lock>
class holder {
 public:
  explicit holder(Lock& lock)
      : thread_([this, &lock] {
          const std::lock_guard hold(lock);
          holds_ = true;
          eventually([&] { return released_.load(); });
        }) {
    eventually([&] { return holds_.load(); });
  }
  ~holder() { released_ = true; }
  void release() {
    released_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> holds_{false};
  std::atomic<bool> released_{false};
  std::jthread thread_;
};

TEST(LockAll, HoldsEveryLockAndReleasesThemTogether) {
  sluice::mutex a;
  std::mutex b;
  sluice::spin_lock c;
  sluice::fair_mutex d;
  {
    const auto held = lock_all(a, b, c, d);
    static_assert(std::is_same_v<std::tuple_element_t<1, std::remove_cvref_t<decltype(held)>>,
                                 std::unique_lock<std::mutex>>);
    EXPECT_TRUE(std::get<0>(held).owns_lock());
    EXPECT_FALSE(is_free(a));
    EXPECT_FALSE(is_free(b));
    EXPECT_FALSE(is_free(c));
    EXPECT_FALSE(is_free(d));
  }
  EXPECT_TRUE(is_free(a));
  EXPECT_TRUE(is_free(b));
  EXPECT_TRUE(is_free(c));
  EXPECT_TRUE(is_free(d));
}

TEST(LockAll, GivesAccessToGuardedValues) {
  guarded<int> payer(10);
  guarded<int, sluice::shared_mutex> payee(1);
  const guarded<int> rate(3);
  sluice::mutex audit;
  {
    auto [a, b, r, hold] = lock_all(payer, payee, rate, audit);
    static_assert(std::is_same_v<decltype(*r), const int&>);
    *a -= *r;
    *b += *r;
    EXPECT_TRUE(hold.owns_lock());
    EXPECT_FALSE(is_free(audit));
  }
  EXPECT_EQ(payer.with([](int& n) { return n; }), 7);
  EXPECT_EQ(payee.with([](int& n) { return n; }), 4);
  EXPECT_TRUE(rate.try_lock());
}

TEST(LockAll, TakesASingleLock) {
  sluice::mutex only;
  const auto held = lock_all(only);
  EXPECT_TRUE(only.held_by_me());
  EXPECT_EQ(std::tuple_size_v<std::remove_cvref_t<decltype(held)>>, 1U);
}

TEST(LockAll, HoldsNothingWhileItWaits) {
  sluice::mutex a;
  sluice::mutex b;
  sluice::mutex c;
  holder other(b);
  std::jthread taker([&] { const auto held = lock_all(a, b, c); });
  eventually([&] { return b.waiting() == 1; });
  EXPECT_TRUE(is_free(a));
  EXPECT_TRUE(is_free(c));
  other.release();
}

TEST(LockAll, TryGivesUpAtOnceAndHoldsNothing) {
  sluice::mutex a;
  std::mutex b;
  {
    holder other(b);
    const auto held = try_lock_all(a, b);
    EXPECT_FALSE(held);
    EXPECT_EQ(held.status(), status::empty);
    EXPECT_TRUE(is_free(a));
  }
  EXPECT_TRUE(try_lock_all(a, b));
  EXPECT_TRUE(is_free(a));
}

TEST(LockAll, ADeadlineEndsItAndNothingIsHeld) {
  sluice::mutex a;
  sluice::mutex b;
  std::mutex c;
  {
    holder other(b);
    EXPECT_EQ(lock_all(1ms, a, b, c).status(), status::timed_out);
    EXPECT_EQ(lock_all(-1h, b, a).status(), status::timed_out);
    EXPECT_EQ(lock_all(std::chrono::system_clock::now(), a, b).status(),
              status::timed_out);
    EXPECT_TRUE(is_free(a));
    EXPECT_TRUE(is_free(c));
  }
  {
    holder other(c);  // a std::mutex supports no deadline, and is polled
    EXPECT_EQ(lock_all(1ms, a, b, c).status(), status::timed_out);
    EXPECT_EQ(lock_all(1ms, c, b, a).status(), status::timed_out);
    EXPECT_TRUE(is_free(a));
    EXPECT_TRUE(is_free(b));
  }
  EXPECT_TRUE(lock_all(-1h, a, b, c)) << "a passed deadline still allows one try";
  EXPECT_TRUE(lock_all(std::chrono::hours::max(), a, b, c));
}

TEST(LockAll, TheDeadlineMayBeOnAnyClock) {
  sluice::mutex a;
  sluice::mutex b;
  manual_clock clock;
  holder other(b);
  status ended = status::ok;
  std::jthread taker([&] {
    ended = lock_all({deadline::after(1s, clock)}, a, b).status();
  });
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1s);
  taker.join();
  EXPECT_EQ(ended, status::timed_out);
}

TEST(LockAll, AStopEndsItAndNothingIsHeld) {
  sluice::mutex a;
  sluice::mutex b;
  std::mutex c;
  std::stop_source stop;
  {
    holder other(b);
    std::jthread stopper([&] {
      eventually([&] { return b.waiting() == 1; });
      stop.request_stop();
    });
    EXPECT_EQ(lock_all(stop.get_token(), a, b, c).status(), status::stopped);
    EXPECT_TRUE(is_free(a));
    EXPECT_TRUE(is_free(c));
  }
  const auto token = stop.get_token();
  EXPECT_EQ(lock_all(token, a, b).status(), status::stopped) << "stop wins over free locks";
  EXPECT_EQ(lock_all(token, c, a).status(), status::stopped);
  EXPECT_TRUE(lock_all(std::stop_token(), a, b, c));
}

TEST(LockAll, AStopEndsThePollingOfALockWithoutStopSupport) {
  std::mutex a;
  sluice::mutex b;
  std::stop_source stop;
  holder other(a);
  std::atomic<bool> started{false};
  std::jthread stopper([&] {
    eventually([&] { return started.load(); });
    stop.request_stop();
  });
  started = true;
  EXPECT_EQ(lock_all(stop.get_token(), a, b).status(), status::stopped);
  EXPECT_TRUE(is_free(b));
}

TEST(LockAll, ALockThatThrowsLeavesNothingHeld) {
  struct broken {
    void lock() { throw std::runtime_error("lock"); }
    bool try_lock() { throw std::runtime_error("try_lock"); }
    void unlock() {}
  };
  sluice::mutex a;
  broken b;
  EXPECT_THROW(std::ignore = lock_all(a, b), std::runtime_error);
  EXPECT_THROW(std::ignore = lock_all(b, a), std::runtime_error);
  EXPECT_THROW(std::ignore = try_lock_all(a, b), std::runtime_error);
  EXPECT_TRUE(is_free(a));
}

template <class Lock>
class LockAllPhilosophers : public ::testing::Test {};
using forks = ::testing::Types<sluice::mutex, sluice::fair_mutex, sluice::shared_mutex,
                               sluice::spin_lock, std::mutex>;
TYPED_TEST_SUITE(LockAllPhilosophers, forks);

TYPED_TEST(LockAllPhilosophers, AllPhilosophersEat) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 5150);
  constexpr std::size_t seats = 5;
  constexpr int meals = 4'000;
  std::latch seated(seats);
  std::array<guarded<int, TypeParam>, seats> table;  // a fork, and how often it was used
  {
    std::vector<std::jthread> crew;
    for (std::size_t seat = 0; seat < seats; ++seat) {
      crew.emplace_back([&, seat] {
        sluice::random random(seed + seat);
        seated.arrive_and_wait();
        for (int meal = 0; meal < meals; ++meal) {
          auto& left = table[seat];
          auto& right = table[(seat + 1) % seats];
          // Each takes the left fork first, most of the time: the order that deadlocks.
          auto [one, two] = random.below(8) == 0 ? lock_all(right, left) : lock_all(left, right);
          ++*one;
          if (random.below(8) == 0) std::this_thread::yield();  // so that others find forks taken
          ++*two;
        }
      });
    }
  }
  for (auto& fork : table) EXPECT_EQ(fork.with([](int& used) { return used; }), 2 * meals);
  std::printf("%zu meals at a table of %zu, seed %llu\n", seats * meals, seats,
              static_cast<unsigned long long>(seed));
}

TEST(LockAllStress, TransfersBetweenRandomAccountsKeepTheTotal) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 31337);
  constexpr int threads = 4;
  constexpr int transfers = 5'000;
  guarded<std::int64_t> a(1000);
  guarded<std::int64_t, sluice::fair_mutex> b(1000);
  guarded<std::int64_t, std::mutex> c(1000);
  std::atomic<int> timed_out{0};
  std::atomic<int> stopped{0};
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        sluice::random random(seed + static_cast<std::uint64_t>(i));
        std::stop_source gone;
        gone.request_stop();
        const auto move = [&](auto held) {
          if (!held) {
            ++(held.status() == status::stopped ? stopped : timed_out);
            return;
          }
          auto& [x, y, z] = *held;
          ASSERT_EQ(*x + *y + *z, 3000) << "another thread was in the middle of a transfer";
          const auto amount = static_cast<std::int64_t>(random.below(100));
          *x -= amount;
          *y += amount - 7;
          *z += 7;
          ++done;
        };
        for (int n = 0; n < transfers; ++n) {
          const auto patience = std::chrono::microseconds(random.below(50));
          switch (random.below(6)) {
            case 0: move(lock_all(patience, a, b, c)); break;
            case 1: move(lock_all(patience, c, a, b)); break;
            case 2: move(lock_all({}, b, c, a)); break;
            case 3: move(lock_all(std::stop_token(), c, b, a)); break;
            case 4: move(lock_all(std::stop_source().get_token(), a, c, b)); break;
            default: move(lock_all(gone.get_token(), b, a, c)); break;
          }
        }
      });
    }
  }
  auto [x, y, z] = lock_all(a, b, c);
  EXPECT_EQ(*x + *y + *z, 3000);
  EXPECT_EQ(done + timed_out + stopped, threads * transfers);
  EXPECT_GT(stopped, 0);
  std::printf("%d transfers: %d done, %d timed out, %d stopped, seed %llu\n", threads * transfers,
              done.load(), timed_out.load(), stopped.load(),
              static_cast<unsigned long long>(seed));
}

TEST(LockAllDeathTest, TheSameLockTwiceIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice =
      "sluice::lock_all.*expected every lock only once; the same lock was passed twice";
  sluice::mutex a;
  std::mutex b;
  guarded<int> g(1);
  EXPECT_DEATH(std::ignore = lock_all(a, b, a), twice);
  EXPECT_DEATH(std::ignore = lock_all(b, b), twice);
  EXPECT_DEATH(std::ignore = lock_all(g, a, std::as_const(g)), twice);
  EXPECT_DEATH(std::ignore = try_lock_all(g, g), twice);
  EXPECT_DEATH(std::ignore = lock_all(1ms, a, a), twice);
}

}  // namespace
}  // namespace lock_all_test
