// A backlog far longer than its window in memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::testing::engine_backlog_test {
namespace {

class EngineBacklog : public engine_words {
 protected:
  EngineBacklog() { options.window_jobs_max = 4; }

  // Random priorities; returns the ids in the order of their leases.
  ids push_mixed(std::size_t count) {
    random dice(7);
    std::vector<std::pair<std::int64_t, job_id>> all;
    for (std::size_t i = 0; i < count; ++i) {
      const auto priority = static_cast<std::int64_t>(dice.below(3));
      all.emplace_back(-priority, push({.priority = priority}));
    }
    std::ranges::sort(all);
    ids order;
    for (const auto& [priority, id] : all) order.push_back(id);
    return order;
  }
};

TEST_F(EngineBacklog, IsLeasedCompletelyAndInOrder) {
  const ids order = push_mixed(200);
  EXPECT_LE(e().stats().window_jobs, 4U);
  EXPECT_EQ(drain(), order);
}

TEST_F(EngineBacklog, IsLeasedCompletelyByLargeLeases) {
  const ids order = push_mixed(200);
  EXPECT_EQ(drain("default", 3), order);
}

TEST_F(EngineBacklog, IsLeasedCompletelyThroughAWindowOfOneJob) {
  options.window_jobs_max = 1;
  const ids order = push_mixed(50);
  EXPECT_EQ(drain(), order);
}

TEST_F(EngineBacklog, IsLeasedCompletelyThroughAWindowOfFewBytes) {
  options.window_jobs_max = 4096;
  options.window_bytes_max = 2000;
  const ids order = push_mixed(100);
  EXPECT_LE(e().stats().window_bytes, 2000U);
  EXPECT_EQ(drain(), order);
}

TEST_F(EngineBacklog, IsLeasedCompletelyAfterReopening) {
  const ids order = push_mixed(100);
  reopen();
  EXPECT_EQ(drain(), order);
}

TEST_F(EngineBacklog, EachQueueIsServedWhileMemoryIsShort) {
  options.window_bytes_max = 3000;
  for (int i = 0; i < 30; ++i) {
    for (const char* const q : {"a", "b", "c"}) push({.queue = q});
  }
  EXPECT_LE(e().stats().window_bytes, 6000U);
  for (const char* const q : {"b", "c", "a"}) EXPECT_EQ(drain(q).size(), 30U);
}

TEST_F(EngineBacklog, AMoreUrgentJobOvertakesTheWindowAndNothingIsLost) {
  const ids first = push_some(20);
  const job_id urgent = push({.priority = 1});
  ids expected{urgent};
  expected.insert(expected.end(), first.begin(), first.end());
  EXPECT_EQ(drain(), expected);
}

TEST_F(EngineBacklog, AReleasedJobKeepsItsPosition) {
  const ids all = push_some(20);
  const auto leased = lease(4);
  ASSERT_EQ(ids_of(leased), (ids{all[0], all[1], all[2], all[3]}));
  const auto more = lease(3);
  ASSERT_EQ(more[0].job->id, all[4]);
  for (const std::size_t i : {2U, 0U, 3U, 1U}) EXPECT_TRUE(e().release(leased[i].ref()).get());
  for (const leased_job& l : more) EXPECT_TRUE(e().release(l.ref()).get());
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineBacklog, LeasedJobsAreSkippedWhenAWindowIsRead) {
  const ids all = push_some(40);
  std::vector<leased_job> out;
  while (out.size() < 30) out.push_back(take());
  EXPECT_EQ(out.back().job->id, all[29]);
  for (const leased_job& l : out) EXPECT_TRUE(e().release(l.ref()).get());
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineBacklog, JobsInMemoryAndOnDiskAreCancelledAndRemoved) {
  const ids all = push_some(20);
  for (const std::size_t i : {0U, 2U, 5U, 19U}) ASSERT_TRUE(e().cancel(all[i]).get());
  for (const std::size_t i : {1U, 6U, 18U}) ASSERT_TRUE(e().remove(all[i]).get());
  ids left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != 0 && i != 1 && i != 2 && i != 5 && i != 6 && i != 18 && i != 19) {
      left.push_back(all[i]);
    }
  }
  EXPECT_EQ(drain(), left);
}

TEST_F(EngineBacklog, RetriedJobsArriveBehindReadyJobs) {
  const ids all = push_some(10);
  EXPECT_TRUE(fail(take(), {.retry_in = 0ms}));
  settle();
  ids expected(all.begin() + 1, all.end());
  expected.push_back(all[0]);
  EXPECT_EQ(drain(), expected);
}

TEST_F(EngineBacklog, PurgeDeletesAllJobsThatAreNotRunning) {
  push_some(2500, {.priority = 1});
  const leased_job running = take();
  const auto purged = e().purge("default").get();
  ASSERT_TRUE(purged);
  EXPECT_EQ(*purged, 2499U);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(counts().unfinished(), 1U);
  EXPECT_TRUE(ack(running));
}

TEST_F(EngineBacklog, AJobReleasedWhileTheWindowIsReadLeavesNoGap) {
  // The committer is blocked in a commit; meanwhile the window is emptied, and leases before its
  // horizon are released before it is read.
  options.window_jobs_max = 4;
  const ids all = push_some(30);
  for (int round = 0; round < 20; ++round) {
    auto leased = lease(4);
    auto reads = e().lease({.max = 4});  // makes the committer read the window
    for (const leased_job& l : leased) (void)e().release(l.ref()).get();
    auto more = reads.get();
    ASSERT_TRUE(more);
    for (const leased_job& l : *more) ASSERT_TRUE(e().release(l.ref()).get());
  }
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineBacklog, ALeaseThatMayNotWaitStillGetsJobsOnDisk) {
  const ids all = push_some(50);
  reopen();
  EXPECT_EQ(take().job->id, all[0]) << "nothing was in memory yet";
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(take().job->id, all[i]);
  EXPECT_TRUE(is_empty());
}

TEST_F(EngineBacklog, LargeJobsAreReleasedWithTheirArgs) {
  options.window_bytes_max = 10'000;
  const std::string args(5000, 'x');
  const ids all = push_some(10, {.args = {args, content_type::bytes}});
  std::vector<leased_job> leased;
  for (int i = 0; i < 6; ++i) leased.push_back(take());
  for (const leased_job& l : leased) EXPECT_TRUE(e().release(l.ref()).get());
  for (const job_id id : all) {
    const leased_job l = take();
    EXPECT_EQ(l.job->id, id);
    EXPECT_EQ(l.job->spec.args.data, args);
    EXPECT_TRUE(ack(l));
  }
}

TEST_F(EngineBacklog, AReleasedJobThatCannotBeReadIsLeasedWhenTheDiskRecovers) {
  options.window_bytes_max = 1000;
  const ids all = push_some(3, {.args = {std::string(5000, 'x'), content_type::bytes}});
  const leased_job l = take();
  drive.reads_fail(true);
  EXPECT_TRUE(e().release(l.ref()).get());
  drive.reads_fail(false);
  advance(options.probe_every);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineBacklog, AWaitingLeaseIsServedWhenItsWindowCanBeReadAgain) {
  const ids all = push_some(8);
  reopen();
  drive.reads_fail(true);
  auto waits = e().lease({});
  settle();
  EXPECT_FALSE(waits.is_ready());
  EXPECT_EQ(e().health().code, error_code::io_error);
  EXPECT_EQ(code_of(try_lease()), error_code::io_error) << "must not report that no job is ready";
  drive.reads_fail(false);
  time.advance(options.probe_every);
  EXPECT_EQ(ids_of(waits.get().value()), ids{all[0]});
}

TEST_F(EngineBacklog, DueJobsThatCouldNotBeReadBecomeReadyWhenTheDiskRecovers) {
  const job_id id = push({.run_at = time.now() + 5s});
  settle();
  drive.reads_fail(true);
  advance(5s);
  EXPECT_FALSE(e().health().takes_pushes);
  drive.reads_fail(false);
  advance(options.probe_every);
  advance(options.probe_every);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(drain(), ids{id});
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_backlog_test
