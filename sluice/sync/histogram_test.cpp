#include "sluice/sync/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "sluice/sync/testing/stress.hpp"

namespace sluice::histogram_test {
namespace {

using namespace std::chrono_literals;

TEST(histogram, IsAllZeroWhenEmpty) {
  const histogram h;
  const auto now = h.read();
  EXPECT_EQ(now.count(), 0U);
  EXPECT_EQ(now.quantile(0.5), 0U);
  EXPECT_EQ(now.smallest(), 0U);
  EXPECT_EQ(now.largest(), 0U);
  EXPECT_EQ(now.mean(), 0.0);
}

TEST(histogram, IsExactForSmallValues) {
  histogram h;
  for (std::uint64_t v = 0; v < 16; ++v) h.record(v);
  const auto now = h.read();
  for (std::uint64_t v = 0; v < 16; ++v) {
    EXPECT_EQ(now.quantile(static_cast<double>(v + 1) / 16), v);
  }
  EXPECT_EQ(now.mean(), 7.5);
}

TEST(histogram, HoldsTheSmallestAndTheLargestNumberThereIs) {
  histogram h;
  h.record(std::numeric_limits<std::uint64_t>::max());
  h.record(std::uint64_t{0});
  const auto now = h.read();
  EXPECT_EQ(now.smallest(), 0U);
  EXPECT_EQ(now.largest(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(now.quantile(0), 0U);
  EXPECT_EQ(now.quantile(1), std::numeric_limits<std::uint64_t>::max());
}

TEST(histogram, TakesTimesAsNanosecondsAndNegativeOnesAsNone) {
  histogram h;
  h.record(3us);
  h.record(-5ms);
  const auto now = h.read();
  EXPECT_EQ(now.largest(), 3000U);
  EXPECT_EQ(now.smallest(), 0U);
  EXPECT_EQ(now.sum(), 3000U);
}

TEST(histogram, AOneValueQuantileIsThatValue) {
  histogram h;
  h.record(std::uint64_t{123'456'789});
  for (const double q : {0.0, 0.5, 0.99, 1.0}) EXPECT_EQ(h.read().quantile(q), 123'456'789U);
}

// Against a sorted vector, over values of every size.
TEST(histogram, AQuantileIsNeverBelowTheTrueOneAndAtMostASixteenthAbove) {
  testing::stress run;
  auto choose = run.generator(1);
  histogram h;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    const auto value = choose.next() >> choose.below(64);
    h.record(value);
    all.push_back(value);
    run.did();
  }
  std::sort(all.begin(), all.end());
  const auto now = h.read();
  ASSERT_EQ(now.count(), all.size());
  for (double q = 0; q <= 1.0; q += 0.001) {
    const auto place = std::max(1.0, std::ceil(q * static_cast<double>(all.size())));
    const auto truth = all[static_cast<std::size_t>(place) - 1];
    const auto estimate = now.quantile(q);
    ASSERT_GE(estimate, truth) << q;
    ASSERT_LE(estimate - truth, truth / 16) << q;
  }
}

TEST(histogram, LosesNoRecordOfManyThreads) {
  histogram h;
  constexpr std::uint64_t each = 20'000;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 1; t <= 4; ++t) {
      threads.emplace_back([&h, t] {
        for (std::uint64_t i = 0; i < each; ++i) h.record(t * 1000);
      });
    }
  }
  const auto now = h.read();
  EXPECT_EQ(now.count(), 4 * each);
  EXPECT_EQ(now.sum(), each * 10'000);
  EXPECT_EQ(now.smallest(), 1000U);
  EXPECT_EQ(now.largest(), 4000U);
}

TEST(histogram_DeathTest, AQuantileOutsideOfZeroToOneIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const histogram h;
  EXPECT_DEATH((void)h.read().quantile(1.5), "sluice::histogram.*a quantile from 0 to 1");
  EXPECT_DEATH((void)h.read().quantile(std::nan("")), "a quantile from 0 to 1");
}

}  // namespace
}  // namespace sluice::histogram_test
