#include "jobs/protocol/faktory/detail/workers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

namespace sluice::jobs::faktory::workers_test {
namespace {

class FaktoryWorkers : public ::testing::Test {
 protected:
  workers::connection named(const std::string& wid) {
    const workers::connection c = all.enter();
    hello_call call;
    call.wid = wid;
    all.introduce(c, call, {1000});
    return c;
  }
  void take(workers::connection who, job_id id, std::uint64_t key) {
    all.add_job(who, "jid-" + std::to_string(id), {.lease = {id, key}});
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
  EXPECT_EQ(all.remove_job(named("x"), "jid-7"), std::nullopt);
}

TEST_F(FaktoryWorkers, AWorkerThatLeavesKeepsTheJobsOfAnother) {
  const auto first = named("a");
  const auto second = named("b");
  take(first, 7, 100);
  take(second, 7, 200);
  EXPECT_TRUE(leave(first).empty());
  ASSERT_TRUE(all.find(second, "jid-7"));
  EXPECT_EQ(all.find(second, "jid-7")->lease, (lease_ref{7, 200}));
  EXPECT_EQ(leave(second), (std::vector<lease_ref>{{7, 200}}));
}

TEST_F(FaktoryWorkers, AJobOfAnotherWorkerIsNotFound) {
  const auto first = named("a");
  const auto second = named("b");
  const auto nameless = named("");
  take(first, 7, 100);
  for (const auto other : {second, nameless}) {
    EXPECT_FALSE(all.find(other, "jid-7"));
    EXPECT_FALSE(all.remove_job(other, "jid-7"));
  }
  EXPECT_TRUE(all.remove_job(named("a"), "jid-7")) << "by another of its own connections";
}

TEST_F(FaktoryWorkers, WorkersWithoutAWidMayAckEachOthersJobs) {
  const auto one = named("");
  const auto other = named("");
  take(one, 7, 100);
  take(one, 8, 101);
  EXPECT_FALSE(all.remove_job(named("a"), "jid-7"));
  ASSERT_TRUE(all.remove_job(other, "jid-7"));
  EXPECT_FALSE(all.remove_job(one, "jid-7"));
  EXPECT_EQ(leave(one), (std::vector<lease_ref>{{8, 101}}));
  EXPECT_FALSE(all.remove_job(other, "jid-8"));
}

TEST_F(FaktoryWorkers, OfJobsWithOneJidTheOldestIsRemovedFirst) {
  const auto one = named("w");
  for (const job_id id : {3U, 1U, 2U}) all.add_job(one, "same", {.lease = {id, id}});
  for (const job_id id : {1U, 2U, 3U}) EXPECT_EQ(all.remove_job(one, "same")->lease.job, id);
  EXPECT_FALSE(all.remove_job(one, "same"));
}

// Jids need not be unique, and look-ups hold a lock.
TEST_F(FaktoryWorkers, ManyJobsOfOneJidTakeNoLongerThanOthers) {
  constexpr job_id jobs = 20'000;
  const auto time_of = [&](const std::function<std::string(job_id)>& jid_of) {
    const auto began = std::chrono::steady_clock::now();
    const auto one = named("w");
    for (job_id id = 1; id <= jobs; ++id) all.add_job(one, jid_of(id), {.lease = {id, id}});
    for (job_id id = 1; id <= jobs; id += 2) all.remove_job({jid_of(id), {id, id}});
    EXPECT_EQ(all.leave(one).size(), jobs / 2);
    return std::chrono::steady_clock::now() - began;
  };
  // Other processes run on this machine, too: one fast attempt is enough.
  for (int tries_left = 5; tries_left > 0; --tries_left) {
    const auto usual = time_of([](job_id id) { return "jid-" + std::to_string(id); });
    if (time_of([](job_id) { return "the-same"; }) < 10 * usual) return;
  }
  FAIL() << "ten times as long";
}

TEST_F(FaktoryWorkers, ExpiredJobsAreDropped) {
  const auto one = named("w");
  for (job_id id = 1; id <= 10'000; ++id) {
    all.forget_ended(one, [&](job_id known) { return known + 10 >= id; });
    take(one, id, id);
  }
  EXPECT_LE(all.count().jobs, 1100U);
}

}  // namespace
}  // namespace sluice::jobs::faktory::workers_test
