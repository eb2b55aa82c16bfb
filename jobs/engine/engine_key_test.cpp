// Jobs of one key run one at a time, in order of arrival, while other keys are served.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_key_test {
namespace {

class EngineKey : public engine_words {
 protected:
  job_id push_key(const std::string& key, job_spec spec = {}) {
    spec.key = key;
    return push(std::move(spec));
  }
  // Leases the next job, which must be this one.
  leased_job take_this(job_id id) {
    leased_job l = take();
    EXPECT_EQ(l.job->id, id);
    return l;
  }
  static job_spec retried_after(milliseconds pause, std::uint32_t attempts = 10) {
    job_spec s;
    s.retry = {.attempts_max = attempts, .first = pause, .factor = 1.0, .jitter = 0};
    return s;
  }
};

TEST_F(EngineKey, RunsOneAtATimeInTheOrderOfArrival) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  EXPECT_EQ(state(a), job_state::ready);
  EXPECT_EQ(state(b), job_state::held);
  EXPECT_EQ(counts().held, 2U);
  const leased_job first = take_this(a);
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(first));
  EXPECT_EQ(counts().held, 1U);
  const leased_job second = take_this(b);
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(second));
  EXPECT_EQ(drain(), ids{c});
  EXPECT_EQ(e().stats().held, 2U);
  EXPECT_EQ(e().stats().released, 2U);
}

TEST_F(EngineKey, PriorityOrdersKeysButNotJobsOfOneKey) {
  const job_id slow = push_key("k", {.priority = -1});
  const job_id urgent = push_key("k", {.priority = 5});
  const job_id other = push_key("other");
  EXPECT_EQ(drain(), (ids{other, slow, urgent}));
}

TEST_F(EngineKey, OtherKeysAndJobsWithoutAKeyAreNotBlocked) {
  push_key("k");
  const leased_job blocking = take();
  push_key("k");
  const job_id other = push_key("other");
  const job_id free = push();
  const job_id elsewhere = push_key("k", {.queue = "second"});
  EXPECT_EQ(drain(), (ids{other, free}));
  EXPECT_EQ(drain("second"), ids{elsewhere});
  ASSERT_TRUE(ack(blocking));
}

TEST_F(EngineKey, AWaitingLeaseGetsTheNextJob) {
  push_key("k");
  const leased_job first = take();
  const job_id b = push_key("k");
  auto waits = e().lease({});
  ASSERT_TRUE(ack(first));
  const auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(ids_of(*got), ids{b});
}

TEST_F(EngineKey, ARetryKeepsItsPosition) {
  const job_id a = push_key("k", retried_after(10s));
  const job_id b = push_key("k");
  ASSERT_TRUE(fail(take_this(a)));
  EXPECT_EQ(state(a), job_state::retrying);
  EXPECT_TRUE(is_empty());
  advance(9s);
  EXPECT_TRUE(is_empty());
  advance(1s);
  ASSERT_TRUE(ack(take_this(a)));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AnExpiredLeaseKeepsItsPosition) {
  const job_id a = push_key("k", retried_after(5s));
  const job_id b = push_key("k");
  (void)take_this(a);
  advance(60s);
  EXPECT_EQ(state(a), job_state::retrying);
  EXPECT_EQ(state(b), job_state::held);
  advance(5s);
  ASSERT_TRUE(ack(take_this(a)));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AReleasedJobKeepsItsPosition) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  ASSERT_TRUE(e().release(take_this(a).ref()).get());
  ASSERT_TRUE(e().release(take_this(a).ref(), {.priority = -7}).get());
  EXPECT_EQ(state(b), job_state::held);
  ASSERT_TRUE(e().release(take_this(a).ref(), {.delay = 30s}).get());
  EXPECT_EQ(state(a), job_state::scheduled);
  EXPECT_TRUE(is_empty());
  advance(30s);
  ASSERT_TRUE(ack(take_this(a)));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, ADeadJobReleasesTheNext) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  ASSERT_TRUE(fail(take_this(a), {.for_good = true}));
  ASSERT_TRUE(ack(take_this(b)));
  const job_id c = push_key("k");
  // After its retry it arrives again.
  ASSERT_TRUE(e().retry(a).get());
  EXPECT_EQ(state(a), job_state::held);
  EXPECT_EQ(drain(), (ids{c, a}));
}

TEST_F(EngineKey, CancellingTheRunningJobReleasesTheNext) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_EQ(state(b), job_state::ready);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, ACancelledJobHoldsItsKeyUntilItsLeaseEnds) {
  using end_of_lease = std::function<void(const leased_job&)>;
  const std::vector<end_of_lease> ways = {
      [&](const leased_job& l) { ASSERT_TRUE(ack(l)); },
      [&](const leased_job& l) { ASSERT_TRUE(fail(l)); },
      [&](const leased_job& l) { ASSERT_TRUE(e().release(l.ref()).get()); },
      [&](const leased_job& l) { ASSERT_TRUE(e().release(l.ref(), {.delay = 5s}).get()); },
      [&](const leased_job&) { advance(60s); },  // the lease expires
  };
  for (const milliseconds keep : {0ms, 1'000'000ms}) {
    for (const end_of_lease& way : ways) {
      const job_id a = push_key("k", {.keep_for = keep});
      const job_id b = push_key("k");
      const leased_job l = take_this(a);
      ASSERT_TRUE(e().cancel(a).get());
      EXPECT_TRUE(is_empty());
      EXPECT_TRUE(e().extend(l.ref())->cancelled);
      EXPECT_TRUE(is_empty());
      way(l);
      EXPECT_EQ(drain(), ids{b});
    }
  }
}

TEST_F(EngineKey, AWaitingLeaseGetsTheNextJobWhenTheCancelledJobsLeaseEnds) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  auto waits = e().lease({});
  ASSERT_TRUE(e().cancel(a).get());
  settle();
  EXPECT_FALSE(waits.is_ready());
  ASSERT_TRUE(ack(l));
  const auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(ids_of(*got), ids{b});
}

TEST_F(EngineKey, OtherJobsRunWhileACancelledJobHoldsItsKey) {
  options.window_jobs_max = 2;
  const job_id a = push_key("k");
  const job_id b = push_key("k", {.priority = 5});
  ids others;
  for (int i = 0; i < 6; ++i) others.push_back(push_key(i % 2 == 0 ? "" : std::to_string(i)));
  const leased_job l = take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_EQ(drain(), others);
  const job_id later = push_key("other");
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), (ids{b, later}));
}

TEST_F(EngineKey, ACancelledJobTakesOneOfTheSlotsOfItsKey) {
  configure({.key_concurrency = 2});
  ids all;
  for (int i = 0; i < 4; ++i) all.push_back(push_key("k"));
  const auto first = lease(10);
  ASSERT_EQ(ids_of(first), (ids{all[0], all[1]}));
  ASSERT_TRUE(e().cancel(all[0]).get());
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(first[1]));
  const leased_job third = take_this(all[2]);
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(first[0]));
  const leased_job fourth = take_this(all[3]);
  ASSERT_TRUE(ack(third));
  ASSERT_TRUE(ack(fourth));
}

TEST_F(EngineKey, AJobBlockedByACancelledJobsKeyIsNeitherLeasedByIdNorPeeked) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_EQ(code_of(e().lease_job(b).get()), error_code::overloaded);
  EXPECT_EQ(code_of(e().peek("default", job_state::ready).get()), error_code::not_found);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(e().peek("default", job_state::ready).get()->id, b);
  ASSERT_TRUE(ack(e().lease_job(b).get().value()));
}

TEST_F(EngineKey, TheNextJobCanBeCancelledRemovedAndKilledWhileItsKeyIsHeld) {
  const job_id a = push_key("k");
  ids next;
  for (int i = 0; i < 4; ++i) next.push_back(push_key("k"));
  const leased_job l = take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(e().cancel(next[0]).get());
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(e().remove(next[1]).get());
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(e().kill(next[2], {}).get());
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{next[3]});
}

TEST_F(EngineKey, APurgeLeavesTheKeyOfACancelledJobTaken) {
  const job_id a = push_key("k");
  push_key("k");
  const leased_job l = take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_EQ(code_of(e().remove(a).get()), error_code::wrong_state);
  EXPECT_EQ(e().purge("default").get().value(), 1U);
  const job_id c = push_key("k");
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{c});
}

TEST_F(EngineKey, AFailedCancelDoesNotHoldTheKey) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  drive.fails(error_code::io_error);
  EXPECT_FALSE(e().cancel(a).get());
  drive.works();
  advance(1s);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

// The end of a lease starts other jobs: cancels of the same commit must count by then.
TEST_F(EngineKey, ALeaseEndsInTheCommitThatCancelsAnotherJob) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id other = push_key("other");
  const job_id other_next = push_key("other");
  const leased_job held = take_this(a);
  const leased_job ending = take_this(other);
  auto waits = e().lease({.max = 2});
  settle();
  drive.block();
  auto first = e().cancel(other);
  drive.await_blocked();
  auto acked = e().ack(ending.ref());  // waits for the cancel, and so is in the next commit
  auto second = e().cancel(a);
  drive.unblock();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_TRUE(acked.get());
  const auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(ids_of(*got), ids{other_next});
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(held));
  ASSERT_TRUE(ack(got->front()));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AfterACrashTheKeyOfACancelledJobIsFree) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  (void)take_this(a);
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_TRUE(is_empty());
  crash();
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, CancellingAHeldJobRemovesItFromTheLine) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  ASSERT_TRUE(e().cancel(b).get());
  EXPECT_EQ(drain(), (ids{a, c}));
  ASSERT_TRUE(e().retry(b).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AScheduledJobJoinsTheLineWhenItIsDue) {
  const job_id later = push_key("k", {.run_at = time.now() + 10s});
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  advance(10s);
  EXPECT_EQ(state(later), job_state::held);
  const job_id c = push_key("k");
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), (ids{b, later, c}));
}

TEST_F(EngineKey, AScheduledJobRetriedEarlyJoinsTheLine) {
  push_key("k");
  const job_id later = push_key("k", {.run_at = time.now() + 10s});
  const leased_job l = take();
  const auto retried = e().retry(later).get();
  ASSERT_TRUE(retried);
  EXPECT_EQ(retried->state, job_state::held);
  EXPECT_EQ(code_of(e().retry(later).get()), error_code::wrong_state);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{later});
}

TEST_F(EngineKey, AtMostKeyConcurrencyJobsRun) {
  configure({.key_concurrency = 3});
  ids all;
  for (int i = 0; i < 6; ++i) all.push_back(push_key("k"));
  auto first = lease(10);
  EXPECT_EQ(ids_of(first), (ids{all[0], all[1], all[2]}));
  ASSERT_TRUE(ack(first[1]));
  auto next = lease(10);
  EXPECT_EQ(ids_of(next), ids{all[3]});
  ASSERT_TRUE(ack(first[0]));
  ASSERT_TRUE(ack(first[2]));
  ASSERT_TRUE(ack(next[0]));
  EXPECT_EQ(drain(), (ids{all[4], all[5]}));
}

TEST_F(EngineKey, AHigherKeyConcurrencyAppliesWhenTheNextJobEnds) {
  ids all;
  for (int i = 0; i < 4; ++i) all.push_back(push_key("k"));
  configure({.key_concurrency = 2});
  ASSERT_TRUE(ack(take_this(all[0])));
  EXPECT_EQ(ids_of(lease(10)), (ids{all[1], all[2]}));
}

TEST_F(EngineKey, ManyKeysAreServedEachInItsOrder) {
  options.window_jobs_max = 50;
  constexpr std::size_t keys = 2000;
  std::map<std::string, ids> pushed;
  for (int round = 0; round < 3; ++round) {
    std::vector<job_spec> specs(keys);
    for (std::size_t i = 0; i < keys; ++i) specs[i] = {.kind = "k", .key = std::to_string(i)};
    auto all = e().push_many(specs).get();
    for (std::size_t i = 0; i < keys; ++i) pushed[specs[i].key].push_back(all[i].value().id);
  }
  EXPECT_EQ(counts().held, 2 * keys);
  std::map<std::string, ids> done;
  for (;;) {
    auto leased = try_lease({.max = 1000});
    if (!leased) break;
    std::vector<ack_item> acks;
    for (const leased_job& l : *leased) {
      done[l.job->spec.key].push_back(l.job->id);
      acks.push_back({l.ref(), {}});
    }
    for (const auto& acked : e().ack_many(acks).get()) EXPECT_TRUE(acked);
  }
  EXPECT_EQ(done, pushed);
}

TEST_F(EngineKey, OrderAndExclusionSurviveACrash) {
  const job_id a = push_key("k", retried_after(5s));
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  (void)take_this(a);
  crash();
  EXPECT_TRUE(state(a) == job_state::ready && state(b) == job_state::held);
  const leased_job l = take_this(a);
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(fail(l));
  crash();
  EXPECT_TRUE(is_empty());
  advance(5s);
  ASSERT_TRUE(ack(take_this(a)));
  crash();
  EXPECT_EQ(drain(), (ids{b, c}));
}

TEST_F(EngineKey, ASavedLeaseKeepsItsPosition) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  reopen();
  EXPECT_TRUE(is_empty());
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AJobDroppedFromAFullQueueReleasesTheNext) {
  configure({.capacity_jobs = 3, .when_full = overflow::drop_oldest});
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  const job_id other = push_key("other");  // drops a, the only ready job
  EXPECT_FALSE(has(a));
  EXPECT_EQ(drain(), (ids{b, c, other}));
}

TEST_F(EngineKey, TheDroppedLatestJobReleasesTheNext) {
  configure({.capacity_jobs = 2, .when_full = overflow::latest});
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");  // only a is ready, so it is dropped
  EXPECT_FALSE(has(a));
  EXPECT_EQ(drain(), (ids{b, c}));
}

TEST_F(EngineKey, APurgeLeavesOnlyTheRunningJob) {
  const job_id a = push_key("k");
  for (int i = 0; i < 5; ++i) push_key("k");
  const leased_job l = take_this(a);
  EXPECT_EQ(e().purge("default").get().value(), 5U);
  const job_id next = push_key("k");
  EXPECT_EQ(state(next), job_state::held);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{next});
}

TEST_F(EngineKey, APurgeOfAWholeLineLeavesTheKeyFree) {
  for (int i = 0; i < 5; ++i) push_key("k");
  EXPECT_EQ(e().purge("default").get().value(), 5U);
  EXPECT_TRUE(is_empty());
  const job_id next = push_key("k");
  EXPECT_EQ(drain(), ids{next});
}

TEST_F(EngineKey, ARemovedHeadReleasesTheNext) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  ASSERT_TRUE(e().remove(a).get());
  EXPECT_EQ(drain(), ids{b});
}

TEST_F(EngineKey, AFailedAckReleasesNoJob) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const leased_job l = take_this(a);
  drive.fails(error_code::io_error);
  EXPECT_FALSE(ack(l));
  EXPECT_TRUE(is_empty());
  drive.works();
  advance(1s);
  EXPECT_EQ(state(b), job_state::held);
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(drain(), ids{b});
}

// Several changes of one line in one commit.

TEST_F(EngineKey, AJobReleasedAndCancelledInOneCommitIsCancelled) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  const leased_job l = take_this(a);
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto cancelled = e().cancel(b);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_TRUE(cancelled.get());
  });
  EXPECT_EQ(state(b), job_state::cancelled);
  EXPECT_EQ(counts().held, 0U);
  EXPECT_EQ(drain(), ids{c});
}

TEST_F(EngineKey, AJobCancelledBeforeItsReleaseStaysCancelled) {
  job_spec once;
  once.retry = {.attempts_max = 1};
  const job_id a = push_key("k", once);
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  (void)take_this(a);
  in_one_commit([&] {
    auto cancelled = e().cancel(b);  // staged first; then the lease expires, and a is dead
    time.advance(60s);
    drive.unblock();
    EXPECT_TRUE(cancelled.get());
  });
  EXPECT_EQ(state(a), job_state::dead);
  EXPECT_EQ(state(b), job_state::cancelled);
  EXPECT_EQ(drain(), ids{c});
}

TEST_F(EngineKey, AJobReleasedAndRemovedInOneCommitIsRemoved) {
  const job_id a = push_key("k");
  const job_id b = push_key("k");
  const job_id c = push_key("k");
  const leased_job l = take_this(a);
  in_one_commit([&] {
    auto acked = e().ack(l.ref());
    auto removed = e().remove(b);
    auto purged = e().purge("default");
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_TRUE(removed.get());
    EXPECT_EQ(purged.get().value(), 1U);
  });
  EXPECT_FALSE(has(b));
  EXPECT_FALSE(has(c));
  EXPECT_EQ(counts().unfinished(), 0U);
}

TEST_F(EngineKey, AJobPushedWhileTheKeyBecomesFreeIsNotStuck) {
  const job_id a = push_key("k");
  const leased_job l = take_this(a);
  job_id first = 0;
  job_id second = 0;
  in_one_commit([&] {
    auto held = begin_push({.key = "k"});
    auto acked = e().ack(l.ref());
    auto free = begin_push({.key = "k"});
    drive.unblock();
    first = held.get().value().id;
    EXPECT_TRUE(acked.get());
    second = free.get().value().id;
  });
  EXPECT_EQ(drain(), (ids{first, second}));
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_key_test
