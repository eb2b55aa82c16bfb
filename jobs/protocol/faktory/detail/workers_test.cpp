#include "jobs/protocol/faktory/detail/workers.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::faktory {
namespace {

class FaktoryWorkers : public ::testing::Test {
 protected:
  workers::connection named(const std::string& wid) {
    const workers::connection c = all.enter();
    hello_call said;
    said.wid = wid;
    all.introduce(c, said, {1000});
    return c;
  }
  void take(workers::connection who, job_id id, std::uint64_t key) {
    all.took(who, "jid-" + std::to_string(id), {.lease = {id, key}});
  }

  std::vector<lease_ref> leave(workers::connection who) {
    std::vector<lease_ref> leases;
    for (const held_job& job : all.leave(who)) leases.push_back(job.lease);
    return leases;
  }

  workers all;
};

TEST_F(FaktoryWorkers, AJobThatIsFetchedAgainIsHeldOnce) {
  const auto one = named("w");
  const auto other = named("w");
  take(one, 7, 100);
  take(other, 7, 200);  // the first lease has run out
  EXPECT_EQ(all.count().jobs, 1U);
  EXPECT_TRUE(leave(one).empty());
  EXPECT_EQ(leave(other), (std::vector<lease_ref>{{7, 200}}));
  EXPECT_EQ(all.put_down(named("x"), "jid-7"), std::nullopt);
}

TEST_F(FaktoryWorkers, OneThatGoesLeavesAloneWhatAnotherHasByNow) {
  const auto first = named("a");
  const auto second = named("b");
  take(first, 7, 100);
  take(second, 7, 200);
  EXPECT_TRUE(leave(first).empty());
  ASSERT_TRUE(all.find(second, "jid-7"));
  EXPECT_EQ(all.find(second, "jid-7")->lease, (lease_ref{7, 200}));
  EXPECT_EQ(leave(second), (std::vector<lease_ref>{{7, 200}}));
}

TEST_F(FaktoryWorkers, OfManyThatRanOutFewAreKept) {
  const auto one = named("w");
  for (job_id id = 1; id <= 10'000; ++id) {
    all.forget_ended(one, [&](job_id known) { return known + 10 >= id; });
    take(one, id, id);
  }
  EXPECT_LE(all.count().jobs, 1100U);
}

}  // namespace
}  // namespace sluice::jobs::faktory
