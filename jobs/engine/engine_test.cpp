#include "jobs/engine/engine.hpp"

#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_test {
namespace {

using Engine = engine_words;

TEST_F(Engine, LeasesPushedJobsAndDeletesAckedOnes) {
  const job_id id = push({.kind = "mail", .args = {"{}"}});
  const leased_job l = take();
  EXPECT_EQ(l.job->id, id);
  EXPECT_EQ(l.job->spec.kind, "mail");
  EXPECT_EQ(l.job->spec.args.data, "{}");
  EXPECT_EQ(l.attempt, 1U);
  EXPECT_EQ(state(id), job_state::running);
  EXPECT_TRUE(ack(l));
  EXPECT_FALSE(has(id));
  EXPECT_EQ(counts(), queue_counts{});
}

TEST_F(Engine, ALeaseWaitsForAPush) {
  auto waits = e().lease({});
  const job_id id = push();
  EXPECT_EQ(waits.get()->front().job->id, id);
}

TEST_F(Engine, LeasesJobsByPriorityThenByArrival) {
  const job_id a = push({.priority = 0});
  const job_id b = push({.priority = 5});
  const job_id c = push({.priority = 0});
  const job_id d = push({.priority = -5});
  const job_id f = push({.priority = 5});
  EXPECT_EQ(drain(), (ids{b, f, a, c, d}));
}

TEST_F(Engine, RejectsAJobAboveALimitAndNamesTheLimit) {
  auto pushed = e().push({.kind = ""}).get();
  EXPECT_EQ(code_of(pushed), error_code::invalid);
  EXPECT_NE(pushed.error().message.find("kind"), std::string::npos);
  EXPECT_EQ(code_of(try_push({.queue = "no spaces"})), error_code::invalid);
  EXPECT_TRUE(e().queues().empty());
}

TEST_F(Engine, ADelayedJobIsLeasedWhenItIsDueAndNotBefore) {
  const job_id later = push({.run_at = time.now() + 10s});
  const job_id now = push();
  EXPECT_EQ(state(later), job_state::scheduled);
  EXPECT_EQ(counts().scheduled, 1U);
  EXPECT_EQ(drain(), ids{now});
  auto waits = e().lease({});
  advance(9999ms);
  EXPECT_FALSE(waits.is_ready());
  time.advance(1ms);
  EXPECT_EQ(ids_of(waits.get().value()), ids{later});
}

TEST_F(Engine, AJobScheduledInThePastIsReadyAtOnce) {
  EXPECT_EQ(state(push({.run_at = time.now() - 1s})), job_state::ready);
}

TEST_F(Engine, DelayedJobsArriveInTheOrderOfTheirTimes) {
  const job_id c = push({.run_at = time.now() + 3s});
  const job_id a = push({.run_at = time.now() + 1s});
  const job_id b = push({.run_at = time.now() + 2s});
  advance(5s);
  EXPECT_EQ(drain(), (ids{a, b, c}));
}

TEST_F(Engine, MoreDueJobsThanAPageAllBecomeReady) {
  std::vector<job_spec> many(2500, job_spec{.kind = "k", .run_at = time.now() + 1s});
  for (auto& r : e().push_many(many).get()) ASSERT_TRUE(r);
  advance(1s);
  sluice::testing::eventually([&] { return counts().ready == 2500; });
  EXPECT_EQ(counts().scheduled, 0U);
}

// Leasing.

TEST_F(Engine, AStrictLeaseTriesItsQueuesInOrder) {
  const job_id low = push({.queue = "low", .priority = 9});
  const job_id high = push({.queue = "high"});
  auto leased = try_lease({.queues = {"high", "low"}, .max = 10});
  EXPECT_EQ(ids_of(*leased), (ids{high, low}));
}

TEST_F(Engine, ALeaseThatMayNotWaitTimesOutIfNoJobIsReady) {
  EXPECT_EQ(code_of(try_lease()), error_code::timed_out);
  EXPECT_TRUE(e().queues().empty()) << "a lease creates no queue";
}

TEST_F(Engine, WaitingLeasesAreServedInOrderOfArrival) {
  auto first = e().lease({});
  auto second = e().lease({.max = 5});
  auto third = e().lease({});
  const job_id a = push();
  const job_id b = push();
  EXPECT_EQ(ids_of(first.get().value()), ids{a});
  EXPECT_EQ(ids_of(second.get().value()), ids{b});
  settle();
  EXPECT_FALSE(third.is_ready());
  EXPECT_EQ(e().stats().waiting_leases, 1U);
}

TEST_F(Engine, AWaitingLeaseEndsAtItsDeadline) {
  auto waits = e().lease({}, deadline::after(5s, time.timers()));
  settle();
  time.advance(4s);
  settle();
  EXPECT_FALSE(waits.is_ready());
  time.advance(1s);
  EXPECT_EQ(code_of(waits.get()), error_code::timed_out);
  EXPECT_EQ(e().stats().waiting_leases, 0U);
  const job_id id = push();
  EXPECT_EQ(state(id), job_state::ready) << "it is not leased";
}

TEST_F(Engine, AWaitingLeaseEndsOnAStopRequest) {
  std::stop_source stop;
  auto waits = e().lease({.queues = {"a", "b"}}, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(code_of(waits.get()), error_code::stopped);
  push();
  auto late = e().lease({}, stop.get_token());
  EXPECT_EQ(code_of(late.get()), error_code::stopped) << "a stop has precedence over a ready job";
}

TEST_F(Engine, CancellingTheFutureOfALeaseEndsItsWait) {
  auto waits = e().lease({});
  waits.cancel();
  EXPECT_EQ(code_of(waits.get()), error_code::stopped);
  const job_id id = push();
  EXPECT_EQ(state(id), job_state::ready);
}

TEST_F(Engine, ALeaseGetsTheFirstJobThatArrivesInAnyOfItsQueues) {
  auto waits = e().lease({.queues = {"a", "b", "c"}});
  const job_id id = push({.queue = "b"});
  EXPECT_EQ(ids_of(waits.get().value()), ids{id});
  EXPECT_EQ(e().queues().size(), 1U) << "queues with only waiting calls are deleted";
}

TEST_F(Engine, OneCallLeasesAtMostLeaseMaxJobs) {
  options.lease_max = 3;
  push_some(5);
  EXPECT_EQ(lease(100).size(), 3U);
}

TEST_F(Engine, AnInvalidLeaseIsRejected) {
  EXPECT_EQ(code_of(try_lease({.queues = {}})), error_code::invalid);
  EXPECT_EQ(code_of(try_lease({.queues = {"a b"}})), error_code::invalid);
  EXPECT_EQ(code_of(try_lease({.max = 0})), error_code::invalid);
  EXPECT_EQ(code_of(try_lease({.lease_for = -1ms})), error_code::invalid);
  EXPECT_EQ(code_of(try_lease({.lease_for = milliseconds::max()})), error_code::invalid);
  EXPECT_EQ(code_of(try_lease({.queues = std::vector<std::string>(1001, "q")})),
            error_code::too_large);
}

TEST_F(Engine, AtMostRunningMaxJobsRun) {
  options.running_max = 2;
  push_some(3);
  const auto leased = lease(5);
  EXPECT_EQ(leased.size(), 2U);
  EXPECT_EQ(code_of(try_lease()), error_code::overloaded);
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_EQ(lease(5).size(), 1U);
}

// Leases waiting for a job of another queue are blocked by running_max as well.
TEST_F(Engine, AnEndedLeaseServesCallsBlockedByRunningMaxInAnyQueue) {
  options.running_max = 1;
  push({.queue = "a"});
  auto waits = e().lease({.queues = {"b"}});
  const leased_job l = take("a");
  const job_id id = push({.queue = "b"});
  settle();
  EXPECT_FALSE(waits.is_ready());
  EXPECT_TRUE(ack(l));
  EXPECT_EQ(ids_of(waits.get().value()), ids{id});
}

TEST_F(Engine, ReleasingACancelledJobServesCallsBlockedByRunningMax) {
  options.running_max = 1;
  const job_id first = push({.queue = "a"});
  auto waits = e().lease({.queues = {"b"}});
  const leased_job l = take("a");
  push({.queue = "b"});
  ASSERT_TRUE(e().cancel(first).get());
  EXPECT_TRUE(ack(l));
  EXPECT_EQ(waits.get()->size(), 1U);
}

TEST_F(Engine, AtMostWaitingMaxCallsWait) {
  options.waiting_max = 2;
  auto one = e().lease({});
  auto two = e().lease({});
  EXPECT_EQ(code_of(e().lease({}).get()), error_code::overloaded);
  const job_id id = push();
  EXPECT_EQ(ids_of(one.get().value()), ids{id});
  EXPECT_FALSE(e().lease({}).is_ready());
}

// Queues.

TEST_F(Engine, APausedQueueAcceptsPushesAndLeasesNothing) {
  configure({.paused = true});
  const job_id id = push();
  EXPECT_TRUE(is_empty());
  auto waits = e().lease({});
  settle();
  EXPECT_FALSE(waits.is_ready());
  configure({.paused = false});
  EXPECT_EQ(ids_of(waits.get().value()), ids{id});
}

TEST_F(Engine, ConfigureChangesOnlySetOptionsAndCreatesTheQueue) {
  auto first = e().configure("mail", {.capacity_jobs = 5}).get();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->name, "mail");
  configure({.lease_for = 5s}, "mail");
  const auto info = e().queue("mail");
  EXPECT_EQ(info->options.capacity_jobs, 5U);
  EXPECT_EQ(info->options.lease_for, 5s);
  EXPECT_EQ(info->options.keep_dead, queue_options{}.keep_dead);
  reopen();
  EXPECT_EQ(e().queue("mail")->options, info->options);
}

TEST_F(Engine, ConfigureRejectsInvalidOptions) {
  EXPECT_EQ(code_of(e().configure("q", {.capacity_jobs = 0}).get()), error_code::invalid);
  EXPECT_EQ(code_of(e().configure("q", {.when_full = overflow::caller_runs}).get()),
            error_code::invalid);
  EXPECT_EQ(code_of(e().configure("no spaces", {}).get()), error_code::invalid);
  EXPECT_TRUE(e().queues().empty());
}

TEST_F(Engine, AtMostQueuesMaxQueuesExist) {
  options.queues_max = 2;
  push({.queue = "a"});
  push({.queue = "b"});
  EXPECT_EQ(code_of(try_push({.queue = "c"})), error_code::overloaded);
  EXPECT_EQ(code_of(e().configure("c", {}).get()), error_code::overloaded);
  EXPECT_EQ(code_of(e().lease({.queues = {"c", "d", "e"}}).get()), error_code::overloaded);
  EXPECT_EQ(code_of(e().queue("c")), error_code::not_found);
}

TEST_F(Engine, QueuesWithOnlyWaitingCallsAreLimitedSeparately) {
  options.queues_max = 2;
  push({.queue = "a"});
  auto waits = e().lease({.queues = {"c", "d"}});
  const auto refused = e().lease({.queues = {"e"}}).get();
  EXPECT_EQ(code_of(refused), error_code::overloaded);
  EXPECT_NE(refused.error().message.find("use fewer queue names"), std::string::npos);
  EXPECT_FALSE(try_push({.queue = "c", .kind = std::string(1000, 'k')})) << "creates no queue";
  push({.queue = "b"});
  EXPECT_EQ(code_of(try_push({.queue = "c"})), error_code::overloaded);
  waits.cancel();
  EXPECT_FALSE(waits.get());
  auto again = e().lease({.queues = {"e", "f"}});
  settle();
  EXPECT_FALSE(again.is_ready()) << "the queues of the ended wait are free again";
}

TEST_F(Engine, AQueueWithOnlyWaitingCallsAcceptsPushes) {
  options.queues_max = 1;
  auto waits = e().lease({.queues = {"a"}});
  const job_id id = push({.queue = "a"});
  EXPECT_EQ(waits.get()->front().job->id, id);
  EXPECT_EQ(code_of(try_push({.queue = "b"})), error_code::overloaded);
}

// Names in rejected requests must not fill the table.
TEST_F(Engine, ARejectedRequestCreatesNoQueue) {
  options.queues_max = 1;
  const std::vector<job_spec> one_is_bad = {{.queue = "a", .kind = "k"},
                                            {.queue = "a", .kind = ""}};
  EXPECT_FALSE(e().push_many(one_is_bad, bulk::all_or_nothing).get()[0]);
  EXPECT_FALSE(e().configure("b", {.capacity_jobs = 0}).get());
  EXPECT_FALSE(e().lease({.queues = {"c", "d"}}).get());
  auto waits = e().lease({.queues = {"f"}});
  waits.cancel();
  EXPECT_FALSE(waits.get());
  EXPECT_EQ(state(push({.queue = "g"})), job_state::ready);
}

// Reading.

TEST_F(Engine, AListContinuesAtItsCursor) {
  const ids all = push_some(5);
  auto first = e().list({.limit = 2}).get();
  EXPECT_EQ(first->jobs.size(), 2U);
  EXPECT_EQ(first->cursor, all[1]);
  ids seen;
  for (const job& j : list_all({.limit = 2})) seen.push_back(j.id);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(code_of(e().list({.limit = 0}).get()), error_code::invalid);
  EXPECT_EQ(code_of(e().list({.limit = 1001}).get()), error_code::invalid);
  EXPECT_EQ(code_of(e().list({.queue = "a b"}).get()), error_code::invalid);
  EXPECT_TRUE(e().list({.queue = "nobody"}).get()->jobs.empty());
}

TEST_F(Engine, AListDistinguishesRunningFromReadyJobs) {
  const ids all = push_some(5, {.args = {"123"}});
  const auto leased = lease(2);
  const auto in_state = [&](job_state s) {
    ids found;
    for (const job& j : list_all({.state = s, .limit = 1})) {
      EXPECT_EQ(j.state, s);
      EXPECT_EQ(j.spec.args.data, "123");
      found.push_back(j.id);
    }
    return found;
  };
  EXPECT_EQ(in_state(job_state::running), (ids{all[0], all[1]}));
  EXPECT_EQ(in_state(job_state::ready), (ids{all[2], all[3], all[4]}));
  EXPECT_EQ(list_all({.state = job_state::running, .kind = "other"}).size(), 0U);
}

TEST_F(Engine, AListOfRunningJobsContainsArgsFromDisk) {
  options.window_bytes_max = 1000;
  const std::string args(5000, 'x');
  push({.args = {args, content_type::bytes}});
  (void)take();
  EXPECT_EQ(list_all({.state = job_state::running}).at(0).spec.args.data, args);
}

TEST_F(Engine, CountsItsOperations) {
  push_some(3);
  const auto leased = lease(3);
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_TRUE(fail(leased[1]));
  EXPECT_TRUE(e().release(leased[2].ref()).get());
  EXPECT_EQ(code_of(e().push({.kind = ""}).get()), error_code::invalid);
  const engine_stats s = e().stats();
  EXPECT_EQ(s.pushed, 3U);
  EXPECT_EQ(s.refused, 1U);
  EXPECT_EQ(s.leased, 3U);
  EXPECT_EQ(s.acked, 1U);
  EXPECT_EQ(s.failed, 1U);
  EXPECT_EQ(s.retried, 1U);
  EXPECT_EQ(s.given_back, 1U);
  EXPECT_EQ(s.running, 0U);
  EXPECT_EQ(s.window_jobs, 1U);
  EXPECT_GE(s.commits, 1U);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_test
