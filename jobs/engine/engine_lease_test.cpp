// Leases: their duration and their ends.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_lease_test {
namespace {

using EngineLease = engine_words;

constexpr retry_policy quick{.attempts_max = 3, .first = 10s, .factor = 2.0, .jitter = 0};

TEST_F(EngineLease, ItsDurationComesFromTheRequestThenTheJobThenTheQueue) {
  configure({.lease_for = 7s});
  push();
  push({.lease_for = 20s});
  push({.lease_for = 20s});
  EXPECT_EQ(take().until, time.now() + 7s);
  EXPECT_EQ(take().until, time.now() + 20s);
  EXPECT_EQ(try_lease({.lease_for = 3s})->front().until, time.now() + 3s);
}

TEST_F(EngineLease, ExpiryIsAFailureOfTheAttempt) {
  const job_id id = push({.retry = quick, .lease_for = 5s});
  const leased_job l = try_lease({.worker = "ada"})->front();
  advance(4999ms);
  EXPECT_EQ(state(id), job_state::running);
  advance(1ms);
  const job j = get(id);
  EXPECT_EQ(j.state, job_state::retrying);
  EXPECT_EQ(j.attempts, 1U);
  EXPECT_EQ(j.due_at, time.now() + 10s);
  ASSERT_EQ(j.errors.size(), 1U);
  EXPECT_EQ(j.errors[0].type, "lease_expired");
  EXPECT_EQ(j.errors[0].attempt, 1U);
  EXPECT_EQ(j.errors[0].at, time.now());
  EXPECT_NE(j.errors[0].message.find("'ada'"), std::string::npos);
  EXPECT_EQ(code_of(ack(l)), error_code::lease_lost);
  EXPECT_EQ(code_of(fail(l)), error_code::lease_lost);
  EXPECT_EQ(code_of(e().extend(l.ref())), error_code::lease_lost);
  EXPECT_EQ(code_of(e().release(l.ref()).get()), error_code::lease_lost);
}

TEST_F(EngineLease, AnExpiredLeaseIsGivenToAnotherWorker) {
  push({.retry = quick, .lease_for = 5s});
  const leased_job first = take();
  auto waits = e().lease({});
  advance(5s);
  advance(10s);
  const leased_job second = waits.get()->front();
  EXPECT_EQ(second.attempt, 2U);
  EXPECT_NE(second.key, first.key);
  EXPECT_EQ(code_of(ack(first)), error_code::lease_lost);
  EXPECT_TRUE(ack(second));
}

TEST_F(EngineLease, ExtendingKeepsIt) {
  const job_id id = push({.lease_for = 5s});
  const leased_job l = take();
  for (int i = 0; i < 5; ++i) {
    advance(4s);
    const auto extended = e().extend(l.ref());
    ASSERT_TRUE(extended);
    EXPECT_EQ(extended->until, time.now() + 5s);
    EXPECT_FALSE(extended->cancelled);
  }
  EXPECT_EQ(e().extend(l.ref(), 60s)->until, time.now() + 60s);
  advance(59s);
  EXPECT_EQ(state(id), job_state::running);
  EXPECT_EQ(e().extend(l.ref(), 1s)->until, time.now() + 1s) << "an extension can shorten it";
  EXPECT_EQ(code_of(e().extend(l.ref(), -1ms)), error_code::invalid);
  EXPECT_EQ(code_of(e().extend(l.ref(), milliseconds::max())), error_code::invalid);
}

TEST_F(EngineLease, IsNotExtendedBeyondTheTimeLimitOfItsJob) {
  const job_id id = push({.retry = quick, .lease_for = 5s, .time_limit = 8s});
  const unix_time began = time.now();
  const leased_job l = take();
  advance(4s);
  EXPECT_EQ(e().extend(l.ref())->until, began + 9s);
  advance(4s);
  EXPECT_EQ(e().extend(l.ref())->until, began + 9800ms) << "a tenth and a second beyond it";
  advance(1799ms);
  EXPECT_EQ(state(id), job_state::running);
  advance(1ms);
  EXPECT_EQ(state(id), job_state::retrying);
  EXPECT_EQ(get(id).errors.at(0).type, "time_limit");
}

TEST_F(EngineLease, IsNotLongerThanTheTimeLimitFromTheStart) {
  push({.lease_for = 5s, .time_limit = 2s});
  EXPECT_EQ(take().until, time.now() + 3200ms);
  push({.lease_for = 2h, .time_limit = 1h});
  EXPECT_EQ(take().until, time.now() + 1h + 5s);
}

TEST_F(EngineLease, AnAttemptMayBeEndedByTheWorkerAtItsTimeLimit) {
  const job_id id = push({.retry = quick, .lease_for = 5s, .time_limit = 2s});
  const leased_job l = take();
  advance(2s);
  EXPECT_TRUE(fail(l, {.type = "time_limit", .message = "captured output"}));
  EXPECT_EQ(get(id).errors.at(0).message, "captured output");
}

TEST_F(EngineLease, RequiresItsKey) {
  const job_id id = push();
  const leased_job l = take();
  const lease_ref wrong{id, l.key + 1};
  EXPECT_EQ(code_of(e().ack(wrong).get()), error_code::lease_lost);
  EXPECT_EQ(code_of(e().fail(wrong, {}).get()), error_code::lease_lost);
  EXPECT_EQ(code_of(e().release(wrong).get()), error_code::lease_lost);
  EXPECT_EQ(code_of(e().extend(wrong)), error_code::lease_lost);
  EXPECT_EQ(code_of(e().ack({99, l.key}).get()), error_code::lease_lost);
  EXPECT_LT(l.key, std::uint64_t{1} << 53);
  EXPECT_TRUE(ack(l));
  EXPECT_EQ(code_of(ack(l)), error_code::lease_lost);
}

TEST_F(EngineLease, TwoConcurrentAcksEndItOnce) {
  push();
  const leased_job l = take();
  settle();
  drive.block();
  auto first = e().ack(l.ref());
  drive.await_blocked();
  EXPECT_EQ(code_of(e().ack(l.ref()).get()), error_code::lease_lost);
  EXPECT_EQ(code_of(e().extend(l.ref())), error_code::lease_lost);
  drive.unblock();
  EXPECT_TRUE(first.get());
  EXPECT_EQ(e().stats().acked, 1U);
}

TEST_F(EngineLease, AckManyHasOneResultPerLease) {
  push_some(2);
  const auto leased = lease(2);
  auto acked = e().ack_many({{leased[0].ref(), {}}, {{99, 1}, {}}, {leased[1].ref(), {}}}).get();
  ASSERT_EQ(acked.size(), 3U);
  EXPECT_TRUE(acked[0]);
  EXPECT_EQ(code_of(acked[1]), error_code::lease_lost);
  EXPECT_TRUE(acked[2]);
  EXPECT_TRUE(e().ack_many({}).get().empty());
}

TEST_F(EngineLease, AnAckWithTooLargeAResultLeavesTheLease) {
  push();
  const leased_job l = take();
  EXPECT_EQ(code_of(ack(l, payload{std::string(limits::result_bytes_max + 1, 'x')})),
            error_code::too_large);
  EXPECT_TRUE(ack(l));
}

// Failing.

TEST_F(EngineLease, AFailedJobIsRetriedWithGrowingBackoffAndThenDead) {
  const job_id id = push({.retry = quick});
  for (const auto& [attempt, pause] : {std::pair(1U, 10s), std::pair(2U, 20s)}) {
    const leased_job l = take();
    EXPECT_EQ(l.attempt, attempt);
    const auto failed = fail(l, {.type = "io", .message = "no", .backtrace = "at main"});
    EXPECT_EQ(failed->state, job_state::retrying);
    EXPECT_EQ(failed->next_at, time.now() + pause);
    auto again = e().lease({}, deadline::after(pause - 1ms, time.timers()));
    advance(pause - 1ms);
    EXPECT_EQ(code_of(again.get()), error_code::timed_out);
    advance(1ms);
  }
  EXPECT_EQ(fail(take())->state, job_state::dead);
  const job j = get(id);
  EXPECT_EQ(j.state, job_state::dead);
  EXPECT_EQ(j.attempts, 3U);
  ASSERT_EQ(j.errors.size(), 3U);
  EXPECT_EQ(j.errors[0].type, "io");
  EXPECT_EQ(j.errors[0].message, "no");
  EXPECT_EQ(j.errors[0].backtrace, "at main");
  EXPECT_EQ(j.errors[2].attempt, 3U);
  EXPECT_EQ(counts().dead, 1U);
  EXPECT_EQ(counts().bytes, 0U);
}

TEST_F(EngineLease, AFailureCanSetTheTimeOfTheRetry) {
  push({.retry = quick});
  EXPECT_EQ(fail(take(), {.retry_in = 3s})->next_at, time.now() + 3s);
  advance(3s);
  EXPECT_EQ(code_of(fail(take(), {.retry_in = -1ms})), error_code::invalid);
}

TEST_F(EngineLease, AFinalFailureMakesTheJobDead) {
  const job_id id = push({.retry = quick});
  const auto failed = fail(take(), {.for_good = true});
  EXPECT_EQ(failed->state, job_state::dead);
  EXPECT_EQ(state(id), job_state::dead);
}

TEST_F(EngineLease, ATooLongRetryDelayIsRejected) {
  push();
  const leased_job l = take();
  EXPECT_EQ(code_of(fail(l, {.retry_in = milliseconds::max()})), error_code::invalid);
  EXPECT_EQ(code_of(e().release(l.ref(), {.delay = milliseconds::max()}).get()),
            error_code::invalid);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineLease, ErrorsAreTruncatedAtCharacterBoundaries) {
  const job_id id = push({.retry = {.attempts_max = 40, .first = 0ms}});
  std::string accents;
  while (accents.size() <= limits::error_message_bytes_max) accents += "x\xC3\xA9";
  ASSERT_TRUE(fail(take(), {.type = std::string(1000, 't'),
                            .message = accents,
                            .backtrace = std::string(100'000, 'b')}));
  const attempt_error cut = get(id).errors.at(0);
  EXPECT_EQ(cut.type.size(), limits::kind_bytes_max);
  EXPECT_EQ(cut.backtrace.size(), limits::backtrace_bytes_max);
  EXPECT_LE(cut.message.size(), limits::error_message_bytes_max);
  EXPECT_GE(cut.message.size(), limits::error_message_bytes_max - 3);
  EXPECT_EQ(cut.message, accents.substr(0, cut.message.size()));
  const auto last = static_cast<unsigned char>(cut.message.back());
  EXPECT_TRUE(last == 'x' || last == 0xA9) << "a whole character";
}

TEST_F(EngineLease, OnlyTheNewestErrorsAreKept) {
  const job_id id = push({.retry = {.attempts_max = 40, .first = 0ms}});
  auto ends = e().wait(id);
  for (int i = 0; i < 40; ++i) {
    settle();
    ASSERT_TRUE(fail(take(), {.type = "e" + std::to_string(i)}));
  }
  const job j = get(id);
  EXPECT_EQ(j.state, job_state::dead);
  ASSERT_EQ(j.errors.size(), limits::errors_max);
  EXPECT_EQ(j.errors.back().type, "e39");
  EXPECT_EQ(j.errors.front().attempt, 9U);
  EXPECT_EQ(*ends.get(), j) << "a waiter gets the kept errors";
}

// Releasing.

TEST_F(EngineLease, AReleasedJobIsReadyAtOnceAndItsAttemptIsNotCounted) {
  const ids all = push_some(2);
  const leased_job l = take();
  EXPECT_TRUE(e().release(l.ref()).get());
  const leased_job again = take();
  EXPECT_EQ(again.job->id, all[0]) << "at its old position";
  EXPECT_EQ(again.attempt, 1U);
  EXPECT_EQ(code_of(e().release(l.ref()).get()), error_code::lease_lost);
}

TEST_F(EngineLease, AReleasedJobServesAWaitingLease) {
  push();
  const leased_job l = take();
  auto waits = e().lease({});
  EXPECT_TRUE(e().release(l.ref()).get());
  EXPECT_EQ(waits.get()->front().job->id, l.job->id);
}

TEST_F(EngineLease, AJobReleasedWithADelayIsScheduled) {
  const job_id id = push();
  EXPECT_TRUE(e().release(take().ref(), {.delay = 5s}).get());
  EXPECT_EQ(state(id), job_state::scheduled);
  EXPECT_EQ(get(id).attempts, 0U);
  EXPECT_TRUE(is_empty());
  advance(5s);
  EXPECT_EQ(take().attempt, 1U);
}

TEST_F(EngineLease, AJobReleasedWithAPriorityHasIt) {
  const ids all = push_some(3);
  EXPECT_TRUE(e().release(take().ref(), {.priority = -1}).get());
  settle();
  EXPECT_EQ(get(all[0]).spec.priority, -1);
  EXPECT_EQ(drain(), (ids{all[1], all[2], all[0]}));
}

TEST_F(EngineLease, APriorityOutOfRangeIsRejected) {
  push();
  const leased_job l = take();
  EXPECT_EQ(code_of(e().release(l.ref(), {.priority = limits::priority_max + 1}).get()),
            error_code::invalid);
  EXPECT_EQ(code_of(e().release(l.ref(), {.delay = -1ms}).get()), error_code::invalid);
  EXPECT_TRUE(ack(l));
}

TEST_F(EngineLease, LargeJobsReleasedWithADelayKeepTheirArgs) {
  options.window_bytes_max = 1000;
  const std::string args(5000, 'x');
  push({.args = {args, content_type::bytes}});
  EXPECT_TRUE(e().release(take().ref(), {.delay = 1s, .priority = 3}).get());
  advance(1s);
  EXPECT_EQ(take().job->spec.args.data, args);
}

// Retention.

TEST_F(EngineLease, ADoneJobIsDeletedOrKeptAsTheQueueSpecifies) {
  const job_id without = push();
  const job_id with = push();
  const auto leased = lease(2);
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_TRUE(ack(leased[1], payload{"42"}));
  EXPECT_FALSE(has(without));
  const job j = get(with);
  EXPECT_EQ(j.state, job_state::done);
  EXPECT_EQ(j.result, payload{"42"});
  EXPECT_EQ(j.attempts, 1U);
  EXPECT_EQ(j.ended_at, time.now());
  EXPECT_EQ(j.due_at, time.now() + 1h);
  advance(1h - 1ms);
  EXPECT_TRUE(has(with));
  advance(1ms);
  EXPECT_FALSE(has(with));
  EXPECT_EQ(counts(), queue_counts{});
}

TEST_F(EngineLease, EveryKindOfEndHasItsRetention) {
  configure({.keep_done = 10s, .keep_results = 20s, .keep_dead = 30s});
  const ids all = push_some(5);
  ASSERT_TRUE(e().cancel(all[3]).get());
  const auto leased = lease(3);
  EXPECT_TRUE(ack(leased[0]));
  EXPECT_TRUE(ack(leased[1], payload{"1"}));
  EXPECT_TRUE(fail(leased[2], {.for_good = true}));
  EXPECT_EQ(counts().done, 2U);
  advance(10s);
  EXPECT_FALSE(has(all[0]));
  advance(10s);
  EXPECT_FALSE(has(all[1]));
  EXPECT_TRUE(has(all[2]));
  EXPECT_TRUE(has(all[3]));
  advance(10s);
  EXPECT_FALSE(has(all[2]));
  EXPECT_FALSE(has(all[3]));
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(EngineLease, AJobsOwnRetentionOverridesItsQueues) {
  const job_id done = push({.keep_for = 5s});
  const job_id dead = push({.keep_for = 0ms});
  const job_id cancelled = push({.keep_for = 0ms});
  EXPECT_TRUE(ack(take()));
  EXPECT_EQ(fail(take(), {.for_good = true})->state, job_state::dead);
  EXPECT_EQ(e().cancel(cancelled).get()->state, job_state::cancelled);
  EXPECT_TRUE(has(done));
  EXPECT_FALSE(has(dead));
  EXPECT_FALSE(has(cancelled));
  advance(5s);
  EXPECT_FALSE(has(done));
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_lease_test
