#include "sluice/base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace clock_test {
namespace {

using namespace std::chrono_literals;
using sluice::manual_clock;
using sluice::real_clock;
using sluice::time_point;
using sluice::timer_heap;
using sluice::testing::eventually;

constexpr time_point epoch{};

// A timer that counts its firings and calls a function of the test.
class alarm_timer final : public sluice::timer {
 public:
  explicit alarm_timer(std::function<void()> body = [] {}) : body_(std::move(body)) {}

  bool claim() noexcept override { return wants_to_fire; }
  void fire() noexcept override {
    body_();
    ++fired;  // last: a test may destroy the timer as soon as it sees this
  }

  bool wants_to_fire = true;
  std::atomic<int> fired{0};

 private:
  std::function<void()> body_;
};

TEST(TimerHeap, OrdersTimersByDeadlineThenByOrderOfArming) {
  std::vector<int> order;
  const auto says = [&](int n) { return [&order, n] { order.push_back(n); }; };
  alarm_timer a(says(1)), b(says(2)), c(says(3)), d(says(4)), e(says(5));
  timer_heap heap;
  EXPECT_TRUE(heap.empty());
  heap.add(c, epoch + 2s);
  heap.add(a, epoch + 1s);
  heap.add(d, epoch + 2s);
  heap.add(e, epoch + 3s);
  heap.add(b, epoch + 1s);
  EXPECT_EQ(heap.size(), 5U);
  EXPECT_EQ(heap.earliest(), epoch + 1s);
  timer_heap::fire_all(heap.claim_due(epoch + 1s - 1ns));
  EXPECT_TRUE(order.empty());
  timer_heap::fire_all(heap.claim_due(epoch + 2s));
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(heap.size(), 1U);
  EXPECT_TRUE(heap.remove(e));
  EXPECT_FALSE(heap.remove(e));
  EXPECT_FALSE(heap.remove(a)) << "it has fired";
}

TEST(TimerHeap, ATimerThatDoesNotClaimIsRemovedAndNotFired) {
  alarm_timer a, b;
  a.wants_to_fire = false;
  timer_heap heap;
  heap.add(a, epoch);
  heap.add(b, epoch);
  timer_heap::fire_all(heap.claim_due(epoch));
  EXPECT_EQ(a.fired, 0);
  EXPECT_EQ(b.fired, 1);
  EXPECT_TRUE(heap.empty());
  heap.add(a, epoch);  // it can be armed again
  EXPECT_TRUE(heap.remove(a));
}

TEST(TimerHeap, ATimerMayDestroyItselfWhenItFires) {
  alarm_timer b;
  struct ends_itself final : sluice::timer {
    bool claim() noexcept override { return true; }
    void fire() noexcept override { delete this; }
  };
  timer_heap heap;
  heap.add(*new ends_itself, epoch);
  heap.add(b, epoch);
  timer_heap::fire_all(heap.claim_due(epoch));
  EXPECT_EQ(b.fired, 1) << "the rest of the chain is still fired";
}

TEST(TimerHeapStress, AgreesWithAnOrderedMap) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 1701);
  constexpr int steps = 50'000;
  sluice::random random(seed);
  std::vector<int> order;
  std::vector<std::unique_ptr<alarm_timer>> timers;
  for (int n = 0; n < 300; ++n) {
    timers.push_back(std::make_unique<alarm_timer>([&order, n] { order.push_back(n); }));
  }
  timer_heap heap;
  std::multimap<time_point, int> model;  // keeps equal keys in the order of insertion
  const auto armed = [&](int n) {
    return std::ranges::find(model, n, [](auto& entry) { return entry.second; });
  };
  auto now = epoch;
  for (int step = 0; step < steps; ++step) {
    const auto n = static_cast<int>(random.below(300));
    auto& one = *timers[static_cast<std::size_t>(n)];
    switch (random.below(4)) {
      case 0: {
        now += std::chrono::seconds(random.below(3));
        order.clear();
        timer_heap::fire_all(heap.claim_due(now));
        std::vector<int> expected;
        const auto end = model.upper_bound(now);
        for (auto at = model.begin(); at != end; ++at) expected.push_back(at->second);
        model.erase(model.begin(), end);
        ASSERT_EQ(order, expected);
        break;
      }
      case 1: {
        const auto at = armed(n);
        ASSERT_EQ(heap.remove(one), at != model.end());
        if (at != model.end()) model.erase(at);
        break;
      }
      default:
        if (armed(n) != model.end()) break;
        // Few distinct times, so that many are equal.
        const auto when = now + std::chrono::seconds(random.below(60));
        heap.add(one, when);
        model.emplace(when, n);
    }
    ASSERT_EQ(heap.size(), model.size());
    if (model.empty()) continue;
    ASSERT_EQ(heap.earliest(), model.begin()->first);
  }
  while (!heap.empty()) timer_heap::fire_all(heap.claim_due(heap.earliest()));
  std::printf("%d steps, seed %llu\n", steps, static_cast<unsigned long long>(seed));
}

TEST(TimerHeapStress, AMillionTimersAreArmedAndDisarmedInBoundedTime) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 12);
  constexpr std::size_t count = 1'000'000;
  struct idle final : sluice::timer {
    bool claim() noexcept override { return true; }
    void fire() noexcept override {}
  };
  sluice::random random(seed);
  std::vector<idle> timers(count);
  timer_heap heap;
  const auto start = std::chrono::steady_clock::now();
  for (auto& one : timers) heap.add(one, epoch + std::chrono::nanoseconds(random.next() >> 2));
  EXPECT_EQ(heap.size(), count);
  for (std::size_t n = 0; n < count; ++n) {  // in an order that is independent of the times
    ASSERT_TRUE(heap.remove(timers[(n * 7'368'787) % count]));
  }
  // With more than O(log n) for each step, it would exceed the time limit of the test by hours.
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(heap.empty());
  std::printf("%zu timers armed and disarmed in %lld ms, seed %llu\n", count,
              static_cast<long long>(took / 1ms), static_cast<unsigned long long>(seed));
}

TEST(ManualClock, TimeChangesOnlyInAdvance) {
  manual_clock clock(epoch + 5s);
  EXPECT_EQ(clock.now(), epoch + 5s);
  clock.advance(0s);
  EXPECT_EQ(clock.now(), epoch + 5s);
  clock.advance(250ms);
  EXPECT_EQ(clock.now(), epoch + 5s + 250ms);
}

TEST(ManualClock, FiresDueTimersInOrderOnTheAdvancingThread) {
  manual_clock clock;
  std::vector<int> order;
  const auto thread = std::this_thread::get_id();
  const auto says = [&](int n) {
    return [&, n] {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      order.push_back(n);
    };
  };
  alarm_timer a(says(1)), b(says(2)), c(says(3)), d(says(4));
  EXPECT_TRUE(clock.arm(d, clock.now() + 3s));
  EXPECT_TRUE(clock.arm(b, clock.now() + 2s));
  EXPECT_TRUE(clock.arm(c, clock.now() + 2s));
  EXPECT_TRUE(clock.arm(a, clock.now() + 1s));
  EXPECT_EQ(clock.pending(), 4U);
  clock.advance(2s - 1ns);
  EXPECT_EQ(order, std::vector{1});
  clock.advance(1ns);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_EQ(clock.pending(), 1U);
  EXPECT_TRUE(clock.disarm(d));
  clock.advance(1h);
  EXPECT_EQ(order.size(), 3U) << "a disarmed timer does not fire";
}

TEST(ManualClock, ArmReturnsFalseForATimeInThePast) {
  manual_clock clock;
  alarm_timer a;
  EXPECT_FALSE(clock.arm(a, clock.now()));
  EXPECT_FALSE(clock.arm(a, clock.now() - 1s));
  EXPECT_FALSE(clock.arm(a, time_point::min()));
  EXPECT_EQ(clock.pending(), 0U);
  EXPECT_FALSE(clock.disarm(a));
  clock.advance(1h);
  EXPECT_EQ(a.fired, 0);
}

TEST(ManualClock, EachTimerSeesItsOwnDeadlineAndMayArmAgain) {
  manual_clock clock;
  const auto start = clock.now();
  std::vector<time_point> seen;
  alarm_timer* self = nullptr;
  alarm_timer every_second([&] {
    seen.push_back(clock.now());
    EXPECT_TRUE(clock.arm(*self, clock.now() + 1s));
  });
  self = &every_second;
  EXPECT_TRUE(clock.arm(every_second, start + 1s));
  clock.advance(10s + 500ms);
  ASSERT_EQ(seen.size(), 10U);
  for (std::size_t n = 0; n < seen.size(); ++n) {
    EXPECT_EQ(seen[n], start + std::chrono::seconds(n + 1));
  }
  EXPECT_EQ(clock.now(), start + 10s + 500ms);
  EXPECT_TRUE(clock.disarm(every_second));
}

TEST(ManualClock, ATimerArmedByATimerFiresInTheSameAdvanceIfItIsDue) {
  manual_clock clock;
  std::vector<int> order;
  alarm_timer inner([&] { order.push_back(2); });
  alarm_timer last([&] { order.push_back(3); });
  alarm_timer outer([&] {
    order.push_back(1);
    EXPECT_TRUE(clock.arm(inner, clock.now() + 1s));
  });
  EXPECT_TRUE(clock.arm(outer, clock.now() + 1s));
  EXPECT_TRUE(clock.arm(last, clock.now() + 3s));
  clock.advance(3s);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(ManualClock, ATimerMayDisarmAnotherThatIsDueLater) {
  manual_clock clock;
  alarm_timer later;
  bool disarmed = false;
  alarm_timer first([&] { disarmed = clock.disarm(later); });
  EXPECT_TRUE(clock.arm(first, clock.now() + 1s));
  EXPECT_TRUE(clock.arm(later, clock.now() + 2s));
  clock.advance(5s);
  EXPECT_TRUE(disarmed);
  EXPECT_EQ(later.fired, 0);
}

TEST(ManualClock, AdvancesToTheLatestTimeAtMost) {
  manual_clock clock;
  alarm_timer a;
  EXPECT_TRUE(clock.arm(a, time_point::max() - 1ns));
  clock.advance(std::chrono::nanoseconds::max());
  EXPECT_EQ(clock.now(), time_point::max());
  EXPECT_EQ(a.fired, 1);
  clock.advance(1s);
  EXPECT_EQ(clock.now(), time_point::max());
}

TEST(ManualClockStress, EveryTimerIsDisarmedOrFiresOnceWhileTimeMoves) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 2718);
  constexpr int threads = 3;
  constexpr int rounds = 1'000;
  manual_clock clock;
  std::atomic<int> working{threads};
  std::atomic<int> fires{0};
  std::atomic<int> disarms{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < threads; ++i) {
    crew.emplace_back([&, i] {
      sluice::random random(seed + static_cast<std::uint64_t>(i));
      for (int n = 0; n < rounds; ++n) {
        alarm_timer one;
        const auto when = clock.now() + std::chrono::milliseconds(random.below(5));
        if (!clock.arm(one, when)) continue;
        // At about the time at which it fires.
        const auto look = when - std::chrono::milliseconds(random.below(3));
        while (clock.now() < look) std::this_thread::yield();
        if (clock.disarm(one)) {
          ++disarms;
          ASSERT_EQ(one.fired, 0);
        } else {
          eventually([&] { return one.fired == 1; });
          ++fires;
        }
      }
      --working;
    });
  }
  while (working > 0) {
    clock.advance(1ms);
    std::this_thread::yield();  // otherwise this thread holds the clock's lock nearly all the time
  }
  crew.clear();
  EXPECT_EQ(clock.pending(), 0U);
  std::printf("%d timers: %d fired, %d disarmed, seed %llu\n", threads * rounds, fires.load(),
              disarms.load(), static_cast<unsigned long long>(seed));
}

TEST(RealClock, ReturnsTheSteadyTime) {
  const auto before = std::chrono::steady_clock::now();
  const auto now = real_clock().now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, std::chrono::steady_clock::now());
  EXPECT_EQ(&real_clock(), &real_clock());
}

TEST(RealClock, FiresOnItsOwnThreadAndNeverEarly) {
  for (const auto wait : {1us, 200us, 3000us}) {
    time_point fired_at;
    std::thread::id where;
    alarm_timer one([&] {
      fired_at = std::chrono::steady_clock::now();
      where = std::this_thread::get_id();
    });
    const auto when = real_clock().now() + wait;
    if (!real_clock().arm(one, when)) continue;  // this machine was too slow
    eventually([&] { return one.fired == 1; });
    EXPECT_GE(fired_at, when);
    EXPECT_NE(where, std::this_thread::get_id());
  }
}

TEST(RealClock, ArmReturnsFalseForATimeInThePast) {
  alarm_timer one;
  EXPECT_FALSE(real_clock().arm(one, real_clock().now()));
  EXPECT_FALSE(real_clock().arm(one, time_point{}));
  EXPECT_FALSE(real_clock().arm(one, time_point::min()));
  EXPECT_FALSE(real_clock().disarm(one));
}

TEST(RealClock, AnEarlierTimerArmedLaterFiresFirst) {
  auto& clock = real_clock();
  alarm_timer distant;
  alarm_timer soon;
  EXPECT_TRUE(clock.arm(distant, clock.now() + 1h));
  while (!clock.arm(soon, clock.now() + 1ms)) {}
  eventually([&] { return soon.fired == 1; });
  EXPECT_TRUE(clock.disarm(distant));
  EXPECT_FALSE(clock.disarm(distant));
  EXPECT_EQ(distant.fired, 0);
}

TEST(RealClock, ATimerMayDisarmAnotherThatIsDueLaterWhenBothAreLate) {
  auto& clock = real_clock();
  const auto soon = clock.now() + 20ms;
  std::atomic<bool> go{false};
  alarm_timer blocker([&] { eventually([&] { return go.load(); }); });
  alarm_timer second;
  std::atomic<bool> disarmed{false};
  alarm_timer first([&] { disarmed = clock.disarm(second); });
  if (!clock.arm(blocker, soon)) return;  // this machine was too slow
  ASSERT_TRUE(clock.arm(first, soon + 1ns));
  ASSERT_TRUE(clock.arm(second, soon + 2ns));
  eventually([&] { return clock.now() > soon + 2ns; });
  go = true;
  eventually([&] { return first.fired == 1; });
  EXPECT_TRUE(disarmed);
  EXPECT_EQ(second.fired, 0);
}

TEST(RealClockStress, EveryTimerIsDisarmedOrFiresOnce) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 314);
  constexpr int threads = 3;
  constexpr int rounds = 3'000;
  std::atomic<int> fires{0};
  std::atomic<int> disarms{0};
  std::atomic<int> too_late{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        sluice::random random(seed + static_cast<std::uint64_t>(i));
        auto& clock = real_clock();
        for (int n = 0; n < rounds; ++n) {
          const auto when = clock.now() + std::chrono::microseconds(random.below(60));
          alarm_timer one([&] { ASSERT_GE(clock.now(), when) << "early"; });
          if (!clock.arm(one, when)) {
            ++too_late;
            continue;
          }
          // At about the time at which it fires.
          const auto look = when + std::chrono::microseconds(random.below(20)) - 10us;
          while (clock.now() < look) sluice::seam::pause();
          if (clock.disarm(one)) {
            ++disarms;
            ASSERT_EQ(one.fired, 0);
          } else {
            eventually([&] { return one.fired == 1; });
            ++fires;
          }
        }
      });
    }
  }
  EXPECT_EQ(fires + disarms + too_late, threads * rounds);
  std::printf("%d timers: %d fired, %d disarmed, %d too late, seed %llu\n", threads * rounds,
              fires.load(), disarms.load(), too_late.load(),
              static_cast<unsigned long long>(seed));
}

TEST(ClockDeathTest, ArmingTwiceIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        manual_clock clock;
        alarm_timer one;
        static_cast<void>(clock.arm(one, clock.now() + 1s));
        static_cast<void>(clock.arm(one, clock.now() + 2s));
      },
      "sluice::timer: expected to be armed once at a time");
}

TEST(ClockDeathTest, DisarmingOnAnotherClockIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        manual_clock clock;
        manual_clock other;
        alarm_timer one;
        static_cast<void>(clock.arm(one, clock.now() + 1s));
        other.disarm(one);
      },
      "sluice::timer: expected to be disarmed on its own clock");
}

TEST(ManualClock, ReturnsTheEarliestDeadline) {
  manual_clock clock;
  EXPECT_EQ(clock.earliest(), time_point::max());
  alarm_timer late;
  alarm_timer soon;
  ASSERT_TRUE(clock.arm(late, clock.now() + 5s));
  ASSERT_TRUE(clock.arm(soon, clock.now() + 2s));
  EXPECT_EQ(clock.earliest(), clock.now() + 2s);
  clock.advance(2s);
  EXPECT_EQ(clock.earliest(), clock.now() + 3s);
  EXPECT_TRUE(clock.disarm(late));
  EXPECT_EQ(clock.earliest(), time_point::max());
}

TEST(ClockDeathTest, AdvancingBackwardsIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        manual_clock clock;
        clock.advance(-1ns);
      },
      "sluice::manual_clock: expected time to move forwards");
}

TEST(ClockDeathTest, DestructionWithArmedTimersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        alarm_timer one;
        manual_clock clock;
        static_cast<void>(clock.arm(one, clock.now() + 1s));
      },
      "sluice::manual_clock: expected no armed timers at its destruction");
}

}  // namespace
}  // namespace clock_test
