// Group commit, and failed commits.
#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_commit_test {
namespace {

class EngineCommit : public engine_words {
 protected:
  // Blocks a commit until drive.unblock(); returns the future of its push.
  future<result<push_receipt>> hold_a_commit(job_spec spec = {}) {
    (void)e();
    settle();
    drive.block();
    auto first = begin_push(std::move(spec));
    drive.await_blocked();
    return first;
  }
  // Due jobs were read, so that the next failure is that of the test's calls.
  void probe() { advance(options.probe_every); }
};

TEST_F(EngineCommit, PushesDuringACommitShareTheNext) {
  auto first = hold_a_commit();
  std::vector<future<result<push_receipt>>> others;
  for (int i = 0; i < 100; ++i) others.push_back(begin_push({}));
  for (auto& f : others) EXPECT_FALSE(f.is_ready());
  EXPECT_FALSE(first.is_ready());
  drive.unblock();
  EXPECT_TRUE(first.get());
  for (auto& f : others) EXPECT_TRUE(f.get());
  EXPECT_EQ(drive.adds(), (std::vector<std::size_t>{1, 100}));
}

TEST_F(EngineCommit, NothingIsAnsweredBeforeItIsStored) {
  push_some(2);
  const leased_job l = take();
  settle();
  drive.block();
  auto acked = e().ack(l.ref());
  drive.await_blocked();
  auto failed = e().fail(take().ref(), {});
  auto pushed = begin_push({});
  auto waits = e().lease({});
  EXPECT_FALSE(acked.is_ready());
  EXPECT_FALSE(failed.is_ready());
  EXPECT_FALSE(pushed.is_ready());
  EXPECT_FALSE(waits.is_ready());
  drive.unblock();
  EXPECT_TRUE(acked.get());
  EXPECT_TRUE(failed.get());
  EXPECT_EQ(waits.get()->front().job->id, pushed.get()->id);
}

TEST_F(EngineCommit, AFailedCommitFailsItsPushesWithTheError) {
  for (const error_code code : {error_code::io_error, error_code::disk_full, error_code::locked}) {
    drive.fails(code);
    EXPECT_EQ(code_of(try_push({})), code);
    EXPECT_FALSE(e().health().takes_pushes);
    EXPECT_EQ(e().health().code, code);
    const auto tried = drive.adds().size();
    EXPECT_EQ(code_of(try_push({})), code) << "rejected at once from now on";
    EXPECT_EQ(drive.adds().size(), tried) << "without asking the disk";
    drive.works();
    probe();
    EXPECT_TRUE(e().health().takes_pushes);
  }
  push();
  EXPECT_EQ(drain().size(), 1U) << "the rejected job is not stored";
}

TEST_F(EngineCommit, HealthIsReportedOncePerChange) {
  guarded<std::vector<bool>> reports;
  options.on_health = [&](const health& h) {
    reports.with([&](auto& all) { all.push_back(h.takes_pushes); });
  };
  drive.fails(error_code::io_error);
  EXPECT_FALSE(try_push({}));
  EXPECT_FALSE(try_push({}));
  probe();  // fails as well
  EXPECT_EQ(reports.with([](auto& all) { return all; }), std::vector<bool>{false});
  drive.works();
  probe();
  EXPECT_EQ(reports.with([](auto& all) { return all; }), (std::vector<bool>{false, true}));
  engine_.reset();  // it refers to `reports`
}

TEST_F(EngineCommit, PushesStagedWhileTheFirstCommitOfTheirQueueFailsAreCommittedNext) {
  settle();
  drive.block();
  auto first = begin_push({.queue = "new"});
  drive.await_blocked();
  auto second = begin_push({.queue = "new"});
  const auto has_failed = std::make_shared<bool>(false);  // the engine outlives the test
  drive.fails_when([has_failed](const transaction&) -> std::optional<error> {
    if (std::exchange(*has_failed, true)) return std::nullopt;
    return error{error_code::io_error, "once"};
  });
  drive.unblock();
  EXPECT_EQ(code_of(first.get()), error_code::io_error);
  EXPECT_TRUE(second.get());
  EXPECT_EQ(drain("new").size(), 1U);
}

TEST_F(EngineCommit, OnAFullDiskLeasesAcksAndDeletesSucceed) {
  const ids all = push_some(4);
  const leased_job l = take();
  drive.is_full();
  EXPECT_EQ(code_of(try_push({})), error_code::disk_full);
  EXPECT_TRUE(ack(l));
  EXPECT_EQ(take().job->id, all[1]);
  EXPECT_TRUE(e().remove(all[2]).get());
  EXPECT_TRUE(e().cancel(all[3]).get());
}

TEST_F(EngineCommit, OnAFullDiskTheAcksThatShareACommitWithPushesAreStored) {
  const job_id id = push();
  const leased_job l = take();
  auto first = hold_a_commit();
  auto pushed = begin_push({});
  auto acked = e().ack(l.ref());
  drive.is_full();
  drive.unblock();
  (void)first.get();
  EXPECT_EQ(code_of(pushed.get()), error_code::disk_full);
  EXPECT_TRUE(acked.get());
  EXPECT_FALSE(has(id));
}

TEST_F(EngineCommit, PushesAreRejectedBeforeTheReserveIsUsed) {
  push();
  drive.room(50);
  const auto refused = try_push({});
  EXPECT_EQ(code_of(refused), error_code::disk_full);
  EXPECT_NE(refused.error().message.find("free some space"), std::string::npos);
  EXPECT_EQ(code_of(try_push({})), error_code::disk_full);
  EXPECT_TRUE(ack(take()));
  probe();
  EXPECT_FALSE(e().health().takes_pushes) << "there is still no capacity";
  drive.room(10 << 20);
  probe();
  EXPECT_TRUE(try_push({}));
}

TEST_F(EngineCommit, TheLeaseOfAFailedAckStaysValid) {
  push({.lease_for = 10s, .time_limit = 10s});
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(ack(l)), error_code::io_error);
  EXPECT_EQ(counts().running, 1U);
  drive.works();
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineCommit, TheLeaseOfAFailedFailOrReleaseStaysValid) {
  push();
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(fail(l)), error_code::io_error);
  EXPECT_EQ(code_of(e().release(l.ref(), {.delay = 5s}).get()), error_code::io_error);
  drive.works();
  EXPECT_TRUE(e().extend(l.ref()));
  EXPECT_TRUE(e().release(l.ref(), {.delay = 5s}).get());
  EXPECT_EQ(e().stats().failed, 0U);
  EXPECT_EQ(e().stats().given_back, 1U);
}

TEST_F(EngineCommit, ALeaseThatExpiresDuringAnOutageEndsAfterIt) {
  const job_id id = push({.retry = {.first = 1h}, .lease_for = 5s, .time_limit = 5s});
  (void)take();
  drive.fails(error_code::io_error);
  const auto tried = drive.adds().size();
  advance(5s);
  advance(500ms);
  EXPECT_LE(drive.adds().size() - tried, 3U) << "only probed periodically";
  EXPECT_EQ(counts().running, 1U);
  drive.works();
  advance(options.probe_every * 2);
  EXPECT_EQ(state(id), job_state::retrying);
  EXPECT_EQ(e().stats().expired, 1U);
  EXPECT_EQ(get(id).errors.size(), 1U);
}

TEST_F(EngineCommit, JobsThatCouldNotBeCancelledRemovedOrPurgedAreStillLeased) {
  const ids all = push_some(5);
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(e().cancel(all[0]).get()), error_code::io_error);
  EXPECT_EQ(code_of(e().remove(all[1]).get()), error_code::io_error);
  EXPECT_EQ(code_of(e().purge("default").get()), error_code::io_error);
  EXPECT_EQ(code_of(e().configure("default", {.capacity_jobs = 1}).get()), error_code::io_error);
  drive.works();
  EXPECT_EQ(e().queue("default")->options, queue_options{});
  EXPECT_EQ(drain(), all);
}

TEST_F(EngineCommit, ARunningJobThatCouldNotBeCancelledContinues) {
  const job_id id = push();
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(e().cancel(id).get());
  drive.works();
  EXPECT_FALSE(e().extend(l.ref())->cancelled);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineCommit, WaitingPushesFailWithTheErrorOfTheDisk) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  push();
  auto waits = begin_push({});
  const std::vector<job_spec> two = {{.kind = "k"}, {.queue = "other", .kind = "k"}};
  auto group = e().push_many(two, bulk::all_or_nothing);
  settle();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(try_push({.queue = "other"}));
  EXPECT_EQ(code_of(waits.get()), error_code::io_error);
  EXPECT_EQ(code_of(group.get()[0]), error_code::io_error);
}

TEST_F(EngineCommit, DueJobsAreRetriedIfTheirCommitFails) {
  const job_id id = push({.run_at = time.now() + 1s});
  settle();
  drive.fails(error_code::io_error);
  advance(1s);
  EXPECT_EQ(state(id), job_state::scheduled);
  drive.works();
  advance(options.probe_every);
  EXPECT_EQ(drain(), ids{id});
}

TEST_F(EngineCommit, IdsOfRejectedPushesAreNotReused) {
  const job_id first = push();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(try_push({}));
  drive.works();
  probe();
  const job_id second = push();
  EXPECT_GT(second, first);
  crash();
  EXPECT_GT(push(), second);
}

// Staged bytes.

TEST_F(EngineCommit, PushesWaitForStagedBytes) {
  options.staged_bytes_max = 500;
  auto first = hold_a_commit();
  std::vector<future<result<push_receipt>>> others;
  for (int i = 0; i < 20; ++i) others.push_back(begin_push({}));
  const std::vector<job_spec> three(3, job_spec{.kind = "k"});
  auto group = e().push_many(three, bulk::all_or_nothing);
  EXPECT_GT(e().stats().waiting_pushes, 10U);
  EXPECT_EQ(code_of(try_push({}, at_once())), error_code::overloaded);
  drive.unblock();
  job_id last = first.get()->id;
  for (auto& f : others) {
    const job_id id = f.get()->id;
    EXPECT_GT(id, last) << "in order of arrival";
    last = id;
  }
  for (auto& r : group.get()) EXPECT_GT(r->id, last);
  EXPECT_EQ(e().stats().waiting_pushes, 0U);
  const auto adds = drive.adds();
  EXPECT_LE(*std::ranges::max_element(adds), 500U / 65U);
}

TEST_F(EngineCommit, APushLargerThanTheStagedLimitIsCommittedAlone) {
  options.staged_bytes_max = 100;
  EXPECT_TRUE(try_push({.args = {std::string(1000, 'x'), content_type::bytes}}));
}

TEST_F(EngineCommit, AQueueCreatedForAWaitingPushIsKeptUntilItEnds) {
  options.staged_bytes_max = 100;
  auto first = hold_a_commit();
  auto held = begin_push({.queue = "new"});
  auto leased = e().lease({.queues = {"new"}});
  leased.cancel();
  std::stop_source stop;
  auto given_up = begin_push({.queue = "newer"}, stop.get_token());
  stop.request_stop();
  drive.unblock();
  EXPECT_TRUE(first.get());
  EXPECT_FALSE(leased.get());
  EXPECT_TRUE(held.get());
  EXPECT_EQ(code_of(given_up.get()), error_code::stopped);
  EXPECT_EQ(drain("new").size(), 1U);
}

// A push with capacity that waits at the head of its queue's line for staged bytes.
TEST_F(EngineCommit, APushThatWaitsForCapacityAndThenForStagedBytesIsAdmitted) {
  options.staged_bytes_max = 100;
  configure({.capacity_jobs = 1, .when_full = overflow::block}, "small");
  push({.queue = "small"});
  const leased_job l = take("small");
  auto waits = begin_push({.queue = "small"});
  settle();
  drive.block();
  auto acked = e().ack(l.ref());
  drive.await_blocked();
  auto other = begin_push({.queue = "other", .args = {std::string(90, 'x'), content_type::bytes}});
  drive.unblock();
  EXPECT_TRUE(acked.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineCommit, AFailedFlushIsReportedAndRetried) {
  int flushes = 0;
  bool fails = true;
  options.flush_every = 1s;
  memory_options m;
  m.contents = contents;
  m.before_flush = [&]() -> std::optional<error> {
    ++flushes;
    if (fails) return error{error_code::io_error, "no sync"};
    return std::nullopt;
  };
  engine_ = std::move(engine::open(make_memory_store(m), options)).value();
  push();
  advance(1s);
  EXPECT_FALSE(e().health().takes_pushes);
  settle();
  fails = false;
  advance(1s);
  EXPECT_TRUE(e().health().takes_pushes);
  EXPECT_EQ(flushes, 2);
  advance(10s);
  EXPECT_EQ(flushes, 2) << "no commit since";
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_commit_test
