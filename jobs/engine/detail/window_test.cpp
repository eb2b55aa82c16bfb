#include "jobs/engine/detail/window.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::detail::window_test {
namespace {

constexpr window::bounds roomy{.jobs = 100, .bytes = 1 << 20};

job_ptr a_job(std::uint64_t turn, std::int64_t priority = 0) {
  auto j = std::make_shared<job>();
  j->id = turn;
  j->turn = turn;
  j->spec.kind = "k";
  j->spec.priority = priority;
  return j;
}

const std::uint64_t one = memory_of(*a_job(1));

std::vector<std::uint64_t> take_all(window& w) {
  std::vector<std::uint64_t> turns;
  while (!w.empty()) turns.push_back(w.take_front()->turn);
  return turns;
}

using turns = std::vector<std::uint64_t>;

TEST(Window, ReturnsJobsByPriorityThenBySequenceNumber) {
  window w;
  w.publish(a_job(1), roomy);
  w.publish(a_job(3, 5), roomy);
  w.publish(a_job(2, 5), roomy);
  w.publish(a_job(4, -1), roomy);
  EXPECT_EQ(w.size(), 4U);
  EXPECT_EQ(w.bytes(), 4 * one);
  EXPECT_EQ(take_all(w), (turns{2, 3, 1, 4}));
  EXPECT_EQ(w.bytes(), 0U);
  EXPECT_FALSE(w.is_cut());
}

TEST(Window, CountsJobsBeforeAPositionIfAllAreInMemory) {
  window w;
  for (std::uint64_t t = 1; t <= 3; ++t) w.publish(a_job(t, 5), {.jobs = 4, .bytes = 1 << 20});
  EXPECT_EQ(w.count_before({5, 0}), 0U);
  EXPECT_EQ(w.count_before({4, 0}), 3U);
  w.publish(a_job(4, -5), {.jobs = 4, .bytes = 1 << 20});
  w.publish(a_job(5, -5), {.jobs = 4, .bytes = 1 << 20});
  ASSERT_TRUE(w.is_cut());
  EXPECT_EQ(w.count_before({4, 0}), 3U);
  EXPECT_EQ(w.count_before({-6, 0}), std::nullopt) << "the store has another job";
}

TEST(Window, EvictsTheLastJobAboveTheJobLimit) {
  window w;
  for (std::uint64_t t = 1; t <= 4; ++t) w.publish(a_job(t), {.jobs = 3, .bytes = 1 << 20});
  EXPECT_TRUE(w.is_cut());
  EXPECT_EQ(w.horizon(), (position{0, 3}));
  EXPECT_EQ(take_all(w), (turns{1, 2, 3}));
}

TEST(Window, EvictsTheLastJobAboveTheByteLimitButKeepsOne) {
  window w;
  w.publish(a_job(1), {.jobs = 100, .bytes = one * 2});
  w.publish(a_job(2), {.jobs = 100, .bytes = one * 2});
  w.publish(a_job(3), {.jobs = 100, .bytes = one * 2});
  EXPECT_EQ(w.size(), 2U);
  w.publish(a_job(4, 9), {.jobs = 100, .bytes = 1});
  EXPECT_EQ(take_all(w), turns{4});
}

TEST(Window, JobsBeyondTheHorizonStayInTheStore) {
  window w;
  for (std::uint64_t t = 2; t <= 4; ++t) w.publish(a_job(t), {.jobs = 2, .bytes = 1 << 20});
  w.publish(a_job(9), roomy);
  EXPECT_EQ(w.size(), 2U);
  w.publish(a_job(1), roomy);
  w.publish(a_job(7, 1), roomy);
  EXPECT_EQ(take_all(w), (turns{7, 1, 2, 3}));
}

TEST(Window, ContinuesWithTheStoresJobsAfterTheHorizon) {
  window w;
  w.extend({}, position{}, false);
  EXPECT_TRUE(w.is_cut());
  w.extend({a_job(1), a_job(2)}, position{0, 2}, false);
  EXPECT_EQ(w.horizon(), (position{0, 2}));
  w.extend({a_job(4)}, position{0, 4}, true);
  EXPECT_FALSE(w.is_cut());
  w.publish(a_job(5), roomy);
  EXPECT_EQ(take_all(w), (turns{1, 2, 4, 5}));
}

TEST(Window, TheHorizonAdvancesEvenIfAllJobsReadAreLeased) {
  window w;
  w.extend({}, position{}, false);
  w.extend({}, position{0, 7}, false);
  EXPECT_EQ(w.horizon(), (position{0, 7}));
  w.publish(a_job(8), roomy);
  EXPECT_TRUE(w.empty());
  w.publish(a_job(3), roomy);
  EXPECT_EQ(w.size(), 1U);
}

TEST(Window, ErasesByPosition) {
  window w;
  w.publish(a_job(1), roomy);
  w.publish(a_job(2), roomy);
  EXPECT_TRUE(w.erase({0, 1}));
  EXPECT_FALSE(w.erase({0, 1}));
  EXPECT_FALSE(w.erase({1, 2}));
  EXPECT_EQ(w.bytes(), one);
  EXPECT_EQ(take_all(w), turns{2});
}

TEST(Window, DropsJobsFromAPositionOn) {
  window w;
  for (std::uint64_t t = 1; t <= 5; ++t) w.publish(a_job(t), roomy);
  w.erase({0, 3});
  w.drop_from({0, 3});
  EXPECT_TRUE(w.is_cut());
  EXPECT_TRUE(w.horizon() < (position{0, 3}));
  EXPECT_FALSE(w.horizon() < (position{0, 2}));
  w.drop_from({0, 9});
  EXPECT_TRUE(w.horizon() < (position{0, 3})) << "jobs beyond the horizon are not in memory";
  EXPECT_EQ(w.bytes(), 2 * one);
  EXPECT_EQ(take_all(w), (turns{1, 2}));
}

TEST(Window, ContainsEachJobOnce) {
  window w;
  w.publish(a_job(1), roomy);
  EXPECT_DEATH(w.publish(a_job(1), roomy), "each job once");
  EXPECT_DEATH(w.extend({a_job(1)}, position{0, 1}, true), "each job once");
  window empty;
  EXPECT_DEATH(empty.take_front(), "a job to take");
}

}  // namespace
}  // namespace sluice::jobs::detail::window_test
