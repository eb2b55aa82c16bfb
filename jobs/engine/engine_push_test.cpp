// Producers: unique keys, capacity and overflow policies, and pushes of many jobs.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_push_test {
namespace {

class EnginePush : public engine_words {
 protected:
  static job_spec keyed(std::string key, unique_until until = unique_until::done,
                        milliseconds lasts = 0ms) {
    return {.kind = "k", .unique = {std::move(key), until, lasts}};
  }
  void full_with(overflow word, std::uint64_t jobs = 2) {
    configure({.capacity_jobs = jobs, .when_full = word});
  }
  void expect_duplicate_of(job_id holder, job_spec spec) {
    const auto pushed = try_push(std::move(spec));
    ASSERT_TRUE(pushed);
    EXPECT_EQ(pushed->outcome, push_receipt::fate::duplicate);
    EXPECT_EQ(pushed->id, holder);
  }
  void expect_free(const job_spec& spec) {
    const auto pushed = try_push(spec);
    ASSERT_TRUE(pushed);
    EXPECT_EQ(pushed->outcome, push_receipt::fate::accepted);
    ASSERT_TRUE(e().remove(pushed->id).get());
  }
};

// Unique keys.

TEST_F(EnginePush, ADuplicateReturnsTheHolderOfItsKeyAndChangesNothing) {
  const job_id first = push(keyed("a"));
  expect_duplicate_of(first, keyed("a"));
  EXPECT_EQ(counts().ready, 1U);
  EXPECT_EQ(e().stats().duplicates, 1U);
  EXPECT_NE(push(keyed("b")), first);
  job_spec elsewhere = keyed("a");
  elsewhere.queue = "other";
  EXPECT_NE(push(elsewhere), first) << "a key belongs to one queue";
}

TEST_F(EnginePush, AKeyUntilDoneIsFreedByEveryKindOfEnd) {
  const auto ends_by = [&](auto&& end) {
    const job_id id = push(keyed("a"));
    expect_duplicate_of(id, keyed("a"));
    end(id);
    expect_free(keyed("a"));
  };
  ends_by([&](job_id) { ASSERT_TRUE(ack(take())); });
  ends_by([&](job_id) { ASSERT_TRUE(ack(take(), payload{"1"})); });
  ends_by([&](job_id) { ASSERT_TRUE(fail(take(), {.for_good = true})); });
  ends_by([&](job_id id) { ASSERT_TRUE(e().cancel(id).get()); });
  ends_by([&](job_id id) { ASSERT_TRUE(e().remove(id).get()); });
  ends_by([&](job_id) { ASSERT_TRUE(e().purge("default").get()); });
  ends_by([&](job_id id) {
    const leased_job l = take();
    ASSERT_TRUE(e().cancel(id).get());
    ASSERT_TRUE(ack(l));
  });
}

TEST_F(EnginePush, AKeyUntilDoneIsHeldWhileTheJobRunsAndIsRetried) {
  const job_id id = push(keyed("a"));
  const leased_job l = take();
  expect_duplicate_of(id, keyed("a"));
  ASSERT_TRUE(fail(l, {.retry_in = 5s}));
  expect_duplicate_of(id, keyed("a"));
  advance(5s);
  ASSERT_TRUE(ack(take()));
  expect_free(keyed("a"));
}

TEST_F(EnginePush, AKeyUntilStartedIsFreedByTheFirstLease) {
  const job_id id = push(keyed("a", unique_until::started));
  expect_duplicate_of(id, keyed("a", unique_until::started));
  const leased_job l = take();
  const job_id second = push(keyed("a", unique_until::started));
  EXPECT_NE(second, id);
  ASSERT_TRUE(e().release(l.ref()).get());
  EXPECT_EQ(take().job->id, id);
  settle();
  expect_duplicate_of(second, keyed("a", unique_until::started));
}

TEST_F(EnginePush, AKeyWithADurationIsHeldThatLongIndependentOfTheJob) {
  const job_spec spec = keyed("a", unique_until::elapsed, 10s);
  const job_id id = push(spec);
  ASSERT_TRUE(ack(take()));
  EXPECT_FALSE(has(id));
  advance(9999ms);
  expect_duplicate_of(id, spec);
  advance(1ms);
  EXPECT_GT(push(spec), id);
}

TEST_F(EnginePush, TwoPushesWithOneKeyInOneCommitAddOneJob) {
  settle();
  drive.block();
  auto other = begin_push({});
  drive.await_blocked();
  auto first = begin_push(keyed("a"));
  auto second = begin_push(keyed("a"));
  drive.unblock();
  (void)other.get();
  const auto accepted = first.get();
  EXPECT_EQ(accepted->outcome, push_receipt::fate::accepted);
  const auto duplicate = second.get();
  EXPECT_EQ(duplicate->outcome, push_receipt::fate::duplicate);
  EXPECT_EQ(duplicate->id, accepted->id);
}

TEST_F(EnginePush, ADuplicateReturnsItsCapacity) {
  full_with(overflow::block, 2);
  const job_id first = push(keyed("a"));
  settle();
  drive.block();
  auto duplicate = begin_push(keyed("a"));
  drive.await_blocked();
  auto waits = begin_push({});
  drive.unblock();
  EXPECT_EQ(duplicate.get()->id, first);
  EXPECT_TRUE(waits.get());
}

// Pushes of many jobs.

TEST_F(EnginePush, EachPushOfAListHasItsOwnResult) {
  const job_id holder = push(keyed("a"));
  const std::vector<job_spec> specs = {{.kind = "k"}, {.kind = ""}, keyed("a"), {.kind = "k"}};
  const auto results = e().push_many(specs).get();
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0]->outcome, push_receipt::fate::accepted);
  EXPECT_EQ(code_of(results[1]), error_code::invalid);
  EXPECT_EQ(results[2]->outcome, push_receipt::fate::duplicate);
  EXPECT_EQ(results[2]->id, holder);
  EXPECT_GT(results[3]->id, results[0]->id);
  EXPECT_TRUE(e().push_many({}).get().empty());
}

TEST_F(EnginePush, AllOrNothingPushesAllInOrder) {
  const std::vector<job_spec> specs = {{.kind = "a"}, {.queue = "other", .kind = "b"}, keyed("c")};
  const auto results = e().push_many(specs, bulk::all_or_nothing).get();
  for (const auto& r : results) EXPECT_TRUE(r);
  EXPECT_EQ(drain(), (ids{results[0]->id, results[2]->id}));
  EXPECT_EQ(drain("other"), ids{results[1]->id});
}

TEST_F(EnginePush, AllOrNothingPushesNothingIfOneJobIsInvalid) {
  const std::vector<job_spec> specs = {{.kind = "a"}, {.kind = ""}};
  const auto results = e().push_many(specs, bulk::all_or_nothing).get();
  for (const auto& r : results) {
    EXPECT_EQ(code_of(r), error_code::invalid);
    EXPECT_NE(r.error().message.find("job 2 of 2"), std::string::npos);
  }
  EXPECT_TRUE(e().queues().empty());
}

TEST_F(EnginePush, AllOrNothingPushesNothingIfOneJobIsADuplicate) {
  const job_id holder = push(keyed("a"));
  const auto results =
      e().push_many({{.kind = "k"}, keyed("a"), keyed("b")}, bulk::all_or_nothing).get();
  for (const auto& r : results) EXPECT_EQ(code_of(r), error_code::duplicate);
  EXPECT_EQ(results[1].error().job, holder);
  EXPECT_EQ(results[0].error().job, 0U);
  EXPECT_EQ(counts().ready, 1U);
  expect_free(keyed("b"));
  const auto twice = e().push_many({keyed("c"), keyed("c")}, bulk::all_or_nothing).get();
  for (const auto& r : twice) EXPECT_EQ(code_of(r), error_code::duplicate);
}

TEST_F(EnginePush, AllOrNothingPushesNothingIfOneQueueIsFull) {
  configure({.capacity_jobs = 1, .when_full = overflow::reject}, "small");
  push({.queue = "small"});
  const auto results =
      e().push_many({{.kind = "k"}, {.queue = "small", .kind = "k"}}, bulk::all_or_nothing).get();
  for (const auto& r : results) EXPECT_EQ(code_of(r), error_code::queue_full);
  EXPECT_EQ(drain(), ids{});
}

TEST_F(EnginePush, AListThatCouldNeverFitIsTooLarge) {
  full_with(overflow::block, 2);
  const std::vector<job_spec> three(3, job_spec{.kind = "k"});
  const auto results = e().push_many(three, bulk::all_or_nothing).get();
  EXPECT_EQ(code_of(results[0]), error_code::too_large);
}

TEST_F(EnginePush, AListHasAtMostBulkMaxJobs) {
  options.bulk_max = 2;
  const std::vector<job_spec> three(3, job_spec{.kind = "k"});
  for (const auto& r : e().push_many(three).get()) EXPECT_EQ(code_of(r), error_code::too_large);
}

// Capacity.

TEST_F(EnginePush, AFullQueueRejects) {
  full_with(overflow::reject);
  push_some(2);
  const auto refused = try_push({});
  EXPECT_EQ(code_of(refused), error_code::queue_full);
  EXPECT_NE(refused.error().message.find("2 of 2 jobs"), std::string::npos);
  const leased_job l = take();
  EXPECT_FALSE(try_push({})) << "running jobs use capacity";
  EXPECT_TRUE(ack(l));
  EXPECT_TRUE(try_push({}));
}

TEST_F(EnginePush, CapacityIsLimitedInBytesToo) {
  const std::uint64_t one = weight_of(job_spec{.kind = "k"});
  configure({.capacity_bytes = one * 3, .when_full = overflow::reject});
  push_some(2);
  EXPECT_EQ(code_of(try_push({.args = {std::string(one, 'x')}})), error_code::queue_full);
  push();
  EXPECT_EQ(code_of(try_push({})), error_code::queue_full);
  EXPECT_EQ(code_of(try_push({.args = {std::string(1000, 'x')}})), error_code::too_large);
  EXPECT_EQ(counts().bytes, one * 3);
}

TEST_F(EnginePush, ScheduledAndRetryingJobsUseCapacityAndEndedJobsDoNot) {
  full_with(overflow::reject);
  push({.run_at = time.now() + 1h});
  push({.keep_for = 1h});
  EXPECT_FALSE(try_push({}));
  ASSERT_TRUE(fail(take(), {.retry_in = 1s}));
  EXPECT_FALSE(try_push({}));
  advance(1s);
  ASSERT_TRUE(ack(take()));
  EXPECT_TRUE(try_push({}));
}

TEST_F(EnginePush, DropNewestDropsTheArrivingJob) {
  full_with(overflow::drop_newest);
  const ids all = push_some(2);
  const auto pushed = try_push({});
  EXPECT_EQ(pushed->outcome, push_receipt::fate::dropped);
  EXPECT_EQ(pushed->id, 0U);
  EXPECT_EQ(e().stats().dropped, 1U);
  EXPECT_EQ(drain(), all);
}

TEST_F(EnginePush, DropOldestDropsTheOldestJobOfTheLowestPriority) {
  full_with(overflow::drop_oldest, 3);
  const job_id urgent = push({.priority = 1});
  const ids two = push_some(2);
  auto gone = e().wait(two[0]);
  const job_id third = push();
  EXPECT_EQ(code_of(gone.get()), error_code::not_found);
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_EQ(drain(), (ids{urgent, two[1], third}));
  EXPECT_EQ(e().stats().dropped, 1U);
}

TEST_F(EnginePush, LatestDropsTheNewestJobOfTheLowestPriority) {
  full_with(overflow::latest, 3);
  const job_id urgent = push({.priority = 1});
  const ids two = push_some(2);
  const job_id third = push();
  EXPECT_EQ(drain(), (ids{urgent, two[0], third}));
}

TEST_F(EnginePush, RunningAndUnreadyJobsAreNeverDropped) {
  full_with(overflow::drop_oldest);
  push();
  const leased_job l = take();
  push({.run_at = time.now() + 1h});
  const auto refused = try_push({});
  EXPECT_EQ(code_of(refused), error_code::queue_full);
  EXPECT_NE(refused.error().message.find("none could be dropped"), std::string::npos);
  EXPECT_TRUE(ack(l));
  EXPECT_TRUE(try_push({}));
}

TEST_F(EnginePush, ALargeJobDropsAsManyJobsAsItNeedsOrNothing) {
  const std::uint64_t one = weight_of(job_spec{.kind = "k"});
  configure({.capacity_bytes = one * 5, .when_full = overflow::drop_oldest});
  const ids all = push_some(5);
  const leased_job running = take();
  ASSERT_EQ(running.job->id, all[0]);
  EXPECT_EQ(code_of(try_push({.args = {std::string(one * 4, 'x')}})), error_code::queue_full);
  EXPECT_EQ(counts().ready, 4U) << "no job was dropped for a push that failed";
  const job_id heavy = push({.args = {std::string(one, 'x')}});
  EXPECT_TRUE(ack(running));
  EXPECT_EQ(drain(), (ids{all[3], all[4], heavy}));
}

TEST_F(EnginePush, ManyPushesIntoAFullQueueDropExactlyAsManyJobs) {
  full_with(overflow::drop_oldest, 10);
  push_some(10);
  settle();
  drive.block();
  auto first = begin_push({});
  drive.await_blocked();
  std::vector<future<result<push_receipt>>> others;
  for (int i = 0; i < 25; ++i) others.push_back(begin_push({}));
  drive.unblock();
  EXPECT_TRUE(first.get());
  std::size_t accepted = 1;
  for (auto& f : others) accepted += f.get() ? 1U : 0U;
  settle();
  EXPECT_EQ(counts().ready, 10U);
  EXPECT_EQ(e().stats().dropped, accepted);
}

TEST_F(EnginePush, ADuplicateDropsNothing) {
  for (const overflow word : {overflow::drop_oldest, overflow::latest}) {
    full_with(word, 2);
    const job_id first = push(keyed("a"));
    const job_id second = push();
    expect_duplicate_of(first, keyed("a"));
    settle();
    EXPECT_EQ(drain(), (ids{first, second}));
  }
  EXPECT_EQ(e().stats().dropped, 0U);
}

TEST_F(EnginePush, AUniquePushIntoAFullQueueEvictsToo) {
  full_with(overflow::drop_oldest, 2);
  const ids two = push_some(2);
  const job_id third = push(keyed("a"));
  settle();
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(drain(), (ids{two[1], third}));
}

TEST_F(EnginePush, NothingIsDroppedIfThePushIsNotStored) {
  full_with(overflow::drop_oldest, 2);
  const ids two = push_some(2);
  drive.is_full();
  EXPECT_EQ(code_of(try_push({})), error_code::disk_full);
  drive.works();
  advance(options.probe_every);
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(try_push(keyed("a"))), error_code::io_error);
  drive.works();
  EXPECT_EQ(drain(), two);
}

TEST_F(EnginePush, NothingIsDroppedIfTheStoreCannotBeRead) {
  full_with(overflow::drop_oldest, 2);
  const ids two = push_some(2);
  drive.reads_fail(true);
  EXPECT_EQ(code_of(try_push({})), error_code::io_error);
  drive.reads_fail(false);
  EXPECT_EQ(drain(), two);
}

// Blocking pushes.

TEST_F(EnginePush, BlockedPushesWaitForCapacityInOrder) {
  full_with(overflow::block, 1);
  push();
  auto first = begin_push({});
  auto second = begin_push({});
  settle();
  EXPECT_EQ(e().stats().waiting_pushes, 2U);
  EXPECT_TRUE(ack(take()));
  const job_id a = first.get()->id;
  settle();
  EXPECT_FALSE(second.is_ready());
  EXPECT_EQ(drain().front(), a);
  EXPECT_TRUE(second.get());
}

TEST_F(EnginePush, ABlockedPushHasADeadline) {
  full_with(overflow::block, 1);
  push();
  EXPECT_EQ(code_of(try_push({}, at_once())), error_code::queue_full);
  auto waits = begin_push({}, deadline::after(5s, time.timers()));
  advance(5s);
  EXPECT_EQ(code_of(waits.get()), error_code::timed_out);
  EXPECT_EQ(e().stats().waiting_pushes, 0U);
  EXPECT_EQ(drain().size(), 1U) << "it changed nothing";
}

TEST_F(EnginePush, ABlockedPushIsStopped) {
  full_with(overflow::block, 1);
  push();
  std::stop_source stop;
  auto waits = begin_push({}, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(code_of(waits.get()), error_code::stopped);
}

TEST_F(EnginePush, ABlockedPushFailsAtShutdown) {
  full_with(overflow::block, 1);
  push();
  auto waits = begin_push({});
  e().close();
  EXPECT_EQ(code_of(waits.get()), error_code::shutting_down);
  EXPECT_EQ(code_of(try_push({})), error_code::shutting_down) << "it would have to wait";
  EXPECT_EQ(code_of(e().push_many({{.kind = "k"}}, bulk::all_or_nothing).get().at(0)),
            error_code::shutting_down);
  EXPECT_TRUE(try_push({.queue = "other"}));
}

TEST_F(EnginePush, ASmallPushBehindATimedOutLargeOneIsAdmitted) {
  const std::uint64_t one = weight_of(job_spec{.kind = "k"});
  configure({.capacity_bytes = one * 3, .when_full = overflow::block});
  push_some(2);
  auto large = begin_push({.args = {std::string(one, 'x')}}, deadline::after(5s, time.timers()));
  auto small = begin_push({});
  settle();
  EXPECT_FALSE(small.is_ready()) << "it arrived later";
  time.advance(5s);
  EXPECT_EQ(code_of(large.get()), error_code::timed_out);
  EXPECT_TRUE(small.get());
}

TEST_F(EnginePush, MoreCapacityAdmitsWaitingPushes) {
  full_with(overflow::block, 1);
  push();
  auto first = begin_push({});
  auto second = begin_push({});
  configure({.capacity_jobs = 2});
  EXPECT_TRUE(first.get());
  settle();
  EXPECT_FALSE(second.is_ready());
  configure({.when_full = overflow::reject});
  EXPECT_EQ(code_of(second.get()), error_code::queue_full) << "with the queue's new options";
}

TEST_F(EnginePush, AWaitingPushThatCanNoLongerFitIsRejected) {
  const std::uint64_t one = weight_of(job_spec{.kind = "k"});
  configure({.capacity_bytes = one * 2, .when_full = overflow::block});
  push();
  auto large = begin_push({.args = {std::string(one, 'x')}});
  auto small = begin_push({});
  settle();
  configure({.capacity_bytes = one * 2 - 1});
  EXPECT_EQ(code_of(large.get()), error_code::too_large);
  EXPECT_TRUE(ack(take()));
  EXPECT_TRUE(small.get());
}

TEST_F(EnginePush, EveryEndFreesCapacity) {
  full_with(overflow::block, 1);
  const auto makes_room = [&](auto&& end) {
    const job_id id = push();
    auto waits = begin_push({});
    settle();
    EXPECT_FALSE(waits.is_ready());
    end(id);
    const auto pushed = waits.get();
    ASSERT_TRUE(pushed);
    ASSERT_TRUE(e().remove(pushed->id).get());
  };
  makes_room([&](job_id) { ASSERT_TRUE(ack(take())); });
  makes_room([&](job_id) { ASSERT_TRUE(fail(take(), {.for_good = true})); });
  makes_room([&](job_id id) { ASSERT_TRUE(e().cancel(id).get()); });
  makes_room([&](job_id id) { ASSERT_TRUE(e().remove(id).get()); });
  makes_room([&](job_id) { ASSERT_TRUE(e().purge("default").get()); });
  makes_room([&](job_id id) {
    (void)take();
    ASSERT_TRUE(e().cancel(id).get());
  });
}

TEST_F(EnginePush, AGroupWaitsForCapacityInEachOfItsQueues) {
  full_with(overflow::block, 1);
  configure({.capacity_jobs = 1, .when_full = overflow::block}, "other");
  push();
  push({.queue = "other"});
  const std::vector<job_spec> both = {{.kind = "k"}, {.queue = "other", .kind = "k"}};
  auto group = e().push_many(both, bulk::all_or_nothing);
  auto behind_it = begin_push({});
  auto behind_it_too = begin_push({.queue = "other"});
  settle();
  EXPECT_TRUE(ack(take()));
  settle();
  EXPECT_FALSE(group.is_ready());
  EXPECT_TRUE(ack(take("other")));
  sluice::testing::eventually(
      [&] { return group.is_ready() || (behind_it.is_ready() && behind_it_too.is_ready()); });
  drain();
  drain("other");
  drain();
  drain("other");
  for (const auto& r : group.get()) EXPECT_TRUE(r);
  EXPECT_TRUE(behind_it.get());
  EXPECT_TRUE(behind_it_too.get());
}

TEST_F(EnginePush, PushesBehindATimedOutGroupAreAdmittedInAllItsQueues) {
  full_with(overflow::block, 2);
  configure({.capacity_jobs = 1, .when_full = overflow::block}, "other");
  push_some(2);
  push({.queue = "other"});
  const std::vector<job_spec> all = {{.kind = "k"}, {.kind = "k"}, {.queue = "other", .kind = "k"}};
  std::stop_source stop;
  auto group = e().push_many(all, bulk::all_or_nothing, stop.get_token());
  drain("other");
  settle();
  auto behind = begin_push({});
  EXPECT_TRUE(ack(take()));
  settle();
  stop.request_stop();
  for (const auto& r : group.get()) EXPECT_EQ(code_of(r), error_code::stopped);
  EXPECT_TRUE(behind.get());
}

TEST_F(EnginePush, AGroupDoesNotOvertakeWaitingPushes) {
  full_with(overflow::block, 2);
  push_some(2);
  auto first = begin_push({});
  auto group = e().push_many({{.kind = "k"}}, bulk::all_or_nothing);
  EXPECT_TRUE(ack(take()));
  const job_id id = first.get()->id;
  EXPECT_TRUE(ack(take()));
  EXPECT_GT(group.get()[0]->id, id);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_push_test
