#include "sluice/sync/counter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <limits>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace counter_test {
namespace {

using sluice::counter;

TEST(Counter, StartsAtZeroAndAddsWithSign) {
  counter c;
  EXPECT_EQ(c.sum(), 0);
  c.increment();
  c.add(41);
  EXPECT_EQ(c.sum(), 42);
  c.add(-50);
  EXPECT_EQ(c.sum(), -8);
  c.add(0);
  EXPECT_EQ(c.sum(), -8);
}

TEST(Counter, ShardsAreABoundedPowerOfTwoThatCoversTheHardware) {
  const counter c;
  EXPECT_TRUE(std::has_single_bit(c.shards()));
  EXPECT_LE(c.shards(), counter::shards_max);
  const std::size_t threads = std::thread::hardware_concurrency();
  EXPECT_GE(c.shards(), std::min(threads, counter::shards_max));
}

TEST(Counter, WrapsAroundPastTheLargestValue) {
  counter c;
  c.add(std::numeric_limits<counter::value_type>::max());
  c.add(1);
  EXPECT_EQ(c.sum(), std::numeric_limits<counter::value_type>::min());
  counter::local part(c);
  part.add(std::numeric_limits<counter::value_type>::max());
  part.increment();
  part.flush();
  EXPECT_EQ(c.sum(), 0);
}

TEST(Counter, LocalCountsAsideAndMergesAtItsEnd) {
  counter c;
  {
    counter::local part(c);
    part.increment();
    part.add(9);
    EXPECT_EQ(part.pending(), 10);
    EXPECT_EQ(c.sum(), 0);
  }
  EXPECT_EQ(c.sum(), 10);
}

TEST(Counter, LocalCountsAfterAFlush) {
  counter c;
  counter::local part(c);
  part.add(5);
  part.flush();
  EXPECT_EQ(c.sum(), 5);
  EXPECT_EQ(part.pending(), 0);
  part.flush();
  EXPECT_EQ(c.sum(), 5);
  part.add(-2);
  part.flush();
  EXPECT_EQ(c.sum(), 3);
}

TEST(CounterStress, NoAddIsLostWhenMoreThreadsThanShardsCount) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 20240611);
  constexpr int threads = 8;
  constexpr int adds = 100'000;
  counter c;
  std::atomic<std::int64_t> expected{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        sluice::random random(seed + static_cast<std::uint64_t>(i));
        std::int64_t own_sum = 0;
        counter::local aside(c);
        for (int n = 0; n < adds; ++n) {
          const auto amount = static_cast<std::int64_t>(random.below(2001)) - 1000;
          own_sum += amount;
          if (n % 2 == 0) {
            c.add(amount);
          } else {
            aside.add(amount);
          }
          if (random.below(1000) == 0) aside.flush();
        }
        expected += own_sum;
      });
    }
  }
  EXPECT_EQ(c.sum(), expected.load());
  std::printf("%d adds by %d threads, seed %llu\n", threads * adds, threads,
              static_cast<unsigned long long>(seed));
}

TEST(CounterStress, SumIsBetweenTheTotalsAtItsStartAndAtItsEnd) {
  constexpr int threads = 3;
  constexpr int adds = 100'000;
  counter c;
  std::atomic<std::int64_t> begun{0};  // raised before an add
  std::atomic<std::int64_t> done{0};   // raised after it
  std::int64_t reads = 0;
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&] {
        for (int n = 0; n < adds; ++n) {
          ++begun;
          c.increment();
          ++done;
        }
      });
    }
    std::int64_t last = 0;
    while (last < std::int64_t{threads} * adds) {
      const auto least = done.load();
      const auto sum = c.sum();
      const auto most = begun.load();
      ASSERT_GE(sum, least);
      ASSERT_LE(sum, most);
      ASSERT_GE(sum, last) << "a count that only grows was seen to shrink";
      last = sum;
      ++reads;
    }
  }
  EXPECT_EQ(c.sum(), std::int64_t{threads} * adds);
  std::printf("%d adds, %lld sums read meanwhile, no seed: nothing random\n", threads * adds,
              static_cast<long long>(reads));
}

}  // namespace
}  // namespace counter_test
