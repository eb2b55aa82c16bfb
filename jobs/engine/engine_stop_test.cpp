// Shutdown, and the state that the next process finds.
#include <gtest/gtest.h>

#include <set>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_stop_test {
namespace {

using EngineStop = engine_words;

TEST_F(EngineStop, CloseRejectsLeasesButAcceptsPushesAndReports) {
  push_some(4);
  const auto leased = lease(4);
  auto waiting_lease = e().lease({.queues = {"other"}});
  e().close();
  EXPECT_EQ(code_of(waiting_lease.get()), error_code::shutting_down);
  const job_id late = push();
  EXPECT_EQ(state(late), job_state::ready);
  EXPECT_EQ(e().push_many({{.kind = "k"}}, bulk::all_or_nothing).get().at(0)->outcome,
            push_receipt::fate::accepted);
  EXPECT_EQ(code_of(try_lease()), error_code::shutting_down);
  EXPECT_EQ(e().health().code, error_code::shutting_down);
  EXPECT_TRUE(e().extend(leased[0].ref()));
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_TRUE(fail(leased[1]));
  EXPECT_TRUE(e().release(leased[2].ref()).get());
  EXPECT_EQ(state(leased[2].job->id), job_state::ready);
}

TEST_F(EngineStop, DrainedIsReadyWhenNothingRuns) {
  EXPECT_EQ(e().drained().get(), status::ok);
  push_some(2);
  const auto leased = lease(2);
  auto drained = e().drained();
  auto late = e().drained(deadline::after(5s, time.timers()));
  std::stop_source stop;
  auto stopped = e().drained(stop.get_token());
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_FALSE(drained.is_ready());
  stop.request_stop();
  EXPECT_EQ(stopped.get(), status::stopped);
  time.advance(5s);
  EXPECT_EQ(late.get(), status::timed_out);
  EXPECT_TRUE(ack(leased[1]));
  EXPECT_EQ(drained.get(), status::ok);
}

TEST_F(EngineStop, EveryPendingCallIsAnswered) {
  configure({.capacity_jobs = 1, .when_full = overflow::block}, "full");
  push({.queue = "full"});
  const job_id running = push();
  const leased_job l = take();
  settle();
  drive.block();
  auto in_commit = begin_push({.queue = "a"});
  drive.await_blocked();
  auto staged = begin_push({.queue = "a"});
  auto blocked = begin_push({.queue = "full"});
  auto leases = e().lease({.queues = {"none"}});
  auto waits = e().wait(running);
  auto cancels = e().cancel(running);
  auto removes = e().remove(99);
  auto purges = e().purge("a");
  auto configures = e().configure("b", {});
  auto drained = e().drained();
  auto gets = e().get(running);
  auto lists = e().list({});
  seam::thread stops([&] { e().stop(); });
  sluice::testing::eventually([&] { return leases.is_ready(); });
  drive.unblock();
  stops.join();
  EXPECT_TRUE(in_commit.get());
  EXPECT_TRUE(staged.get()) << "accepted jobs are stored";
  EXPECT_EQ(code_of(blocked.get()), error_code::shutting_down);
  EXPECT_EQ(code_of(leases.get()), error_code::shutting_down);
  EXPECT_TRUE(cancels.get());
  EXPECT_EQ(waits.get()->state, job_state::cancelled);
  EXPECT_EQ(code_of(removes.get()), error_code::not_found);
  (void)purges.get();
  EXPECT_TRUE(configures.get());
  EXPECT_EQ(drained.get(), status::closed);
  EXPECT_TRUE(gets.get());
  EXPECT_TRUE(lists.get());
  engine_.reset();
  open();
}

TEST_F(EngineStop, LaterCallsFailWithShuttingDown) {
  push();
  const leased_job l = take();
  e().stop();
  e().stop();
  EXPECT_EQ(code_of(e().push({.kind = "k"}).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().push_many({{.kind = "k"}}).get()[0]), error_code::shutting_down);
  EXPECT_EQ(code_of(e().lease({}).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(ack(l)), error_code::shutting_down);
  EXPECT_EQ(code_of(e().ack_many({{l.ref(), {}}}).get()[0]), error_code::shutting_down);
  EXPECT_EQ(code_of(fail(l)), error_code::shutting_down);
  EXPECT_EQ(code_of(e().release(l.ref()).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().extend(l.ref())), error_code::shutting_down);
  EXPECT_EQ(code_of(e().get(1).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().list({}).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().list({.state = job_state::running}).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().wait(1).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().cancel(1).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().configure("q", {}).get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().purge("q").get()), error_code::shutting_down);
  EXPECT_EQ(e().drained().get(), status::closed);
  EXPECT_EQ(e().queues().size(), 1U);
  engine_.reset();
  open();
}

TEST_F(EngineStop, LeasesAreRestoredByTheNextEngine) {
  const ids all = push_some(3, {.retry = {.first = 1h}, .lease_for = 30s});
  const auto leased = try_lease({.max = 2, .worker = "ada"});
  reopen();
  EXPECT_EQ(counts().running, 2U);
  EXPECT_EQ(state(all[0]), job_state::running);
  EXPECT_EQ(take().job->id, all[2]) << "leased jobs are not leased again";
  EXPECT_TRUE(e().extend(leased->at(0).ref()));
  EXPECT_TRUE(ack(leased->at(0)));
  EXPECT_FALSE(has(all[0]));
  advance(30s);
  EXPECT_EQ(state(all[1]), job_state::retrying);
  const attempt_error why = get(all[1]).errors.at(0);
  EXPECT_EQ(why.type, "lease_expired");
  EXPECT_NE(why.message.find("'ada'"), std::string::npos);
}

TEST_F(EngineStop, ALeaseThatExpiredWithoutAServerGetsItsDurationAgain) {
  const job_id id = push({.lease_for = 10s});
  const leased_job l = take();
  e().stop();
  engine_.reset();
  time.advance(1h);
  open();
  settle();
  EXPECT_EQ(state(id), job_state::running);
  advance(9s);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineStop, ARestartDoesNotProlongALease) {
  const job_id id = push({.retry = {.first = 1h}, .lease_for = 10s});
  (void)take();
  for (int restart = 0; restart < 3; ++restart) {
    advance(3s);
    reopen();
    EXPECT_EQ(state(id), job_state::running);
  }
  advance(999ms);
  EXPECT_EQ(state(id), job_state::running);
  advance(1ms);
  EXPECT_EQ(state(id), job_state::retrying);
}

TEST_F(EngineStop, LimitsCountASavedLease) {
  configure({.concurrency = 1}, "one");
  push({.queue = "one"});
  push({.queue = "one"});
  const job_id first = push({.queue = "keyed", .key = "a"});
  const job_id second = push({.queue = "keyed", .key = "a"});
  const leased_job of_one = e().lease({.queues = {"one"}}).get()->front();
  const leased_job of_key = e().lease({.queues = {"keyed"}}).get()->front();
  EXPECT_EQ(of_key.job->id, first);
  reopen();
  EXPECT_EQ(code_of(e().lease({.queues = {"one", "keyed"}}, at_once()).get()),
            error_code::timed_out);
  EXPECT_TRUE(ack(of_one));
  EXPECT_TRUE(ack(of_key));
  EXPECT_EQ(e().lease({.queues = {"keyed"}}).get()->front().job->id, second);
  EXPECT_TRUE(e().lease({.queues = {"one"}}).get());
}

TEST_F(EngineStop, ACancelledJobCountsAfterARestartUntilItsLeaseEnds) {
  configure({.concurrency = 1}, "one");
  push({.queue = "one"});
  push({.queue = "one"});
  push({.queue = "keyed", .key = "a"});
  push({.queue = "keyed", .key = "a"});
  const leased_job of_one = e().lease({.queues = {"one"}}).get()->front();
  const leased_job of_key = e().lease({.queues = {"keyed"}}).get()->front();
  ASSERT_TRUE(e().cancel(of_one.job->id).get());
  ASSERT_TRUE(e().cancel(of_key.job->id).get());
  reopen();
  EXPECT_EQ(code_of(e().lease({.queues = {"one", "keyed"}}, at_once()).get()),
            error_code::timed_out);
  EXPECT_TRUE(e().extend(of_one.ref())->cancelled) << "extend reports the cancel to its worker";
  EXPECT_TRUE(ack(of_one));
  EXPECT_TRUE(e().lease({.queues = {"one"}}).get());
  EXPECT_TRUE(ack(of_key));
  EXPECT_TRUE(e().lease({.queues = {"keyed"}}).get());
  EXPECT_EQ(state(of_one.job->id), job_state::cancelled);
}

TEST_F(EngineStop, TheDurationAndTheProgressOfALeaseSurviveARestart) {
  const job_id id = push({.lease_for = 10s});
  const leased_job l = e().lease({.queues = {"default"}, .lease_for = 30s}).get()->front();
  ASSERT_TRUE(e().report(l.ref(), {.percent = 40, .text = "half"}));
  reopen();
  EXPECT_EQ(get(id).progress->percent, 40);
  const auto extended = e().extend(l.ref());
  ASSERT_TRUE(extended);
  EXPECT_EQ(extended->until, time.now() + 30s);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineStop, ASavedLeaseIsDeletedBeforeItsJobChanges) {
  push();
  const leased_job l = take();
  e().stop();
  engine_.reset();
  drive.fails(error_code::io_error);
  open();
  settle();
  drive.works();
  // Before the probe: this commit is the first that succeeds.
  ASSERT_TRUE(fail(l, {.type = "io", .retry_in = 1ms}));
  advance(1ms);
  ASSERT_EQ(state(l.job->id), job_state::ready);
  crash();
  EXPECT_EQ(counts().running, 0U) << "a saved lease was restored although its job had changed";
  EXPECT_EQ(take().job->id, l.job->id);
}

TEST_F(EngineStop, ATimeLimitAppliesAcrossARestart) {
  const job_id id = push({.retry = {.first = 1h}, .lease_for = 10s, .time_limit = 15s});
  const leased_job l = take();
  advance(8s);
  ASSERT_TRUE(e().extend(l.ref()));
  reopen();
  advance(7s + 2499ms);
  EXPECT_EQ(state(id), job_state::running);
  advance(1ms);
  EXPECT_EQ(state(id), job_state::retrying);
  EXPECT_EQ(get(id).errors.at(0).type, "time_limit");
}

TEST_F(EngineStop, SavedLeasesAreDeletedAfterTheirRestore) {
  push();
  const leased_job l = take();
  reopen();
  EXPECT_TRUE(e().release(l.ref()).get());
  settle();
  crash();
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(take().job->id, l.job->id);
}

TEST_F(EngineStop, SavedLeasesThatCouldNotBeDeletedAreDeletedLater) {
  push();
  const leased_job l = take();
  e().stop();
  engine_.reset();
  drive.fails(error_code::io_error);
  open();
  settle();
  drive.works();
  advance(options.probe_every);
  EXPECT_TRUE(e().release(l.ref()).get());
  crash();
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(take().job->id, l.job->id);
}

TEST_F(EngineStop, ALeaseThatEndedBeforeTheStopIsNotSaved) {
  push_some(2);
  const auto leased = lease(2);
  EXPECT_TRUE(e().release(leased[0].ref()).get());
  EXPECT_TRUE(ack(leased[1]));
  reopen();
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(take().job->id, leased[0].job->id);
  EXPECT_EQ(code_of(ack(leased[1])), error_code::lease_lost);
}

TEST_F(EngineStop, AfterACrashRunningJobsAreReadyAtOnce) {
  const ids all = push_some(3);
  const auto leased = lease(2);
  settle();
  crash();
  EXPECT_EQ(counts().running, 0U);
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_EQ(code_of(ack(leased[0])), error_code::lease_lost);
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineStop, EveryAcknowledgedJobSurvivesACrash) {
  configure({.keep_done = 1h});
  const job_id ready = push({.priority = 3, .metadata = "{}"});
  const job_id scheduled = push({.run_at = time.now() + 5s});
  const job_id done = push({.priority = 9});
  ASSERT_TRUE(ack(take(), payload{"1"}));
  const job_id retrying = push({.priority = 9});
  ASSERT_TRUE(fail(take(), {.type = "io", .retry_in = 5s}));
  const std::vector<job> before = list_all({});
  crash();
  EXPECT_EQ(list_all({}), before);
  EXPECT_EQ(state(ready), job_state::ready);
  EXPECT_EQ(state(scheduled), job_state::scheduled);
  EXPECT_EQ(state(done), job_state::done);
  EXPECT_EQ(state(retrying), job_state::retrying);
  advance(5s);
  EXPECT_EQ(counts().ready, 3U);
}

TEST_F(EngineStop, JobsThatBecameDueMeanwhileAreReadyOrDeleted) {
  const job_id later = push({.run_at = time.now() + 5s});
  const job_id done = push({.keep_for = 5s});
  ASSERT_TRUE(ack(take()));
  e().stop();
  engine_.reset();
  time.advance(10s);
  open();
  EXPECT_EQ(e().lease({}).get()->front().job->id, later);
  EXPECT_FALSE(has(done));
}

TEST_F(EngineStop, IdsAndKeysAreNeverReused) {
  std::set<job_id> seen;
  for (int life = 0; life < 6; ++life) {
    for (const job_id id : push_some(3)) EXPECT_TRUE(seen.insert(id).second);
    drain();
    if (life % 2 == 0) {
      reopen();
    } else {
      crash();
    }
  }
  EXPECT_EQ(*seen.begin(), 1U);
}

TEST_F(EngineStop, UniqueKeysSurviveARestart) {
  const job_spec spec{.kind = "k", .unique = {.key = "a"}};
  const job_id id = push(spec);
  crash();
  EXPECT_EQ(try_push(spec)->id, id);
  EXPECT_EQ(try_push(spec)->outcome, push_receipt::fate::duplicate);
}

TEST_F(EngineStop, AStopOnAFailingDiskLosesNoAcknowledgedJob) {
  const ids all = push_some(3);
  const leased_job l = take();
  drive.fails(error_code::io_error);
  auto acked = e().ack(l.ref());
  EXPECT_EQ(code_of(acked.get()), error_code::io_error);
  e().stop();
  engine_.reset();
  drive.works();
  open();
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineStop, AStoreThatCannotBeLoadedIsNotOpened) {
  drive.reads_fail(true);
  auto kept = std::make_unique<failing_reads>(make_memory_store(drive.on(contents)), drive);
  EXPECT_EQ(code_of(engine::open(std::move(kept), options)), error_code::io_error);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_stop_test
