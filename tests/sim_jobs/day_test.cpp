// A day of a job server in seconds, and that what comes late on it is found.

#include "tests/sim_jobs/day.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace sluice::sim_jobs::day_test {
namespace {

TEST(day_test, NothingIsLostAndEverythingHappensWhenItIsDue) {
  const day it = run(day_plan{});
  std::printf("[          ] %s\n", it.to_string().c_str());
  EXPECT_TRUE(it.ok()) << it.broken;
  EXPECT_GE(it.simulated_ms, 24U * 3600U * 1000U);
  EXPECT_EQ(it.found.crashes, 25U);  // one in each hour, and one when the day ends
  EXPECT_EQ(it.crons, 288U + 24U);
  EXPECT_GE(it.cron_runs + 2, it.crons);
  EXPECT_GT(it.found.acknowledged, 4000U);
  EXPECT_GT(it.later, 1000U);
  EXPECT_GT(it.retries, 1000U);
  EXPECT_GT(it.expiries, 300U);
  EXPECT_GT(it.restarts, 0U);
  EXPECT_GT(it.kept, 1000U);
  EXPECT_GT(it.forgotten, 1000U);
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

TEST(day_test, WhatHappensTooLateOrTooEarlyIsFound) {
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
