// Tests that the seed determines a history, and that the ledger detects violations.

#include "tests/sim_jobs/history.hpp"

#include <gtest/gtest.h>

namespace sluice::sim_jobs::history_test {
namespace {

TEST(history_test, TheSameSeedGivesTheSameHistory) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const history once = run(history_plan{.seed = seed});
    const history again = run(history_plan{.seed = seed});
    EXPECT_TRUE(once.ok()) << once.to_string() << once.broken;
    EXPECT_GT(once.events, 50U);
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.events, again.events);
    EXPECT_EQ(once.steps, again.steps);
    EXPECT_EQ(once.to_string(), again.to_string());
  }
}

TEST(history_test, AnotherSeedGivesAnotherHistory) {
  EXPECT_NE(run(history_plan{.seed = 1}).hash, run(history_plan{.seed = 2}).hash);
}

TEST(history_test, AJobThatADiskEatsIsFoundToBeLost) {
  history all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    all.add(run(history_plan{.seed = seed, .eats = 1}));
  EXPECT_GT(all.found.lost, 0U);
  EXPECT_EQ(all.found.revived, 0U);
}

TEST(history_test, AJobThatComesBackAfterItsEndIsFound) {
  history all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    all.add(run(history_plan{.seed = seed, .revives = 1}));
  EXPECT_GT(all.found.revived, 0U);
  EXPECT_EQ(all.found.lost, 0U);
}

}  // namespace
}  // namespace sluice::sim_jobs::history_test
