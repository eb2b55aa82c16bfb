#include "sluice/sim/detail/strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::strategy_test {
namespace {

using namespace std::chrono_literals;

// A bug of depth 2: one thread must be preempted between its load and its store, at one of three
// steps, so it is found about three times as often as the bound requires.
void lost_update() {
  atomic<int> count{0};
  atomic<int> aside{0};
  {
    const auto raise = [&] {
      const int seen = count.load();
      aside.fetch_add(1);
      aside.fetch_add(1);
      count.store(seen + 1);
    };
    std::jthread a(raise);
    std::jthread b(raise);
  }
  check(count.load() == 2, "both counted");
}

// Each seed has the measuring schedule, and another that may find the bug.
TEST(Pct, FindsABugOfDepthTwoWithTheGuaranteedProbability) {
  constexpr std::uint64_t seeds = 4'000;
  constexpr std::uint64_t threads = 3;
  std::uint64_t found = 0;
  std::uint64_t steps = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const options o{.search = search::pct,
                    .schedules = 2,
                    .seed = seed,
                    .depth = 2,
                    .memory = memory_order_model::strong,
                    .minimize_max = 0ms};
    const auto r = explore(o, &lost_update);
    found += r.failed() ? 1U : 0U;
    steps = std::max<std::uint64_t>(steps, r.steps_longest);
    EXPECT_NE(r.schedule, 1U) << "without a change of priorities there is no bug";
  }
  EXPECT_GE(found * threads * steps, seeds)
      << found << " of " << seeds << ", " << steps << " steps";
  EXPECT_LT(steps, 64U) << "a short program, in which points beyond its end would be lost";
}

// The thread that is preempted first resumes last: the order of preempted threads must be random.
void nested() {
  atomic<int> turn{0};
  const auto advance = [&](int from) {
    int expected = from;
    return turn.compare_exchange_strong(expected, from + 1);
  };
  std::jthread a([&] {
    if (advance(0)) check(!advance(4), "a around b around c");
  });
  std::jthread b([&] {
    if (advance(1)) (void)advance(3);
  });
  std::jthread c([&] { (void)advance(2); });
}

TEST(Pct, FindsABugOfDepthThreeInWhichTheFirstPreemptedThreadResumesLast) {
  const options o{.search = search::pct,
                  .schedules = 60'000,
                  .depth = 3,
                  .memory = memory_order_model::strong,
                  .minimize_max = 0ms};
  const auto r = explore(o, &nested);
  EXPECT_TRUE(r.failed());
  // Four threads; twenty times the required number of schedules makes a miss negligible.
  EXPECT_LT(20 * 4 * r.steps_longest * r.steps_longest, o.schedules) << r.steps_longest;
}

// Half of the schedules are decided by priorities alone, even if a load has several values.
TEST(Pct, InHalfOfTheSchedulesEveryLoadReturnsTheNewestValue) {
  int could = 0;
  int did = 0;
  const auto r = explore({.search = search::pct, .schedules = 2'000}, [&] {
    std::array<atomic<int>, 20> flags{};
    bool is_written = false;
    bool is_late = false;
    bool sees_old = false;
    {
      const std::jthread writer([&] {
        for (auto& one : flags) one.store(1, relaxed);
        is_written = true;
      });
      const std::jthread reader([&] {
        is_late = is_written;
        for (auto& one : flags) sees_old = one.load(relaxed) == 0 || sees_old;
      });
    }
    could += is_late ? 1 : 0;
    did += is_late && sees_old ? 1 : 0;
  });
  EXPECT_FALSE(r.failed()) << r.text();
  EXPECT_GT(could, 500);
  // In the others, one of twenty loads returns the older value with a probability of 0.82.
  EXPECT_GT(did, could / 3);
  EXPECT_LT(did, could / 2);
}

}  // namespace
}  // namespace sluice::sim::strategy_test
