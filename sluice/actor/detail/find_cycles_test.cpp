#include "sluice/actor/detail/find_cycles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace sluice::detail::find_cycles_test {
namespace {

using arrows = std::vector<wait_arrow>;
using cycles = std::vector<std::vector<std::size_t>>;

TEST(find_cycles_test, AChainHasNone) {
  EXPECT_EQ(find_cycles({}), cycles{});
  EXPECT_EQ(find_cycles({{1, 2}, {2, 3}, {4, 3}}), cycles{});
}

TEST(find_cycles_test, ASelfLoopIsACycle) {
  EXPECT_EQ(find_cycles({{7, 7}}), (cycles{{0}}));
}

TEST(find_cycles_test, BeginsAtTheSmallestNumber) {
  EXPECT_EQ(find_cycles({{3, 1}, {1, 2}, {2, 3}}), (cycles{{1, 2, 0}}));
}

TEST(find_cycles_test, LeavesOutNodesThatOnlyLeadToACycle) {
  EXPECT_EQ(find_cycles({{1, 5}, {5, 6}, {6, 5}, {2, 1}}), (cycles{{1, 2}}));
}

TEST(find_cycles_test, FindsEveryCycle) {
  EXPECT_EQ(find_cycles({{1, 2}, {2, 1}, {3, 4}, {4, 3}, {9, 9}}), (cycles{{0, 1}, {2, 3}, {4}}));
}

TEST(find_cycles_test, PrefersTheShortest) {
  // Node 1 is in a cycle with 3 and in a longer one with 2 and 4.
  EXPECT_EQ(find_cycles({{1, 2}, {1, 3}, {2, 4}, {3, 1}, {4, 1}}), (cycles{{1, 3}, {0, 2, 4}}));
}

// Returns whether there is a path, by brute force.
bool leads_to(const arrows& all, std::uint64_t from, std::uint64_t target) {
  std::set<std::uint64_t> reached{from};
  for (bool grows = true; grows;) {
    grows = false;
    for (const wait_arrow& a : all) {
      if (!reached.contains(a.from)) continue;
      if (a.target == target) return true;
      grows = reached.insert(a.target).second || grows;
    }
  }
  return false;
}

TEST(find_cycles_test, AgreesWithBruteForce) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint64_t nodes = 2 + random() % 8;
    arrows all;
    for (std::size_t i = random() % 14; i > 0; --i) {
      all.push_back({1 + random() % nodes, 1 + random() % nodes});
    }
    const cycles found = find_cycles(all);
    std::set<std::uint64_t> covered;
    for (const auto& cycle : found) {
      for (std::size_t i = 0; i < cycle.size(); ++i) {
        EXPECT_EQ(all[cycle[i]].target, all[cycle[(i + 1) % cycle.size()]].from);
        EXPECT_GE(all[cycle[i]].from, all[cycle[0]].from);
        covered.insert(all[cycle[i]].from);
      }
    }
    for (std::uint64_t n = 1; n <= nodes; ++n) {
      EXPECT_EQ(covered.contains(n), leads_to(all, n, n)) << n;
    }
  }
}

}  // namespace
}  // namespace sluice::detail::find_cycles_test
