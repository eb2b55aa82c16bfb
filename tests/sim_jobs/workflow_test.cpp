// Keys and batches under crashes: the guarantees of dependent jobs.

#include "tests/sim_jobs/workflow.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::sim_jobs::workflow_test {
namespace {

TEST(workflow_test, JobsThatWaitForOneAnotherKeepTheirOrderAndLoseNothing) {
  const auto seeds = sluice::testing::seeds(sluice::testing::test_name(), {.ci = 40, .full = 400});
  workflow all;
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + i;
    const workflow one = run(workflow_plan{.seed = seed});
    EXPECT_TRUE(one.ok()) << "SLUICE_SEED=" << seed << "\n" << one.broken;
    all.add(one);
  }
  std::printf("[          ] %s\n", all.to_string().c_str());
  if (seeds.count == 1) return;  // one history need not show everything
  EXPECT_GT(all.lives.lives, 2 * seeds.count);
  EXPECT_GT(all.keyed_done, 25 * seeds.count);
  EXPECT_GT(all.callbacks, 10 * seeds.count);
  EXPECT_GT(2 * all.again, 5 * seeds.count);
}

TEST(workflow_test, TheSameSeedGivesTheSameHistory) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const workflow once = run(workflow_plan{.seed = seed});
    const workflow again = run(workflow_plan{.seed = seed});
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps);
  }
}

TEST(workflow_test, ADiskThatEatsJobsIsFound) {
  workflow all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    all.add(run(workflow_plan{.seed = seed, .crimes = {.eats = 1}}));
  }
  EXPECT_FALSE(all.ok());
}

}  // namespace
}  // namespace sluice::sim_jobs::workflow_test
