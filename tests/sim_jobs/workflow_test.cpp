// Keys and batches under crashes: the promises about jobs that wait for one another.

#include "tests/sim_jobs/workflow.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace sluice::sim_jobs::workflow_test {
namespace {

TEST(workflow_test, JobsThatWaitForOneAnotherKeepTheirOrderAndLoseNothing) {
  workflow all;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const workflow one = run(workflow_plan{.seed = seed});
    EXPECT_TRUE(one.ok()) << "seed " << seed << "\n" << one.broken;
    all.add(one);
  }
  std::printf("[          ] %s\n", all.to_string().c_str());
  EXPECT_GT(all.lives.lives, 200U);
  EXPECT_GT(all.keyed_done, 2500U);
  EXPECT_GT(all.callbacks, 1000U);
  EXPECT_GT(all.again, 250U);
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
