#include "sluice/sync/backoff.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace sluice::testing::backoff_test {
namespace {

constexpr backoff::options options{.least_pauses = 16, .most_pauses = 100, .yields = 4};

std::vector<std::uint32_t> waits(backoff& b, int count) {
  std::vector<std::uint32_t> result;
  for (int i = 0; i < count; ++i) result.push_back(b.next_pauses());
  return result;
}

TEST(backoff_test, TheBoundDoublesUpToTheLargest) {
  const std::vector<std::uint32_t> bounds{16, 32, 64, 100, 100, 100};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    backoff b(options, seed);
    for (const auto bound : bounds) {
      const auto wait = b.next_pauses();
      EXPECT_LE(wait, bound);
      EXPECT_GE(wait, bound / 2);
    }
  }
}

TEST(backoff_test, TheSameSeedGivesTheSameWaits) {
  backoff a(options, 7);
  backoff b(options, 7);
  EXPECT_EQ(waits(a, 50), waits(b, 50));
}

TEST(backoff_test, TwoSeedsGiveDifferentWaits) {
  backoff a(options);
  backoff b(options);  // seeded by the thread's generator, which moves on
  EXPECT_NE(waits(a, 50), waits(b, 50));
}

TEST(backoff_test, EveryWaitOfTheRangeIsChosen) {
  backoff b({.least_pauses = 8, .most_pauses = 8, .yields = 4}, 3);
  std::vector<int> seen(9);
  for (const auto wait : waits(b, 1000)) ++seen.at(wait);
  for (std::size_t wait = 0; wait < seen.size(); ++wait) {
    EXPECT_EQ(seen[wait] > 0, wait >= 4) << wait;
  }
}

TEST(backoff_test, ResetStartsAgainFromTheLeast) {
  backoff b(options, 1);
  waits(b, 20);
  b.reset();
  EXPECT_LE(b.next_pauses(), options.least_pauses);
}

TEST(backoff_test, ALongSpinNaps) {
  backoff b({.least_pauses = 1, .most_pauses = 1, .yields = 1}, 1);
  for (int i = 0; i < 3; ++i) b.pause();  // the longest pauses and yields are used up
  const auto before = std::chrono::steady_clock::now();
  b.pause();
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::microseconds(50));
}

TEST(backoff_DeathTest, InvalidBoundsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(backoff({.least_pauses = 0}), "sluice::backoff.*least_pauses <= most_pauses");
  EXPECT_DEATH(backoff({.least_pauses = 10, .most_pauses = 9}), "least_pauses <= most_pauses");
}

}  // namespace
}  // namespace sluice::testing::backoff_test
