// Simulates a day of a job server in seconds. Also tests that a late event would be detected.

#include "tests/sim_jobs/day.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace sluice::sim_jobs::day_test {
namespace {

TEST(day_test, NothingIsLostAndEverythingHappensWhenItIsDue) {
  const day result = run(day_plan{});
  std::printf("[          ] %s\n", result.to_string().c_str());
  EXPECT_TRUE(result.ok()) << result.broken;
  EXPECT_GE(result.simulated_ms, 24U * 3600U * 1000U);
  EXPECT_EQ(result.found.crashes, 25U);  // one in each hour, and one when the day ends
  EXPECT_EQ(result.crons, 288U + 24U);
  EXPECT_GE(result.cron_runs + 2, result.crons);
  EXPECT_GT(result.found.acknowledged, 4000U);
  EXPECT_GT(result.later, 1000U);
  EXPECT_GT(result.retries, 1000U);
  EXPECT_GT(result.expiries, 300U);
  EXPECT_GT(result.restarts, 0U);
  EXPECT_GT(result.kept, 1000U);
  EXPECT_GT(result.forgotten, 1000U);
}

TEST(day_test, TheSameSeedGivesTheSameDay) {
  const day once = run(day_plan{.seed = 2, .length = std::chrono::hours(3)});
  const day again = run(day_plan{.seed = 2, .length = std::chrono::hours(3)});
  EXPECT_TRUE(once.ok()) << once.broken;
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.to_string(), again.to_string());
  EXPECT_NE(once.hash, run(day_plan{.seed = 3, .length = std::chrono::hours(3)}).hash);
}

TEST(day_test, EventsThatAreTooLateOrTooEarlyAreDetected) {
  const std::chrono::hours hour(1);
  const day early = run(day_plan{.length = hour, .off_by = 2 * tick});
  EXPECT_GT(early.early, 0U);
  EXPECT_GT(early.crons_off_time, 0U);
  EXPECT_FALSE(early.ok());
  const day late = run(day_plan{.length = hour, .off_by = -2 * tick});
  EXPECT_GT(late.late, 0U);
  EXPECT_GT(late.crons_off_time, 0U);
  EXPECT_FALSE(late.ok());
}

}  // namespace
}  // namespace sluice::sim_jobs::day_test
