// Jobs leased to waiting workers before their commit.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_hand_over_test {
namespace {

class EngineHandOver : public engine_words {
 protected:
  future<result<std::vector<leased_job>>> begin_lease(std::size_t max = 1) {
    return e().lease({.queues = {"default"}, .max = max});
  }
  // The next ids and the queue are stored.
  void begin() {
    push();
    drain();
    settle();
  }
  // Returns when a worker has the job and the commit is blocked.
  leased_job hand_over(job_spec spec = {}) {
    begin();
    auto waits = begin_lease();
    drive.block();
    pushed = begin_push(std::move(spec));
    auto got = waits.get().value();
    drive.await_blocked();
    EXPECT_FALSE(pushed.is_ready());
    return got.front();
  }
  // Starts a commit with one push of `spec` and a waiting worker, which must get nothing before it
  // has ended.
  void expect_is_stored_first(job_spec spec) {
    settle();
    auto waits = begin_lease();
    settle();
    drive.block();
    auto pushes = begin_push(std::move(spec));
    drive.await_blocked();
    EXPECT_FALSE(waits.is_ready());
    EXPECT_TRUE(is_empty()) << "another worker could lease it";
    drive.unblock();
    EXPECT_TRUE(pushes.get());
    EXPECT_TRUE(ack(waits.get().value().front()));
  }
  std::vector<event_type> events_of(job_id id) {
    std::vector<event_type> all;
    const auto page = e().events({.after = 0, .job = id}, at_once()).get();
    if (!page) return all;
    for (const job_event& one : page->events) all.push_back(one.type);
    return all;
  }

  future<result<push_receipt>> pushed;
};

TEST_F(EngineHandOver, AWorkerGetsAJobBeforeItsCommitAndThePushIsAnsweredAfter) {
  const leased_job l = hand_over();
  EXPECT_TRUE(is_empty()) << "it is leased to one worker";
  drive.unblock();
  EXPECT_EQ(pushed.get().value().id, l.job->id);
  EXPECT_EQ(state(l.job->id), job_state::running);
  EXPECT_TRUE(ack(l));
  EXPECT_FALSE(has(l.job->id));
}

TEST_F(EngineHandOver, AnAckIsAnsweredAfterTheJobAndTheAckAreStored) {
  const leased_job l = hand_over();
  auto logged = e().log(l.ref(), {"first"});
  auto acked = e().ack(l.ref(), payload{"42"});
  EXPECT_FALSE(logged.is_ready());
  EXPECT_FALSE(acked.is_ready());
  auto again = e().ack(l.ref());
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_TRUE(logged.get());
  EXPECT_TRUE(acked.get());
  EXPECT_EQ(code_of(again.get()), error_code::lease_lost);
  const job j = get(l.job->id);
  EXPECT_EQ(j.state, job_state::done);
  EXPECT_EQ(j.result->data, "42");
  EXPECT_EQ(e().logs(j.id).get().value().lines.size(), 1U);
}

TEST_F(EngineHandOver, AFailureIsCountedAfterTheJobIsStored) {
  const leased_job l = hand_over({.retry = {.first = 1h}});
  auto failed = e().fail(l.ref(), {.type = "bad"});
  EXPECT_FALSE(failed.is_ready());
  drive.unblock();
  EXPECT_EQ(failed.get().value().state, job_state::retrying);
  EXPECT_EQ(get(l.job->id).errors.size(), 1U);
}

TEST_F(EngineHandOver, AReleasedJobIsLeasedAgainAfterItIsStored) {
  const leased_job l = hand_over();
  auto back = e().release(l.ref(), {});
  EXPECT_FALSE(back.is_ready());
  EXPECT_TRUE(is_empty());
  drive.unblock();
  EXPECT_TRUE(back.get());
  EXPECT_EQ(take().job->id, l.job->id);
}

TEST_F(EngineHandOver, AJobReleasedWithADelayIsScheduledAfterItIsStored) {
  const leased_job l = hand_over();
  auto back = e().release(l.ref(), {.delay = 5s});
  EXPECT_FALSE(back.is_ready());
  drive.unblock();
  EXPECT_TRUE(back.get());
  EXPECT_EQ(state(l.job->id), job_state::scheduled);
}

TEST_F(EngineHandOver, AFailedCommitEndsTheLeaseAndThePushReportsIt) {
  for (const error_code code : {error_code::io_error, error_code::disk_full, error_code::locked}) {
    SCOPED_TRACE(static_cast<int>(code));
    const leased_job l = hand_over();
    auto logged = e().log(l.ref(), {"first"});
    auto acked = e().ack(l.ref());
    drive.fails(code);
    drive.unblock();
    const auto refused = pushed.get();
    EXPECT_EQ(code_of(refused), error_code::io_error)
        << "every other code means that nothing was done";
    EXPECT_NE(refused.error().message.find("made to fail; a worker had already leased the job"),
              std::string::npos)
        << refused.error().message;
    EXPECT_EQ(code_of(logged.get()), error_code::lease_lost);
    EXPECT_EQ(code_of(acked.get()), error_code::lease_lost);
    EXPECT_EQ(code_of(e().extend(l.ref())), error_code::lease_lost);
    EXPECT_EQ(code_of(ack(l)), error_code::lease_lost);
    EXPECT_EQ(code_of(fail(l)), error_code::lease_lost);
    EXPECT_EQ(code_of(e().release(l.ref(), {}).get()), error_code::lease_lost);
    EXPECT_FALSE(has(l.job->id));
    EXPECT_EQ(counts().running, 0U);
    EXPECT_EQ(e().health().code, code);
    EXPECT_EQ(events_of(l.job->id), std::vector<event_type>{});
    drive.works();
    advance(options.probe_every);
    EXPECT_TRUE(is_empty());
  }
}

// The acks of the same commit are stored without the push.
TEST_F(EngineHandOver, OnAFullDiskOnlyThePushedJobIsLost) {
  begin();
  push_some(2);
  const leased_job before = take();
  const leased_job old = take();
  auto waits = begin_lease();
  settle();
  drive.block();
  auto first = e().ack(before.ref());
  drive.await_blocked();
  pushed = begin_push({});
  auto acked = e().ack(old.ref());
  drive.is_full();
  drive.unblock();
  EXPECT_TRUE(first.get());
  const leased_job l = waits.get().value().front();
  EXPECT_EQ(code_of(pushed.get()), error_code::io_error);
  EXPECT_TRUE(acked.get());
  EXPECT_EQ(code_of(ack(l)), error_code::lease_lost);
  EXPECT_FALSE(has(old.job->id));
}

// A change that does not match the file is removed, and the rest is applied again.
TEST_F(EngineHandOver, ARetriedCommitLeasesNoJobTwice) {
  begin();
  push();
  const leased_job old = take();
  auto waits = begin_lease();
  auto more = begin_lease();
  std::optional<future<void_result>> acked;
  in_one_commit([&] {
    pushed = begin_push({});
    acked = e().ack(old.ref());
    drive.fails_when([id = old.job->id](const transaction& b) -> std::optional<error> {
      for (const change& c : b.changes) {
        if (c.id == id) return error{error_code::corrupt, "not there", id};
      }
      return std::nullopt;
    });
  });
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(code_of(acked->get()), error_code::corrupt);
  EXPECT_TRUE(ack(waits.get().value().front()));
  EXPECT_FALSE(more.is_ready());
  drive.works();
  push();
  EXPECT_TRUE(ack(more.get().value().front()));
  (void)e().remove(old.job->id).get();
}

TEST_F(EngineHandOver, AQueueCountsAnUnstoredLeasedJobAsRunning) {
  const leased_job l = hand_over();
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(counts().ready, 0U);
  EXPECT_EQ(e().stats().running, 1U);
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(counts().ready, 0U);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineHandOver, AReaderFindsItRunning) {
  const leased_job l = hand_over({.args = {"1"}});
  EXPECT_TRUE(e().extend(l.ref(), 0s, progress{50, "half"}));
  const job j = get(l.job->id);
  EXPECT_EQ(j.state, job_state::running);
  EXPECT_EQ(j.spec.args.data, "1");
  EXPECT_EQ(j.progress->percent, 50);
  EXPECT_EQ(list_all({.state = job_state::running}).size(), 1U);
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(get(l.job->id).state, job_state::running);
  EXPECT_TRUE(ack(l));
  EXPECT_FALSE(has(l.job->id));
}

// A deleted job counts as done.
TEST_F(EngineHandOver, ADependentPushWaitsUntilItIsStored) {
  const leased_job l = hand_over();
  const dependency after{.on = l.job->id};
  auto one = begin_push({.after = {after}});
  auto many = e().push_many({{.kind = "a"}, {.kind = "b", .after = {after}}}, bulk::all_or_nothing);
  EXPECT_FALSE(one.is_ready());
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(state(one.get().value().id), job_state::held);
  const auto both = many.get();
  EXPECT_EQ(state(both[0].value().id), job_state::ready);
  EXPECT_EQ(state(both[1].value().id), job_state::held);
}

TEST_F(EngineHandOver, ADependentPushIsRejectedIfItIsNotStored) {
  const leased_job l = hand_over();
  const dependency after{.on = l.job->id};
  auto one = begin_push({.after = {after}});
  auto many = e().push_many({{.kind = "a"}, {.kind = "b", .after = {after}}}, bulk::all_or_nothing);
  const auto has_failed = std::make_shared<bool>(false);
  drive.fails_when([has_failed](const transaction&) -> std::optional<error> {
    if (std::exchange(*has_failed, true)) return std::nullopt;
    return error{error_code::locked, "once"};
  });
  drive.unblock();
  EXPECT_EQ(code_of(pushed.get()), error_code::io_error);
  EXPECT_EQ(code_of(one.get()), error_code::locked);
  for (const auto& each : many.get()) EXPECT_EQ(code_of(each), error_code::locked);
  advance(options.probe_every);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(counts().held, 0U);
}

TEST_F(EngineHandOver, WaitingDependentPushesAreBounded) {
  options.staged_bytes_max = 200;
  const leased_job l = hand_over();
  const dependency after{.on = l.job->id};
  const payload large{std::string(200, 'x')};
  auto one = begin_push({.args = large, .after = {after}});
  auto many = e().push_many({{.kind = "a", .args = large, .after = {after}}}, bulk::all_or_nothing);
  EXPECT_EQ(code_of(one.get()), error_code::overloaded);
  EXPECT_EQ(code_of(many.get().front()), error_code::overloaded);
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineHandOver, EventsAreAddedInOrderAfterItIsStored) {
  const leased_job l = hand_over();
  EXPECT_TRUE(e().extend(l.ref(), 0s, progress{50, "half"}));
  EXPECT_EQ(events_of(l.job->id), std::vector<event_type>{});
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(events_of(l.job->id), (std::vector<event_type>{event_type::pushed, event_type::started,
                                                           event_type::progress}));
  EXPECT_EQ(get(l.job->id).progress->percent, 50);
}

TEST_F(EngineHandOver, ALeaseExpiringDuringTheCommitEndsAfterIt) {
  const leased_job l = hand_over({.retry = {.first = 1h}, .lease_for = 1s});
  time.advance(5s);
  drive.unblock();
  EXPECT_TRUE(pushed.get());
  advance(options.probe_every);
  EXPECT_EQ(state(l.job->id), job_state::retrying);
  EXPECT_EQ(e().stats().expired, 1U);
}

TEST_F(EngineHandOver, AStopWaitsUntilItIsStoredAndSavesItsLease) {
  const leased_job l = hand_over();
  std::thread stops([&] { e().stop(); });
  drive.unblock();
  stops.join();
  EXPECT_TRUE(pushed.get());
  engine_.reset();
  open();
  EXPECT_TRUE(is_empty()) << "the lease was restored";
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineHandOver, AfterACrashItsIdIsNotReused) {
  const leased_job l = hand_over();
  drive.fails(error_code::io_error);
  drive.unblock();
  EXPECT_FALSE(pushed.get());
  engine_.reset();
  drive.works();
  open();
  EXPECT_FALSE(has(l.job->id));
  EXPECT_GT(push(), l.job->id);
  EXPECT_EQ(code_of(ack(l)), error_code::lease_lost);
}

// Eligible jobs.

TEST_F(EngineHandOver, TheFirstJobOfABlockOfIdsIsStoredFirst) {
  configure({});  // the queue exists
  expect_is_stored_first({});
}

TEST_F(EngineHandOver, AJobThatTheStoreMayRejectIsStoredFirst) {
  begin();
  expect_is_stored_first({.unique = {.key = "only"}});
  expect_is_stored_first({.key = "k"});
  const job_id before = push({.queue = "other"});
  ASSERT_TRUE(ack(take("other")));
  expect_is_stored_first({.after = {{.on = before}}});
  expect_is_stored_first({.batch = push_batch({.jobs = {{.queue = "other"}}}).id});
}

TEST_F(EngineHandOver, JobsOfAListThatMayBeRejectedAreStoredFirst) {
  begin();
  auto waits = begin_lease(2);
  settle();
  drive.block();
  auto all = e().push_many({{.kind = "a"}, {.kind = "b", .unique = {.key = "only"}}},
                           bulk::all_or_nothing);
  drive.await_blocked();
  EXPECT_FALSE(waits.is_ready());
  drive.unblock();
  for (const auto& one : all.get()) EXPECT_TRUE(one);
  EXPECT_EQ(waits.get().value().size(), 2U);
}

// All of them get one error, and a certain error must hold for all.
TEST_F(EngineHandOver, JobsPushedAllOrNoneAreStoredFirst) {
  begin();
  auto waits = begin_lease();
  settle();
  drive.block();
  auto all = e().push_many({{.queue = "other", .kind = "a"}, {.kind = "b"}}, bulk::all_or_nothing);
  drive.await_blocked();
  EXPECT_FALSE(waits.is_ready());
  drive.unblock();
  for (const auto& one : all.get()) EXPECT_TRUE(one);
  EXPECT_TRUE(ack(waits.get().value().front()));
}

TEST_F(EngineHandOver, AJobWhoseArgsWouldNotStayInMemoryIsStoredFirst) {
  options.window_bytes_max = 100;
  begin();
  expect_is_stored_first({.args = {std::string(200, 'x')}});
}

TEST_F(EngineHandOver, JobsMadeReadyByTheEngineAreStoredFirst) {
  begin();
  const job_id first = push({.queue = "other"});
  const job_id then = push({.after = {{.on = first}}});
  const leased_job l = take("other");
  auto waits = begin_lease();
  settle();
  drive.block();
  auto acked = e().ack(l.ref());
  drive.await_blocked();
  EXPECT_FALSE(waits.is_ready());
  drive.unblock();
  EXPECT_TRUE(acked.get());
  EXPECT_EQ(ids_of(waits.get().value()), ids{then});
}

TEST_F(EngineHandOver, ARunOfACronEntryIsStoredFirst) {
  begin();
  cron_spec c;
  c.name = "c";
  c.schedule = "* * * * *";
  c.job.kind = "run";
  ASSERT_TRUE(e().set_cron(c).get());
  auto waits = begin_lease();
  settle();
  drive.block();
  time.advance(60s);
  drive.await_blocked();
  EXPECT_FALSE(waits.is_ready());
  drive.unblock();
  EXPECT_EQ(waits.get().value().front().job->spec.kind, "run");
}

TEST_F(EngineHandOver, TheMostUrgentJobOfACommitIsLeasedFirst) {
  begin();
  auto waits = begin_lease();
  std::array<future<result<push_receipt>>, 3> all;
  in_one_commit([&] {
    all[0] = begin_push({.priority = 1});
    all[1] = begin_push({.priority = 9});
    all[2] = begin_push({.priority = 9});
  });
  const ids made{all[0].get()->id, all[1].get()->id, all[2].get()->id};
  const leased_job got = waits.get().value().front();
  EXPECT_EQ(got.job->id, made[1]);
  EXPECT_EQ(drain(), (ids{made[2], made[0]}));
}

TEST_F(EngineHandOver, NoJobIsLeasedBeforeAnUnstoredJobOfHigherPriority) {
  begin();
  auto waits = begin_lease();
  std::array<future<result<push_receipt>>, 3> all;
  in_one_commit([&] {
    all[0] = begin_push({.priority = 1});
    all[1] = begin_push({.priority = 9, .unique = {.key = "only"}});
    all[2] = begin_push({.queue = "other", .priority = 10});
  });
  EXPECT_EQ(ids_of(waits.get().value()), ids{all[1].get()->id});
  EXPECT_EQ(drain(), ids{all[0].get()->id});
}

TEST_F(EngineHandOver, AWorkerGetsAtMostMaxJobsAndTheNextOneTheRest) {
  begin();
  auto two = begin_lease(2);
  auto many = begin_lease(9);
  auto none = begin_lease();
  std::vector<future<result<push_receipt>>> all;
  in_one_commit([&] {
    for (int i = 0; i < 5; ++i) all.push_back(begin_push({}));
  });
  EXPECT_EQ(two.get().value().size(), 2U);
  EXPECT_EQ(many.get().value().size(), 3U);
  EXPECT_FALSE(none.is_ready());
  EXPECT_EQ(counts().running, 5U);
  push();
  EXPECT_TRUE(none.get());
}

TEST_F(EngineHandOver, TheLimitsOfTheQueueApply) {
  begin();
  configure({.concurrency = 2});
  auto first = begin_lease(9);
  auto second = begin_lease(9);
  std::vector<future<result<push_receipt>>> all;
  in_one_commit([&] {
    for (int i = 0; i < 5; ++i) all.push_back(begin_push({}));
  });
  const auto got = first.get().value();
  EXPECT_EQ(got.size(), 2U);
  EXPECT_FALSE(second.is_ready());
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_TRUE(ack(got[0]));
  EXPECT_EQ(second.get().value().size(), 1U);
}

TEST_F(EngineHandOver, TheRateOfTheQueueApplies) {
  begin();
  configure({.rate = 1, .rate_burst = 1});
  auto first = begin_lease(9);
  auto second = begin_lease(9);
  std::vector<future<result<push_receipt>>> all;
  in_one_commit([&] {
    for (int i = 0; i < 3; ++i) all.push_back(begin_push({}));
  });
  EXPECT_EQ(first.get().value().size(), 1U);
  EXPECT_FALSE(second.is_ready());
  advance(1s);
  EXPECT_EQ(second.get().value().size(), 1U);
}

TEST_F(EngineHandOver, APausedQueueLeasesNothing) {
  begin();
  configure({.paused = true});
  auto waits = begin_lease();
  push();
  settle();
  EXPECT_FALSE(waits.is_ready());
  configure({.paused = false});
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineHandOver, ReadyJobsAreLeasedFirst) {
  begin();
  configure({.rate = 1, .rate_burst = 1});
  ASSERT_TRUE(ack([&] {
    push();
    return take();
  }()));
  const job_id old = push();
  auto waits = begin_lease();
  settle();
  EXPECT_FALSE(waits.is_ready()) << "too soon for the rate";
  time.advance(1s);  // no round has checked yet
  const job_id own = push();
  EXPECT_EQ(ids_of(waits.get().value()), ids{old});
  advance(1s);
  EXPECT_EQ(drain(), ids{own});
}

// A committing caller.

TEST_F(EngineHandOver, FlushRepliesIsCalledBetweenTheLeaseAndTheCommit) {
  begin();
  bool was_between = false;
  // A descheduled thread leaves it to the committer.
  for (int n = 0; n < 1000 && !was_between; ++n) {
    auto waits = begin_lease();
    settle();
    std::thread([&] {
      while (e().commit_here()) {
      }
      auto own = begin_push({});
      while (e().commit_here([&] { was_between = waits.is_ready() && !own.is_ready(); })) {
      }
      EXPECT_TRUE(own.get());
    }).join();
    EXPECT_TRUE(ack(waits.get().value().front()));
  }
  EXPECT_TRUE(was_between);
}

// Without calls of other threads.
TEST_F(EngineHandOver, CallsInFlushRepliesBeginWithTheNextCommitHere) {
  begin();
  bool was_between = false;
  for (int n = 0; n < 1000 && !was_between; ++n) {
    auto waits = begin_lease();
    settle();
    std::thread([&] {
      while (e().commit_here()) {
      }
      auto own = begin_push({});
      future<void_result> reads;
      future<void_result> acked;
      while (e().commit_here([&] {
        was_between = true;
        reads = e().remove(~job_id{0});
        acked = e().ack(waits.get().value().front().ref());
      })) {
      }
      EXPECT_TRUE(own.get());
      if (!was_between) return;
      EXPECT_TRUE(reads.get(20s));
      EXPECT_TRUE(acked.get(20s));
    }).join();
    if (!was_between) {
      EXPECT_TRUE(ack(waits.get().value().front()));
    }
  }
  EXPECT_TRUE(was_between);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_hand_over_test
