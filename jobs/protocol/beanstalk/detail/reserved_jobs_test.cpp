#include "jobs/protocol/beanstalk/detail/reserved_jobs.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sluice/base/random.hpp"

namespace sluice::jobs::beanstalk::reserved_jobs_test {
namespace {

reserved_job made(job_id id, std::int64_t until = 1000) {
  return {{id, id + 7}, {until}, nullptr};
}

TEST(reserved_jobs_test, AJobIsFoundUntilItIsErased) {
  reserved_jobs all;
  EXPECT_EQ(all.find(1), nullptr);
  EXPECT_TRUE(all.insert(made(1)));
  ASSERT_NE(all.find(1), nullptr);
  EXPECT_EQ(all.find(1)->lease.key, 8U);
  all.erase(all.find(1));
  EXPECT_EQ(all.find(1), nullptr);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.find(0), nullptr);
}

TEST(reserved_jobs_test, TheSameNumberTwiceIsOneJob) {
  reserved_jobs all;
  EXPECT_TRUE(all.insert(made(5, 1)));
  EXPECT_FALSE(all.insert(made(5, 2)));
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.find(5)->until.ms, 2);
}

TEST(reserved_jobs_test, ForgettingReturnsTheEarliestEnd) {
  reserved_jobs all;
  for (job_id id = 1; id <= 100; ++id) {
    (void)all.insert(made(id, static_cast<std::int64_t>(id) * 10));
  }
  EXPECT_EQ(all.forget_ended({500}).ms, 510);
  EXPECT_EQ(all.size(), 50U);
  EXPECT_EQ(all.find(50), nullptr);
  EXPECT_NE(all.find(51), nullptr);
}

// Compares random operations with a std::map.
TEST(reserved_jobs_test, AgreesWithAMap) {
  sluice::random dice(11);
  reserved_jobs all;
  std::map<job_id, std::int64_t> model;
  for (int i = 0; i < 200'000; ++i) {
    const job_id id = 1 + dice.below(300);
    switch (dice.below(10)) {
      case 0: {
        const auto now = static_cast<std::int64_t>(dice.below(100));
        std::erase_if(model, [&](const auto& each) { return each.second <= now; });
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (const auto& each : model) first = std::min(first, each.second);
        ASSERT_EQ(all.forget_ended({now}).ms, first);
        break;
      }
      case 1:
      case 2:
      case 3:
      case 4: {
        reserved_job* const found = all.find(id);
        ASSERT_EQ(found != nullptr, model.erase(id) == 1);
        if (found != nullptr) all.erase(found);
        break;
      }
      default: {
        const auto until = static_cast<std::int64_t>(dice.below(1000));
        ASSERT_EQ(all.insert(made(id, until)), !model.contains(id));
        model[id] = until;
      }
    }
    ASSERT_EQ(all.size(), model.size());
  }
  for (const auto& [id, until] : model) {
    ASSERT_NE(all.find(id), nullptr);
    EXPECT_EQ(all.find(id)->until.ms, until);
  }
  EXPECT_EQ(all.take_all().size(), model.size());
  EXPECT_TRUE(all.empty());
  EXPECT_TRUE(all.insert(made(3)));
}

}  // namespace
}  // namespace sluice::jobs::beanstalk::reserved_jobs_test
