#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <set>
#include <thread>

namespace random_test {
namespace {

using sluice::random;
using sluice::thread_random;

static_assert(sizeof(random) == 16);

TEST(Random, TheSameSeedGivesTheSameNumbersEverywhere) {
  // Computed by a separate implementation of splitmix64 and xoroshiro128++.
  random zero(0);
  EXPECT_EQ(zero.next(), 0x6f68e1e7e2646ee1U);
  EXPECT_EQ(zero.next(), 0xbf971b7f454094adU);
  EXPECT_EQ(zero.next(), 0x48f2de556f30de38U);
  EXPECT_EQ(zero.next(), 0x6ea7c59f89bbfc75U);
  random answer(42);
  EXPECT_EQ(answer.next(), 0xe88af6caef1d3c23U);
  EXPECT_EQ(answer.next(), 0x54a303b2a5a54931U);
  random dice(42);
  for (const std::uint32_t expected : {9U, 3U, 9U, 2U, 3U, 0U, 4U, 0U, 2U, 3U, 5U, 8U}) {
    EXPECT_EQ(dice.below(10), expected);
  }
}

TEST(Random, NeighbouringSeedsHaveNothingInCommon) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    random one(seed);
    for (int n = 0; n < 100; ++n) seen.insert(one.next());
  }
  EXPECT_EQ(seen.size(), 10'000U);
}

TEST(Random, BelowStaysBelowItsBound) {
  random one(7);
  for (const std::uint32_t bound : {1U, 2U, 3U, 10U, 1000U, 0x8000'0000U, 0xffff'ffffU}) {
    for (int n = 0; n < 10'000; ++n) ASSERT_LT(one.below(bound), bound);
  }
  EXPECT_EQ(one.below(0), 0U);
  EXPECT_EQ(one.below(1), 0U);
}

TEST(Random, BelowIsEven) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 11);
  constexpr int draws = 600'000;
  random one(seed);
  std::array<int, 6> faces{};
  for (int n = 0; n < draws; ++n) ++faces[one.below(6)];
  // Expected value 100,000, standard deviation 289: allows six deviations.
  for (const int count : faces) EXPECT_NEAR(count, draws / 6, 1734);
  std::printf("%d draws, seed %llu\n", draws, static_cast<unsigned long long>(seed));
}

TEST(Random, EveryThreadHasItsOwn) {
  EXPECT_EQ(&thread_random(), &thread_random());
  const random* other = nullptr;
  std::uint64_t theirs = 0;
  std::jthread([&] {
    other = &thread_random();
    theirs = thread_random().next();
  }).join();
  EXPECT_NE(other, &thread_random());
  EXPECT_NE(theirs, thread_random().next());
}

}  // namespace
}  // namespace random_test
