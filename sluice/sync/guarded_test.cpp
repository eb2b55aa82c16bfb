#include "sluice/sync/guarded.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace guarded_test {
namespace {

using namespace std::chrono_literals;
using sluice::deadline;
using sluice::guarded;
using sluice::manual_clock;
using sluice::status;
using sluice::wait_limits;
using sluice::testing::detached;
using sluice::testing::eventually;
using sluice::testing::manual_sink;

// Calls that must not compile.
using box = guarded<int>;
static_assert(!std::is_copy_constructible_v<box> && !std::is_move_constructible_v<box>);
static_assert(!std::is_copy_constructible_v<box::access>);
static_assert(!std::is_move_assignable_v<box::access>);
template <class G>
concept gives_access = requires(G&& g) { std::forward<G>(g).lock(); };
template <class G>
concept lets_in = requires(G&& g) { std::forward<G>(g).with([](const int&) {}); };
template <class G>
concept gives_reading = requires(G&& g) { std::forward<G>(g).read(); };
static_assert(gives_access<box&> && gives_access<const box&>);
static_assert(!gives_access<box> && !gives_access<const box>);
static_assert(lets_in<box&> && lets_in<const box&> && !lets_in<box>);
static_assert(!gives_reading<box&>, "a mutex cannot be shared");
static_assert(gives_reading<const guarded<int, sluice::shared_mutex>&>);
static_assert(!gives_reading<guarded<int, sluice::shared_mutex>>);
template <class A>
concept leaks = requires(A&& a) { *std::forward<A>(a); };
static_assert(leaks<box::access&> && !leaks<box::access>);
template <class G>
concept can_change = requires(decltype(std::declval<G&>().lock())& held) { *held = 1; };
static_assert(can_change<box> && !can_change<const box>);
template <class G>
concept can_wait_for_change = requires(G& g) { g.lock_when([](int) { return true; }); };
static_assert(can_wait_for_change<box>);
static_assert(!can_wait_for_change<guarded<int, sluice::spin_lock>>);
static_assert(sizeof(guarded<std::uint32_t, sluice::spin_lock>) == 8);

template <class Lock>
class GuardedByAnyLock : public ::testing::Test {};
using every_lock =
    ::testing::Types<sluice::mutex, sluice::fair_mutex, sluice::shared_mutex, sluice::spin_lock,
                     std::mutex, std::timed_mutex, std::shared_mutex>;
TYPED_TEST_SUITE(GuardedByAnyLock, every_lock);

TYPED_TEST(GuardedByAnyLock, WithRunsAWholeStepAndReturnsItsResult) {
  guarded<std::vector<int>, TypeParam> list({1, 2, 3});
  EXPECT_EQ(list.with([](auto& values) {
    values.push_back(4);
    return values.size();
  }),
            4U);
  list.with([](auto& values) { values.clear(); });
  EXPECT_TRUE(std::as_const(list).with([](const auto& values) { return values.empty(); }));
}

TYPED_TEST(GuardedByAnyLock, AnAccessHoldsTheLockWhileItLives) {
  guarded<std::string, TypeParam> name("a");
  {
    auto held = name.lock();
    held->append("b");
    *held += "c";
    EXPECT_TRUE(held);
    EXPECT_EQ(held.status(), status::ok);
    std::jthread([&] {
      const auto other = name.try_lock();
      EXPECT_FALSE(other);
      EXPECT_EQ(other.status(), status::empty);
    }).join();
  }
  const auto again = name.try_lock();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, "abc");
}

TYPED_TEST(GuardedByAnyLock, AnAccessCanBeMovedAndReleasedEarly) {
  guarded<int, TypeParam> number(1);
  auto first = number.lock();
  auto second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): moved from means empty
  EXPECT_EQ(*second, 1);
  second.unlock();
  EXPECT_FALSE(second);
  second.unlock();
  EXPECT_TRUE(number.try_lock());
}

TYPED_TEST(GuardedByAnyLock, AThrowingStepReleasesTheLock) {
  guarded<int, TypeParam> number(1);
  EXPECT_THROW(number.with([](int&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_TRUE(number.try_lock());
}

TYPED_TEST(GuardedByAnyLock, ReadModifyWriteLosesNothingUnderContention) {
  constexpr int threads = 4;
  constexpr int steps = 20'000;
  guarded<std::pair<int, int>, TypeParam> twice(std::pair(0, 0));
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&] {
        for (int n = 0; n < steps; ++n) {
          twice.with([](auto& both) {
            ++both.first;
            ++both.second;
          });
        }
      });
    }
  }
  const auto both = twice.with([](auto& pair) { return pair; });
  EXPECT_EQ(both, std::pair(threads * steps, threads * steps));
  std::printf("%d steps by %d threads, no seed: nothing random\n", threads * steps, threads);
}

TEST(Guarded, IsBuiltByDefaultFromAValueOrInPlace) {
  guarded<int> zero;
  EXPECT_EQ(*std::as_const(zero).try_lock().operator->(), 0);
  guarded<std::unique_ptr<int>> moved(std::make_unique<int>(5));
  EXPECT_EQ(**moved.lock().operator->(), 5);
  guarded<std::string> placed(std::in_place, 3U, 'x');
  EXPECT_EQ(placed.lock()->size(), 3U);
  guarded<std::atomic<int>> unmovable(std::in_place, 4);
  EXPECT_EQ(unmovable.lock()->load(), 4);
}

// A thread that holds the lock of a guarded until it is asked to release it, or ends.
template <class G>
class holder {
 public:
  explicit holder(G& g)
      : thread_([this, &g] {
          const auto held = g.lock();
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

template <class Lock>
class GuardedByALimitedLock : public ::testing::Test {};
using limited_locks = ::testing::Types<sluice::mutex, sluice::fair_mutex, sluice::shared_mutex>;
TYPED_TEST_SUITE(GuardedByALimitedLock, limited_locks);

TYPED_TEST(GuardedByALimitedLock, EveryLimitReturnsItsStatus) {
  guarded<int, TypeParam> number(1);
  holder other(number);
  EXPECT_EQ(number.try_lock().status(), status::empty);
  EXPECT_EQ(number.try_lock_for(1ms).status(), status::timed_out);
  EXPECT_EQ(number.try_lock_for(-1h).status(), status::timed_out);
  EXPECT_EQ(number.try_lock_until(std::chrono::steady_clock::now()).status(), status::timed_out);
  EXPECT_EQ(number.try_lock_until(std::chrono::system_clock::now()).status(), status::timed_out);
  std::stop_source stop;
  EXPECT_EQ(number.lock({1ms, stop.get_token()}).status(), status::timed_out);
  EXPECT_EQ(std::as_const(number).lock(0s).status(),
            status::timed_out);
  std::jthread stopper([&] {
    eventually([&] { return number.waiting() == 1; });
    stop.request_stop();
  });
  EXPECT_EQ(number.lock(stop.get_token()).status(), status::stopped);
  EXPECT_EQ(number.lock({1h, stop.get_token()}).status(), status::stopped);
  EXPECT_EQ(number.lock({1h, stop.get_token()}).status(), status::stopped);
  other.release();
  EXPECT_EQ(number.lock(stop.get_token()).status(), status::stopped)
      << "stop wins over a free lock";
  EXPECT_TRUE(number.try_lock_for(-1h)) << "a passed deadline still allows one try";
  EXPECT_TRUE(number.try_lock_until(std::chrono::steady_clock::time_point::max()));
  EXPECT_TRUE(number.lock(std::stop_token()));
}

TYPED_TEST(GuardedByALimitedLock, ACoroutineIsHandedTheAccess) {
  guarded<int, TypeParam> number(1);
  manual_sink sink;
  int seen = 0;
  const auto work = [&](manual_sink&) -> detached {
    auto held = co_await number.async_lock();
    seen = ++*held;
  };
  {
    auto hold = number.lock();
    work(sink);
    EXPECT_EQ(number.waiting(), 1U);
    *hold = 10;
  }
  EXPECT_EQ(seen, 0) << "it resumes on its sink";
  EXPECT_FALSE(number.try_lock()) << "it was handed the lock";
  std::jthread([&] { sink.run_all(); }).join();  // released on another thread than it began
  EXPECT_EQ(seen, 11);
  EXPECT_TRUE(number.try_lock());
}

TYPED_TEST(GuardedByALimitedLock, ACoroutineThatTimedOutOrWasStoppedHoldsNothing) {
  guarded<int, TypeParam> number(1);
  manual_clock clock;
  std::stop_source stop;
  std::vector<status> ended;
  const auto work = [&](wait_limits limits) -> detached {
    const auto held = co_await number.async_lock(std::move(limits));
    EXPECT_FALSE(held);
    ended.push_back(held.status());
  };
  {
    const auto hold = number.lock();
    work({deadline::after(1s, clock)});
    work({stop.get_token()});
    EXPECT_EQ(number.waiting(), 2U);
    clock.advance(1s);
    stop.request_stop();
    EXPECT_EQ(ended, (std::vector<status>{status::timed_out, status::stopped}));
    EXPECT_EQ(number.waiting(), 0U);
  }
  EXPECT_TRUE(number.try_lock());
}

template <class Lock>
class GuardedByASharedLock : public ::testing::Test {};
using shared_locks =
    ::testing::Types<sluice::shared_mutex, std::shared_mutex, std::shared_timed_mutex>;
TYPED_TEST_SUITE(GuardedByASharedLock, shared_locks);

TYPED_TEST(GuardedByASharedLock, ReadersShareAndSeeTheValueConstant) {
  guarded<std::string, TypeParam> name("a");
  const auto hold = name.read();
  static_assert(std::is_same_v<decltype(*hold), const std::string&>);
  EXPECT_EQ(*hold, "a");
  std::jthread([&] {
    EXPECT_EQ(name.with_read([](const std::string& text) { return text; }), "a");
    const auto theirs = name.try_read();
    ASSERT_TRUE(theirs);
    EXPECT_EQ(theirs->size(), 1U);
    EXPECT_EQ(name.try_lock().status(), status::empty) << "a writer is kept out";
  }).join();
}

TYPED_TEST(GuardedByASharedLock, AWriterKeepsReadersOut) {
  guarded<int, TypeParam> number(1);
  const auto hold = number.lock();
  std::jthread([&] { EXPECT_EQ(number.try_read().status(), status::empty); }).join();
}

TEST(GuardedShared, EveryLimitOfAReaderReturnsItsStatus) {
  guarded<int, sluice::shared_mutex> number(1);
  holder other(number);
  std::stop_source stop;
  EXPECT_EQ(number.try_read_for(1ms).status(), status::timed_out);
  EXPECT_EQ(number.read({1ms, stop.get_token()}).status(), status::timed_out);
  EXPECT_EQ(number.try_read_until(std::chrono::system_clock::now()).status(), status::timed_out);
  EXPECT_EQ(number.read(0s).status(), status::timed_out);
  std::jthread stopper([&] {
    eventually([&] { return number.waiting() == 1; });
    stop.request_stop();
  });
  EXPECT_EQ(number.read(stop.get_token()).status(), status::stopped);
  other.release();
  EXPECT_TRUE(number.read(std::stop_token()));
}

TEST(GuardedShared, ACoroutineReads) {
  guarded<int, sluice::shared_mutex> number(1);
  int seen = 0;
  const auto work = [&]() -> detached {
    const auto held = co_await number.async_read();
    seen = *held;
  };
  {
    auto hold = number.lock();
    work();
    EXPECT_EQ(seen, 0);
    *hold = 7;
  }
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(number.try_lock());
}

template <class Lock>
class GuardedWhen : public ::testing::Test {};
using waiting_locks =
    ::testing::Types<sluice::mutex, sluice::fair_mutex, sluice::shared_mutex, std::mutex>;
TYPED_TEST_SUITE(GuardedWhen, waiting_locks);

TYPED_TEST(GuardedWhen, RunsAtOnceWhenThePredicateHolds) {
  guarded<int, TypeParam> number(3);
  EXPECT_EQ(number.when([](int n) { return n == 3; }, [](int& n) { return ++n; }), 4);
  EXPECT_EQ(*number.lock_when([](int n) { return n == 4; }).operator->(), 4);
}

TYPED_TEST(GuardedWhen, WaitsUntilThePredicateIsTrue) {
  guarded<int, TypeParam> number(0);
  int seen = 0;
  std::jthread waiter([&] {
    seen = number.when([](int n) { return n >= 3; }, [](int& n) { return std::exchange(n, 0); });
  });
  for (int i = 0; i < 3; ++i) {
    eventually([&] { return number.waiting_for_change() == 1; });
    EXPECT_TRUE(waiter.joinable());
    number.with([](int& n) { ++n; });
  }
  waiter.join();
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(*number.lock().operator->(), 0);
}

TYPED_TEST(GuardedWhen, ChecksEveryWaiterAgainAfterEachChange) {
  guarded<int, TypeParam> turn(0);
  std::atomic<int> done{0};
  constexpr int threads = 6;
  constexpr int rounds = 200;
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        for (int round = 0; round < rounds; ++round) {
          // Each change releases exactly the next waiter.
          turn.when([&](int n) { return n % threads == i; }, [](int& n) { ++n; });
          ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, threads * rounds);
  EXPECT_EQ(*turn.lock().operator->(), threads * rounds);
  std::printf("%d turns by %d threads, no seed: nothing random\n", threads * rounds, threads);
}

TEST(Guarded, ALimitedWhenReturnsItsStatusAndHoldsNothing) {
  guarded<int> number(0);
  const auto never = [](int) { return false; };
  EXPECT_EQ(number.lock_when(never, 1ms).status(), status::timed_out);
  EXPECT_EQ(number.lock_when(never, -1s).status(), status::timed_out);
  EXPECT_EQ(number.lock_when(never, std::chrono::system_clock::now()).status(),
            status::timed_out);
  EXPECT_TRUE(number.lock_when([](int n) { return n == 0; }, -1s)) << "it tries once";
  std::stop_source stop;
  std::jthread stopper([&] {
    eventually([&] { return number.waiting_for_change() == 1; });
    stop.request_stop();
  });
  EXPECT_EQ(number.lock_when(never, stop.get_token()).status(), status::stopped);
  EXPECT_EQ(number.lock_when(never, {1h, stop.get_token()}).status(), status::stopped);
  EXPECT_TRUE(number.try_lock());
  EXPECT_EQ(number.waiting_for_change(), 0U);
}

TEST(Guarded, APredicateThatThrowsLeavesTheLockFree) {
  guarded<int> number(0);
  EXPECT_THROW(number.when([](int) -> bool { throw std::runtime_error("no"); }, [](int&) {}),
               std::runtime_error);
  EXPECT_TRUE(number.try_lock());
  number.with([](int& n) { ++n; });
}

TEST(Guarded, AnAccessCanWaitInTheMiddleOfAStepAndSignalsEarlierChanges) {
  guarded<int> number(0);
  std::jthread other([&] {
    number.when([](int n) { return n == 1; }, [](int& n) { n = 2; });
  });
  eventually([&] { return number.waiting_for_change() == 1; });
  auto held = number.lock();
  *held = 1;
  held.wait([](int n) { return n == 2; });  // hangs unless the other waiter is notified of the 1
  EXPECT_EQ(*held, 2);
  EXPECT_EQ(held.wait([](int n) { return n == 3; }, 0s),
            status::timed_out);
  EXPECT_TRUE(held) << "the lock is held again, also after a wait that failed";
}

TEST(Guarded, ACoroutineWaitsForAChange) {
  guarded<int> number(0);
  manual_clock clock;
  std::vector<status> ended;
  const auto work = [&](int wanted, wait_limits limits) -> detached {
    auto held = co_await number.async_lock();
    const auto result = co_await held.async_wait([=](int n) { return n == wanted; }, limits);
    EXPECT_TRUE(held);
    if (result) *held = 0;
    ended.push_back(result);
  };
  work(5, {});
  work(6, {deadline::after(1s, clock)});
  EXPECT_EQ(number.waiting_for_change(), 2U);
  number.with([](int& n) { n = 4; });
  EXPECT_EQ(number.waiting_for_change(), 2U);
  number.with([](int& n) { n = 5; });
  EXPECT_EQ(ended, std::vector<status>{status::ok});
  EXPECT_EQ(*number.lock().operator->(), 0);
  EXPECT_EQ(number.waiting_for_change(), 1U);
  clock.advance(1s);
  EXPECT_EQ(ended, (std::vector<status>{status::ok, status::timed_out}));
  EXPECT_TRUE(number.try_lock());
}

TEST(GuardedStress, AHandOverThroughWhenLosesNothing) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 99);
  constexpr int producers = 2;
  constexpr int consumers = 2;
  constexpr int items = 5'000;
  constexpr std::size_t room = 4;
  guarded<std::vector<int>> buffer;
  std::atomic<std::int64_t> sum{0};
  std::atomic<int> taken{0};
  std::atomic<int> gave_up{0};
  {
    std::vector<std::jthread> crew;
    for (int p = 0; p < producers; ++p) {
      crew.emplace_back([&] {
        for (int n = 1; n <= items; ++n) {
          buffer.when([](const auto& list) { return list.size() < room; },
                      [&](auto& list) { list.push_back(n); });
        }
      });
    }
    for (int c = 0; c < consumers; ++c) {
      crew.emplace_back([&, c] {
        sluice::random random(seed + static_cast<std::uint64_t>(c));
        while (taken < producers * items) {
          const auto patience = std::chrono::microseconds(random.below(200));
          auto held =
              buffer.lock_when([](const auto& list) { return !list.empty(); }, patience);
          if (!held) {
            ASSERT_EQ(held.status(), status::timed_out);
            ++gave_up;
            continue;
          }
          sum += held->back();
          held->pop_back();
          ++taken;
        }
      });
    }
  }
  EXPECT_EQ(taken, producers * items);
  EXPECT_EQ(sum, std::int64_t{producers} * items * (items + 1) / 2);
  EXPECT_TRUE(buffer.lock()->empty());
  std::printf("%d items, %d waits timed out, seed %llu\n", taken.load(), gave_up.load(),
              static_cast<unsigned long long>(seed));
}

TEST(GuardedDeathTest, ReadingAnEmptyAccessIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        guarded<int> number(1);
        auto held = number.lock();
        held.unlock();
        std::printf("%d", *held);
      },
      "sluice::guarded.*expected an access that holds the lock");
}

TEST(GuardedDeathTest, LockingAgainFromInsideAStepIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        guarded<int> number(1);
        number.with([&](int&) { number.with([](int&) {}); });
      },
      "not to be locked again by the thread that holds it");
}

}  // namespace
}  // namespace guarded_test
