// Jobs that depend on the end of other jobs.

#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_after_test {
namespace {

class EngineAfter : public engine_words {
 protected:
  job_id push_after(std::vector<job_id> on, after_when when = after_when::success,
                    job_spec spec = {}) {
    for (const job_id id : on) spec.after.push_back({id, {}, when});
    return push(std::move(spec));
  }
  void finish(job_id id) {
    const leased_job l = take();
    ASSERT_EQ(l.job->id, id);
    ASSERT_TRUE(ack(l));
  }
  void kill(job_id id) {
    const leased_job l = take();
    ASSERT_EQ(l.job->id, id);
    ASSERT_TRUE(fail(l, {.for_good = true}));
  }
};

TEST_F(EngineAfter, AJobWaitsForTheSuccessOfAnother) {
  const job_id a = push();
  const job_id b = push_after({a});
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(get(b).blockers, 1U);
  const leased_job l = take();
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, ARetryDoesNotMeetSuccess) {
  const job_id a = push({.retry = {.first = 1s, .factor = 1.0, .jitter = 0}});
  const job_id b = push_after({a}, after_when::end);
  ASSERT_TRUE(fail(take()));
  EXPECT_EQ(state(b), job_state::held);
  advance(1s);
  EXPECT_EQ(drain(), (ids{a, b}));
}

TEST_F(EngineAfter, AnyEndMeetsEnd) {
  for (const bool is_cancelled : {false, true}) {
    const job_id a = push();
    const job_id b = push_after({a}, after_when::end);
    is_cancelled ? (void)e().cancel(a).get() : kill(a);
    EXPECT_EQ(drain(), ids{b});
  }
  const job_id a = push();
  const job_id b = push_after({a}, after_when::end);
  ASSERT_TRUE(e().remove(a).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, DeathOrACancelMeetsFailure) {
  const job_id a = push();
  const job_id b = push_after({a}, after_when::failure);
  kill(a);
  EXPECT_EQ(drain(), ids{b});
  const job_id c = push();
  const job_id d = push_after({c}, after_when::failure);
  ASSERT_TRUE(e().cancel(c).get());
  EXPECT_EQ(drain(), ids{d});
}

TEST_F(EngineAfter, AJobWaitingForFailureIsSkippedOnSuccess) {
  const job_id a = push();
  const job_id b = push_after({a}, after_when::failure);
  const job_id c = push_after({b}, after_when::success);  // the only dependency it could have
  const job_id d = push_after({b}, after_when::end);
  auto waits = e().wait(b);
  settle();
  finish(a);
  EXPECT_FALSE(has(b));
  EXPECT_FALSE(has(c));
  EXPECT_EQ(code_of(waits.get()), error_code::not_found);
  EXPECT_EQ(drain(), ids{d});
  EXPECT_EQ(e().stats().skipped, 2U);
}

TEST_F(EngineAfter, AChainRunsInItsOrder) {
  ids chain{push()};
  for (int i = 0; i < 50; ++i) chain.push_back(push_after({chain.back()}));
  EXPECT_EQ(drain(), chain);
}

TEST_F(EngineAfter, ADiamondJoinsWhenBothSidesHaveEnded) {
  const job_id top = push();
  const job_id left = push_after({top});
  const job_id right = push_after({top});
  const job_id bottom = push_after({left, right, left});  // named twice, counted once
  EXPECT_EQ(get(bottom).blockers, 2U);
  finish(top);
  auto both = lease(2);
  ASSERT_EQ(ids_of(both), (ids{left, right}));
  ASSERT_TRUE(ack(both[1]));
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(both[0]));
  EXPECT_EQ(drain(), ids{bottom});
}

TEST_F(EngineAfter, ADeletedDependencyCountsAsDone) {
  const job_id a = push();
  finish(a);
  EXPECT_FALSE(has(a));
  EXPECT_EQ(state(push_after({a})), job_state::ready);
  EXPECT_EQ(state(push_after({a}, after_when::end)), job_state::ready);
  job_spec never;
  never.after = {{a, {}, after_when::failure}};
  const auto pushed = try_push(never);
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->outcome, push_receipt::fate::skipped);
  EXPECT_EQ(pushed->id, 0U);
}

TEST_F(EngineAfter, AnUnknownJobIsRejected) {
  const job_id a = push();
  job_spec s;
  s.after = {{a}, {a + 5000}};
  const auto pushed = try_push(s);
  EXPECT_EQ(code_of(pushed), error_code::not_found);
  EXPECT_NE(pushed.error().message.find("after[1]: job or batch " + std::to_string(a + 5000) +
                                        " does not exist"),
            std::string::npos)
      << pushed.error().message;
  s.after = {{0, "flight"}};
  EXPECT_EQ(code_of(try_push(s)), error_code::invalid);
}

TEST_F(EngineAfter, ADeadJobHoldsItsDependentsUntilItIsRetriedAndDone) {
  const job_id a = push();
  const job_id b = push_after({a});
  const job_id other = push();
  kill(a);
  EXPECT_EQ(drain(), ids{other});
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(code_of(e().retry(b).get()), error_code::wrong_state);
  ASSERT_TRUE(e().retry(a).get());
  kill(a);
  EXPECT_EQ(state(b), job_state::held);
  crash();
  ASSERT_TRUE(e().retry(a).get());
  EXPECT_EQ(drain(), (ids{a, b}));
}

TEST_F(EngineAfter, AJobPushedAfterADeadJobWaitsForItToo) {
  const job_id a = push();
  kill(a);
  const job_id b = push_after({a});
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(state(push_after({a}, after_when::failure)), job_state::ready);
  ASSERT_TRUE(e().retry(a).get());
  EXPECT_EQ(drain().size(), 3U);
}

TEST_F(EngineAfter, DeletingAJobSkipsJobsWaitingForItsSuccess) {
  const job_id a = push();
  const job_id b = push_after({a});
  const job_id c = push_after({b});
  const job_id d = push_after({c}, after_when::end);
  auto waits = e().wait(c);
  settle();
  ASSERT_TRUE(e().remove(a).get());
  EXPECT_FALSE(has(b) || has(c));
  EXPECT_EQ(code_of(waits.get()), error_code::not_found);
  EXPECT_EQ(drain(), ids{d});
}

TEST_F(EngineAfter, TheEndOfADeadJobsRetentionSkipsItsDependents) {
  configure({.keep_dead = 10s});
  const job_id a = push();
  const job_id b = push_after({a});
  kill(a);
  advance(9s);
  EXPECT_TRUE(has(b));
  advance(1s);
  EXPECT_FALSE(has(a) || has(b));
}

TEST_F(EngineAfter, AReleasedJobWithRunAtIsScheduled) {
  const job_id a = push();
  const unix_time at = time.now() + 30s;
  const job_id b = push_after({a}, after_when::success, {.run_at = at});
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(counts().held, 1U);
  EXPECT_EQ(counts().scheduled, 0U);
  finish(a);
  EXPECT_EQ(state(b), job_state::scheduled);
  EXPECT_EQ(get(b).due_at, at);
  advance(29s);
  EXPECT_TRUE(is_empty());
  advance(1s);
  EXPECT_EQ(drain(), ids{b});
  // Its run_at has passed when it is released.
  const job_id c = push();
  const job_id d = push_after({c}, after_when::success, {.run_at = time.now() + 5s});
  advance(6s);
  EXPECT_EQ(drain(), (ids{c, d}));
}

TEST_F(EngineAfter, AReleasedJobWithAKeyJoinsItsLine) {
  const job_id a = push();
  const job_id late = push_after({a}, after_when::success, {.key = "k"});
  const job_id first = push({.key = "k"});
  const job_id second = push({.key = "k"});
  EXPECT_EQ(counts().held, 2U);
  finish(a);
  EXPECT_EQ(state(late), job_state::held);
  const job_id third = push({.key = "k"});
  // By arrival: it was pushed before the other held jobs.
  EXPECT_EQ(drain(), (ids{first, late, second, third}));
}

TEST_F(EngineAfter, AHeldJobThatWasCancelledIsHeldAgainWhenRetried) {
  const job_id a = push();
  const job_id b = push_after({a});
  ASSERT_TRUE(e().cancel(b).get());
  const auto retried = e().retry(b).get();
  ASSERT_TRUE(retried);
  EXPECT_EQ(retried->state, job_state::held);
  EXPECT_EQ(drain(), (ids{a, b}));
}

TEST_F(EngineAfter, AHeldJobThatWasCancelledIsReadyWhenItsDependencyHasEndedMeanwhile) {
  const job_id a = push();
  const job_id b = push_after({a});
  ASSERT_TRUE(e().cancel(b).get());
  finish(a);
  EXPECT_EQ(state(b), job_state::cancelled);
  ASSERT_TRUE(e().retry(b).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, AHeldJobCountsAgainstTheCapacity) {
  configure({.capacity_jobs = 2});
  const job_id a = push();
  push_after({a});
  EXPECT_EQ(code_of(try_push({})), error_code::queue_full);
}

TEST_F(EngineAfter, ASkippedJobFreesItsCapacityAndItsUniqueKey) {
  configure({.capacity_jobs = 2, .when_full = overflow::block});
  const job_id a = push();
  push_after({a}, after_when::failure, {.unique = {.key = "u"}});
  auto waits = begin_push({.unique = {.key = "u"}});
  finish(a);
  const auto pushed = waits.get();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->outcome, push_receipt::fate::accepted);
  EXPECT_EQ(drain(), ids{pushed->id});
}

TEST_F(EngineAfter, SurvivesACrash) {
  const job_id a = push();
  const job_id b = push_after({a});
  crash();
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(drain(), (ids{a, b}));
}

TEST_F(EngineAfter, AFailedAckReleasesNoJob) {
  const job_id a = push();
  const job_id b = push_after({a});
  const job_id c = push_after({a}, after_when::failure);
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(ack(l));
  drive.works();
  advance(1s);
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(state(c), job_state::held);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

// Several changes in one commit.

TEST_F(EngineAfter, AJobPushedWhileItsDependencyEndsIsNotStuck) {
  const job_id a = push();
  const leased_job l = take();
  ids late;
  in_one_commit([&] {
    auto before = begin_push({.after = {{a}}});
    auto acked = e().ack(l.ref());
    auto behind = begin_push({.after = {{a}}});
    drive.unblock();
    EXPECT_TRUE(acked.get());
    late = {before.get().value().id, behind.get().value().id};
  });
  EXPECT_EQ(drain(), late);
}

TEST_F(EngineAfter, AJobReleasedAndCancelledInOneCommitIsCancelled) {
  const job_id a = push();
  const job_id b = push_after({a});
  const leased_job l = take();
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto cancelled = e().cancel(b);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_TRUE(cancelled.get());
  });
  EXPECT_EQ(state(b), job_state::cancelled);
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(e().retry(b).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, AJobRetriedWhileItsDependencyEndsIsNotStuck) {
  const job_id a = push();
  const job_id b = push_after({a});
  ASSERT_TRUE(e().cancel(b).get());
  const leased_job l = take();
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto retried = e().retry(b);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    ASSERT_TRUE(retried.get());
  });
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, AJobHeldAgainAndReleasedInOneCommitIsReady) {
  const job_id a = push({.retry = {.attempts_max = 1}});
  const job_id b = push_after({a}, after_when::end);
  ASSERT_TRUE(e().cancel(b).get());
  (void)take();
  in_one_commit([&] {
    auto retried = e().retry(b);  // then the lease expires, and a is dead
    time.advance(60s);
    drive.unblock();
    ASSERT_TRUE(retried.get());
  });
  EXPECT_EQ(state(a), job_state::dead);
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, ASkippedJobCannotBeCancelledInTheSameCommit) {
  const job_id a = push();
  const job_id b = push_after({a}, after_when::failure);
  const job_id c = push_after({a}, after_when::failure);
  const job_id d = push_after({a}, after_when::failure, {.queue = "second"});
  const leased_job l = take();
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto cancelled = e().cancel(b);
    auto removed = e().remove(c);
    auto purged = e().purge("second");
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_EQ(code_of(cancelled.get()), error_code::not_found);
    EXPECT_EQ(code_of(removed.get()), error_code::not_found);
    EXPECT_EQ(purged.get().value(), 0U);
  });
  EXPECT_FALSE(has(b) || has(c) || has(d));
}

TEST_F(EngineAfter, AJobCancelledBeforeItsSkipStaysCancelled) {
  configure({.keep_dead = 0ms});
  const job_id a = push({.retry = {.attempts_max = 1}});
  const job_id b = push_after({a}, after_when::success, {.keep_for = 1h});
  (void)take();
  in_one_commit([&] {
    auto cancelled = e().cancel(b);  // then the lease expires, and a is dead and deleted
    time.advance(60s);
    drive.unblock();
    EXPECT_TRUE(cancelled.get());
  });
  EXPECT_FALSE(has(a));
  EXPECT_EQ(state(b), job_state::cancelled);
  ASSERT_TRUE(e().retry(b).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineAfter, ASkipAndTheRemovalOfItsDependencyInOneCommit) {
  const job_id a = push();
  const job_id b = push_after({a});
  const job_id c = push_after({b});
  const job_id d = push_after({c}, after_when::end);
  in_one_commit([&] {
    auto first = e().remove(a);
    auto second = e().remove(b);
    auto third = e().cancel(c);
    drive.unblock();
    EXPECT_TRUE(first.get());
    EXPECT_EQ(code_of(second.get()), error_code::not_found);
    EXPECT_EQ(code_of(third.get()), error_code::not_found);
  });
  EXPECT_EQ(drain(), ids{d});
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_after_test
