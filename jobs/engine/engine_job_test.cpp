// Calls about one job by its id, in memory or on disk: cancel, retry, remove, wait; and purge.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_job_test {
namespace {

using EngineJob = engine_words;

// Cancelling.

TEST_F(EngineJob, ACancelledReadyJobIsNotLeased) {
  const ids all = push_some(2);
  const auto cancelled = e().cancel(all[0]).get();
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, job_state::cancelled);
  EXPECT_EQ(cancelled->ended_at, time.now());
  EXPECT_EQ(*cancelled, get(all[0]));
  EXPECT_EQ(drain(), ids{all[1]});
  EXPECT_EQ(e().stats().cancelled, 1U);
}

TEST_F(EngineJob, ACancelledScheduledOrRetryingJobNeverBecomesReady) {
  const job_id scheduled = push({.run_at = time.now() + 5s});
  const job_id retrying = push();
  ASSERT_TRUE(fail(take(), {.retry_in = 5s}));
  ASSERT_TRUE(e().cancel(scheduled).get());
  ASSERT_TRUE(e().cancel(retrying).get());
  advance(5s);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(counts().cancelled, 2U);
}

TEST_F(EngineJob, ExtendReportsThatTheJobIsCancelled) {
  const job_id id = push();
  const leased_job l = take();
  EXPECT_EQ(e().cancel(id).get()->state, job_state::cancelled);
  EXPECT_EQ(state(id), job_state::cancelled);
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(counts().cancelled, 1U);
  EXPECT_TRUE(e().extend(l.ref())->cancelled);
}

TEST_F(EngineJob, ACancelledJobStaysCancelledAfterItsWorkersReport) {
  const auto cancelled_then = [&](auto&& report) {
    const job_id id = push();
    const leased_job l = take();
    ASSERT_TRUE(e().cancel(id).get());
    report(l);
    EXPECT_EQ(state(id), job_state::cancelled);
    EXPECT_EQ(code_of(ack(l)), error_code::lease_lost) << "its lease has ended";
    EXPECT_EQ(e().drained().get(), status::ok);
  };
  cancelled_then([&](const leased_job& l) { EXPECT_TRUE(ack(l, payload{"1"})); });
  cancelled_then([&](const leased_job& l) { EXPECT_EQ(fail(l)->state, job_state::cancelled); });
  cancelled_then([&](const leased_job& l) { EXPECT_TRUE(e().release(l.ref()).get()); });
  cancelled_then(
      [&](const leased_job& l) { EXPECT_TRUE(e().release(l.ref(), {.delay = 1s}).get()); });
  cancelled_then([&](const leased_job&) { advance(60s); });
}

TEST_F(EngineJob, ACancelledJobWithoutRetentionIsDeletedWhileItIsLeased) {
  const job_id id = push({.keep_for = 0ms});
  const leased_job l = take();
  ASSERT_TRUE(e().cancel(id).get());
  EXPECT_FALSE(has(id));
  EXPECT_TRUE(e().extend(l.ref())->cancelled);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineJob, TheRetentionOfACancelledJobMayEndBeforeItsLease) {
  const job_id id = push({.lease_for = 1h, .keep_for = 5s});
  const leased_job l = take();
  ASSERT_TRUE(e().cancel(id).get());
  advance(5s);
  EXPECT_FALSE(has(id));
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineJob, AReportDuringACancelWaitsForTheCancel) {
  const ids all = push_some(3);
  const auto leased = lease(3);
  settle();
  drive.block();
  auto other = begin_push({});
  drive.await_blocked();
  std::vector<future<result<job>>> cancelled;
  for (const job_id id : all) cancelled.push_back(e().cancel(id));
  // They are staged in the blocked round; the next round commits them.
  drive.unblock();
  (void)other.get();
  for (auto& c : cancelled) ASSERT_TRUE(c.get());
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_EQ(fail(leased[1])->state, job_state::cancelled);
  EXPECT_TRUE(e().release(leased[2].ref()).get());
}

TEST_F(EngineJob, AnAckDuringACancelThatFailsIsAnAck) {
  const ids all = push_some(3);
  const auto leased = lease(3);
  settle();
  drive.block();
  auto cancels = e().cancel(all[0]);
  auto cancels_too = e().cancel(all[1]);
  auto cancels_three = e().cancel(all[2]);
  drive.await_blocked();
  EXPECT_TRUE(e().extend(leased[0].ref())) << "the worker still has the lease";
  auto acked = e().ack(leased[0].ref());
  auto failed = e().fail(leased[1].ref(), {});
  auto released = e().release(leased[2].ref());
  const auto has_failed = std::make_shared<bool>(false);  // the engine outlives the test
  drive.fails_when([has_failed](const transaction&) -> std::optional<error> {
    if (std::exchange(*has_failed, true)) return std::nullopt;
    return error{error_code::io_error, "once"};
  });
  drive.unblock();
  const bool one_commit = !cancels.get() && !cancels_too.get() && !cancels_three.get();
  const auto first = acked.get();
  const auto second = failed.get();
  const auto third = released.get();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  EXPECT_TRUE(third);
  if (one_commit) {
    EXPECT_FALSE(has(all[0]));
    EXPECT_EQ(second->state, job_state::retrying);
    EXPECT_EQ(take().job->id, all[2]);
  }
}

TEST_F(EngineJob, ACancelAfterAnAckFails) {
  const job_id id = push({.keep_for = 1h});
  const leased_job l = take();
  settle();
  drive.block();
  auto acked = e().ack(l.ref());
  drive.await_blocked();
  auto cancelled = e().cancel(id);
  drive.unblock();
  EXPECT_TRUE(acked.get());
  EXPECT_EQ(code_of(cancelled.get()), error_code::wrong_state);
  EXPECT_EQ(state(id), job_state::done);
}

TEST_F(EngineJob, EndedAndUnknownJobsCannotBeCancelled) {
  const job_id id = push();
  ASSERT_TRUE(e().cancel(id).get());
  const auto again = e().cancel(id).get();
  EXPECT_EQ(code_of(again), error_code::wrong_state);
  EXPECT_EQ(again.error().job, id);
  EXPECT_EQ(code_of(e().cancel(99).get()), error_code::not_found);
}

// Two waits end at the same time, and one ends the other.
TEST_F(EngineJob, TheLastCancelledLeaseAndADeadlineMayCoincide) {
  const job_id id = push({.lease_for = 5s});
  (void)take();
  ASSERT_TRUE(e().cancel(id).get());
  auto drained = e().drained(deadline::after(5s, time.timers()));
  settle();
  time.advance(5s);
  EXPECT_NE(drained.get(), status::closed);
}

// Retrying.

TEST_F(EngineJob, ADeadOrCancelledJobStartsOver) {
  const job_id dead = push({.retry = {.attempts_max = 2, .first = 0ms}});
  ASSERT_TRUE(fail(take()));
  settle();
  ASSERT_EQ(fail(take())->state, job_state::dead);
  const auto retried = e().retry(dead).get();
  ASSERT_TRUE(retried);
  EXPECT_EQ(retried->state, job_state::ready);
  EXPECT_EQ(retried->attempts, 0U);
  EXPECT_EQ(retried->ended_at, unix_time{});
  EXPECT_EQ(retried->errors.size(), 2U) << "its errors are kept";
  EXPECT_EQ(*retried, get(dead));
  EXPECT_EQ(take().attempt, 1U);
  const job_id cancelled = push();
  ASSERT_TRUE(e().cancel(cancelled).get());
  ASSERT_TRUE(e().retry(cancelled).get());
  EXPECT_EQ(take().job->id, cancelled);
}

TEST_F(EngineJob, RetryingAScheduledOrRetryingJobMakesItReady) {
  const job_id scheduled = push({.run_at = time.now() + 1h});
  ASSERT_TRUE(e().retry(scheduled).get());
  const leased_job l = take();
  EXPECT_EQ(l.job->id, scheduled);
  ASSERT_TRUE(fail(l, {.retry_in = 1h}));
  ASSERT_TRUE(e().retry(scheduled).get());
  EXPECT_EQ(take().attempt, 2U) << "its attempts continue";
  advance(2h);
  EXPECT_EQ(get(scheduled).attempts, 2U) << "the lease of a minute expired, once";
}

TEST_F(EngineJob, AReadyRunningOrDoneJobCannotBeRetried) {
  const job_id id = push({.keep_for = 1h});
  EXPECT_EQ(code_of(e().retry(id).get()), error_code::wrong_state);
  const leased_job l = take();
  EXPECT_EQ(code_of(e().retry(id).get()), error_code::wrong_state);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(code_of(e().retry(id).get()), error_code::wrong_state);
  EXPECT_EQ(code_of(e().retry(99).get()), error_code::not_found);
  const job_id held = push();
  (void)take();
  ASSERT_TRUE(e().cancel(held).get());
  EXPECT_EQ(code_of(e().retry(held).get()), error_code::wrong_state) << "it is still leased";
}

TEST_F(EngineJob, ARetriedJobArrivesBehindReadyJobs) {
  const job_id first = push();
  ASSERT_TRUE(e().cancel(first).get());
  const job_id second = push();
  ASSERT_TRUE(e().retry(first).get());
  EXPECT_EQ(drain(), (ids{second, first}));
}

TEST_F(EngineJob, RetryingAJobEndsItsRetention) {
  const job_id id = push({.keep_for = 5s});
  ASSERT_TRUE(e().cancel(id).get());
  ASSERT_TRUE(e().retry(id).get());
  advance(10s);
  EXPECT_EQ(drain(), ids{id});
}

// Removing.

TEST_F(EngineJob, AJobIsRemovedInAnyStateButRunning) {
  const job_id running = push();
  (void)take();
  EXPECT_EQ(code_of(e().remove(running).get()), error_code::wrong_state);
  const job_id retrying = push();
  ASSERT_TRUE(fail(take()));
  const job_id done = push({.keep_for = 1h});
  ASSERT_TRUE(ack(take()));
  const job_id dead = push();
  ASSERT_TRUE(fail(take(), {.for_good = true}));
  const job_id cancelled = push();
  ASSERT_TRUE(e().cancel(cancelled).get());
  const job_id ready = push();
  const job_id scheduled = push({.run_at = time.now() + 1h});
  for (const job_id id : {retrying, done, dead, cancelled, ready, scheduled}) {
    EXPECT_TRUE(e().remove(id).get());
    EXPECT_FALSE(has(id));
    EXPECT_EQ(code_of(e().remove(id).get()), error_code::not_found);
  }
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(counts().unfinished(), 1U);
}

// Waiting for an end.

TEST_F(EngineJob, WaitReturnsTheEndedJobWithItsResult) {
  const job_id id = push();
  auto before = e().wait(id);
  auto also = e().wait(id);
  const leased_job l = take();
  auto meanwhile = e().wait(id);
  settle();
  ASSERT_TRUE(ack(l, payload{"42"}));
  for (auto* const w : {&before, &also, &meanwhile}) {
    const auto j = w->get();
    ASSERT_TRUE(j);
    EXPECT_EQ(j->state, job_state::done);
    EXPECT_EQ(j->result, payload{"42"});
    EXPECT_EQ(*j, get(id));
  }
  EXPECT_EQ(e().wait(id).get()->result, payload{"42"}) << "and afterwards";
}

TEST_F(EngineJob, AwaitEndSharesOneJob) {
  const job_id id = push({.keep_for = 1h});
  auto first = e().await_end(id);
  auto second = e().await_end(id);
  auto copied = e().wait(id);
  auto late = e().await_end(id, deadline::after(5s, time.timers()));
  settle();
  ASSERT_TRUE(ack(take(), payload{"42"}));
  const auto job = first.get();
  ASSERT_TRUE(job);
  EXPECT_EQ(**job, get(id));
  EXPECT_EQ(*second.get(), *job);
  EXPECT_EQ(*copied.get(), **job);
  EXPECT_EQ(*late.get(), *job);
  EXPECT_EQ(*e().await_end(id).get(), nullptr) << "it had already ended";
}

TEST_F(EngineJob, AwaitEndFailsAsWaitDoes) {
  const job_id id = push();
  auto late = e().await_end(id, deadline::after(5s, time.timers()));
  auto cancelled = e().await_end(id);
  auto removed = e().await_end(id);
  settle();
  cancelled.cancel();
  EXPECT_EQ(code_of(cancelled.get()), error_code::stopped);
  time.advance(5s);
  EXPECT_EQ(code_of(late.get()), error_code::timed_out);
  ASSERT_TRUE(e().remove(id).get());
  EXPECT_EQ(code_of(removed.get()), error_code::not_found);
  EXPECT_EQ(code_of(e().await_end(99).get()), error_code::not_found);
}

TEST_F(EngineJob, WaitReturnsAnEndedJobThatIsNotKept) {
  const job_id id = push({.keep_for = 0ms});
  auto waits = e().wait(id);
  settle();
  ASSERT_TRUE(ack(take(), payload{"42"}));
  const auto j = waits.get();
  EXPECT_EQ(j->state, job_state::done);
  EXPECT_EQ(j->result, payload{"42"});
  EXPECT_EQ(j->attempts, 1U);
  EXPECT_EQ(code_of(e().wait(id).get()), error_code::not_found);
}

TEST_F(EngineJob, WaitReturnsForEveryKindOfEnd) {
  const auto ends = [&](auto&& end) {
    const job_id id = push();
    auto waits = e().wait(id);
    settle();
    end(id);
    return waits.get();
  };
  EXPECT_EQ(ends([&](job_id) { ASSERT_TRUE(fail(take(), {.for_good = true})); })->state,
            job_state::dead);
  EXPECT_EQ(ends([&](job_id id) { ASSERT_TRUE(e().cancel(id).get()); })->state,
            job_state::cancelled);
  EXPECT_EQ(code_of(ends([&](job_id id) { ASSERT_TRUE(e().remove(id).get()); })),
            error_code::not_found);
  EXPECT_EQ(code_of(ends([&](job_id) { ASSERT_TRUE(e().purge("default").get()); })),
            error_code::not_found);
}

TEST_F(EngineJob, AWaitEndsAtItsDeadlineOrOnAStopRequest) {
  const job_id id = push();
  EXPECT_EQ(code_of(e().wait(id, at_once()).get()), error_code::timed_out);
  auto late = e().wait(id, deadline::after(5s, time.timers()));
  std::stop_source stop;
  auto stopped = e().wait(id, stop.get_token());
  auto cancelled = e().wait(id);
  settle();
  stop.request_stop();
  cancelled.cancel();
  EXPECT_EQ(code_of(stopped.get()), error_code::stopped);
  EXPECT_EQ(code_of(cancelled.get()), error_code::stopped);
  time.advance(5s);
  EXPECT_EQ(code_of(late.get()), error_code::timed_out);
  EXPECT_EQ(drain(), ids{id});
  EXPECT_EQ(code_of(e().wait(99).get()), error_code::not_found);
}

TEST_F(EngineJob, ARetryIsNoEnd) {
  const job_id id = push({.retry = {.first = 1s, .jitter = 0}});
  auto waits = e().wait(id);
  settle();
  ASSERT_TRUE(fail(take()));
  settle();
  EXPECT_FALSE(waits.is_ready());
  advance(1s);
  ASSERT_TRUE(ack(take()));
  EXPECT_EQ(waits.get()->state, job_state::done);
}

// Purging.

TEST_F(EngineJob, APurgeCountsItsDeletedJobsInEveryState) {
  push({.run_at = time.now() + 1h});
  push({.keep_for = 1h});
  ASSERT_TRUE(ack(take()));
  push();
  ASSERT_TRUE(fail(take()));
  const job_id running = push();
  const leased_job l = take();
  push_some(3);
  push({.queue = "other"});
  EXPECT_EQ(e().purge("default").get().value(), 6U);
  EXPECT_EQ(state(running), job_state::running);
  EXPECT_EQ(counts("other").ready, 1U);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(counts(), queue_counts{});
  EXPECT_EQ(e().purge("default").get().value(), 0U);
  EXPECT_EQ(code_of(e().purge("nobody").get()), error_code::not_found);
}

TEST_F(EngineJob, JobsPushedDuringAPurgeStay) {
  push_some(2500);
  settle();
  drive.block();
  auto purged = e().purge("default");
  drive.await_blocked();
  std::vector<future<result<push_receipt>>> later;
  for (int i = 0; i < 100; ++i) later.push_back(begin_push({}));
  drive.unblock();
  EXPECT_EQ(purged.get().value(), 2500U);
  ids stayed;
  for (auto& f : later) stayed.push_back(f.get()->id);
  EXPECT_EQ(drain(), stayed);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_job_test
