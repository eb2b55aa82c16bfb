// Leases by job id, and lease_of.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_lease_job_test {
namespace {

class EngineLeaseJob : public engine_words {
 protected:
  result<leased_job> lease_job(job_id id) { return e().lease_job(id).get(); }
  // Makes a job dead.
  void kill(job_id id) {
    auto leased = lease_job(id);
    ASSERT_TRUE(leased);
    ASSERT_TRUE(fail(*leased, {.type = "bad", .for_good = true}));
  }
};

TEST_F(EngineLeaseJob, LeasesAReadyJobFromTheMiddle) {
  const ids all = push_some(3);
  const auto leased = e().lease_job(all[1], "ada", 7s).get();
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->job->id, all[1]);
  EXPECT_EQ(leased->attempt, 1U);
  EXPECT_EQ(leased->until, time.now() + 7s);
  EXPECT_EQ(state(all[1]), job_state::running);
  EXPECT_EQ(ids_of(lease(10)), (ids{all[0], all[2]})) << "it is leased once";
  EXPECT_EQ(counts().running, 3U);
  EXPECT_EQ(e().stats().leased, 3U);
  EXPECT_TRUE(ack(*leased));
}

TEST_F(EngineLeaseJob, LeasesAJobOnDisk) {
  options.window_jobs_max = 4;
  const ids all = push_some(20);
  const auto leased = lease_job(all[17]);
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->job->id, all[17]);
  ids rest = all;
  std::erase(rest, all[17]);
  EXPECT_EQ(drain(), rest);
  EXPECT_TRUE(e().release(leased->ref()).get());
  EXPECT_EQ(drain(), ids{all[17]});
}

TEST_F(EngineLeaseJob, LeasesAScheduledOrRetryingJob) {
  const job_id later = push({.run_at = time.now() + 1h, .lease_for = 3h});
  const auto leased = lease_job(later);
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->job->state, job_state::ready);
  EXPECT_EQ(state(later), job_state::running);
  EXPECT_EQ(fail(*leased)->state, job_state::retrying);
  const auto again = lease_job(later);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempt, 2U);
  advance(2h);
  EXPECT_TRUE(is_empty()) << "its times are cleared";
}

TEST_F(EngineLeaseJob, RestartsTheAttemptsOfADeadJobAtZero) {
  const job_id id = push({.retry = {.attempts_max = 1}});
  EXPECT_EQ(fail(take())->state, job_state::dead);
  const auto leased = lease_job(id);
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->attempt, 1U);
  EXPECT_EQ(get(id).ended_at, unix_time{});
  EXPECT_EQ(counts().dead, 0U);
  crash();
  EXPECT_EQ(take().job->id, id) << "it is ready in the store";
}

TEST_F(EngineLeaseJob, RejectsMissingRunningHeldAndEndedJobs) {
  EXPECT_EQ(code_of(lease_job(99)), error_code::not_found);
  const job_id first = push({.key = "k"});
  const job_id held = push({.key = "k"});
  EXPECT_EQ(code_of(lease_job(held)), error_code::wrong_state);
  const leased_job l = take();
  EXPECT_EQ(code_of(lease_job(first)), error_code::wrong_state);
  EXPECT_TRUE(e().cancel(held).get());
  EXPECT_EQ(code_of(lease_job(held)), error_code::wrong_state);
  EXPECT_TRUE(e().cancel(first).get());
  EXPECT_EQ(code_of(lease_job(first)), error_code::wrong_state);
  configure({.keep_done = 1h}, "kept");
  const job_id done = push({.queue = "kept"});
  EXPECT_TRUE(ack(take("kept")));
  EXPECT_EQ(code_of(lease_job(done)), error_code::wrong_state);
  EXPECT_EQ(code_of(e().lease_job(done, "ada", -1ms).get()), error_code::invalid);
}

TEST_F(EngineLeaseJob, AJobWithABusyKeyBecomesHeld) {
  const job_id dead = push({.key = "k"});
  kill(dead);
  push({.key = "k"});
  const leased_job other = take();
  EXPECT_EQ(code_of(lease_job(dead)), error_code::wrong_state);
  EXPECT_EQ(state(dead), job_state::held);
  EXPECT_TRUE(ack(other));
  EXPECT_EQ(take().job->id, dead);
}

TEST_F(EngineLeaseJob, IgnoresPausesAndRatesButNotConcurrencyLimits) {
  options.running_max = 3;
  configure({.paused = true, .rate = 0.001, .rate_burst = 1, .concurrency = 2});
  const ids all = push_some(3);
  EXPECT_TRUE(lease_job(all[0]));
  const auto second = lease_job(all[1]);
  EXPECT_TRUE(second);
  EXPECT_EQ(code_of(lease_job(all[2])), error_code::overloaded);
  push_some(2, {.queue = "other"});
  take("other");
  EXPECT_TRUE(ack(*second));
  EXPECT_TRUE(lease_job(all[2]));
  EXPECT_EQ(code_of(lease_job(push({.run_at = time.now() + 1h}))), error_code::overloaded);
}

TEST_F(EngineLeaseJob, IsNotLeasedByOthersWhileItIsMadeReady) {
  const job_id id = push({.run_at = time.now() + 1h});
  auto waits = e().lease({});
  drive.block();
  auto own = e().lease_job(id);
  drive.await_blocked();
  auto second = e().lease_job(id);
  drive.unblock();
  EXPECT_TRUE(own.get());
  EXPECT_EQ(code_of(second.get()), error_code::wrong_state);
  settle();
  EXPECT_FALSE(waits.is_ready());
  waits.cancel();
}

TEST_F(EngineLeaseJob, LeavesTheJobUnchangedIfTheDiskFails) {
  const job_id id = push({.run_at = time.now() + 1h});
  settle();
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(lease_job(id)), error_code::io_error);
  drive.works();
  advance(2s);
  EXPECT_EQ(state(id), job_state::scheduled);
  EXPECT_TRUE(lease_job(id));
}

TEST_F(EngineLeaseJob, IsRejectedAfterClose) {
  const job_id id = push();
  e().close();
  EXPECT_EQ(code_of(lease_job(id)), error_code::shutting_down);
}

TEST_F(EngineLeaseJob, LeaseOfReturnsTheWorker) {
  const job_id id = push({.lease_for = 10s});
  EXPECT_FALSE(e().lease_of(id));
  const unix_time began = time.now();
  const leased_job l = try_lease({.worker = "ada"})->front();
  advance(4s);
  auto seen = e().lease_of(id);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->worker, "ada");
  EXPECT_EQ(seen->began, began);
  EXPECT_EQ(seen->until, began + 10s);
  EXPECT_TRUE(e().extend(l.ref()));
  EXPECT_EQ(e().lease_of(id)->until, began + 14s);
  EXPECT_TRUE(ack(l));
  EXPECT_FALSE(e().lease_of(id));
}

TEST_F(EngineLeaseJob, ManyLeasesAreReleasedInOneCall) {
  const ids all = push_some(5);
  std::vector<lease_ref> refs;
  for (const leased_job& l : lease(4)) refs.push_back(l.ref());
  refs.push_back({all[4], 1});
  const auto given = e().release_many(refs).get();
  ASSERT_EQ(given.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(given[i]);
  EXPECT_EQ(code_of(given[4]), error_code::lease_lost);
  EXPECT_EQ(e().stats().given_back, 4U);
  EXPECT_EQ(drain(), all);
  EXPECT_TRUE(e().release_many({}).get().empty());
}

TEST_F(EngineLeaseJob, ManyJobsWithArgsOnDiskAreReleased) {
  options.window_bytes_max = 1;  // no args of leased jobs stay in memory
  const ids all = push_some(3, {.args = {R"("long")"}});
  std::vector<lease_ref> refs;
  while (refs.size() < 3) refs.push_back(take().ref());
  for (const auto& given : e().release_many(refs).get()) EXPECT_TRUE(given);
  EXPECT_EQ(take().job->spec.args.data, R"("long")");
}

TEST_F(EngineLeaseJob, AFailureCanChangeThePriority) {
  const job_id id = push({.priority = 1});
  EXPECT_TRUE(fail(take(), {.for_good = true, .priority = 7}));
  EXPECT_EQ(get(id).spec.priority, 7);
  EXPECT_TRUE(e().retry(id).get());
  push({.priority = 5});
  const leased_job first = take();
  EXPECT_EQ(first.job->id, id);
  EXPECT_EQ(code_of(fail(first, {.priority = limits::priority_max + 1})), error_code::invalid);
  EXPECT_TRUE(fail(first, {.retry_in = 1s, .priority = -3}));
  advance(1s);
  EXPECT_EQ(take().job->spec.priority, 5);
  EXPECT_EQ(take().job->spec.priority, -3);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_lease_job_test
