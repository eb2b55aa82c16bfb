// Time: nothing happens early. An event that is due before a deadline precedes it, even if the
// engine sees both late (docs/concepts/time.md).

#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_time_test {
namespace {

class EngineTime : public engine_words {
 protected:
  using leased = result<std::vector<leased_job>>;

  wait_limits until(std::chrono::nanoseconds from_now) {
    return deadline::after(from_now, time.timers());
  }
  future<leased> begin_lease(std::chrono::nanoseconds wait) { return e().lease({}, until(wait)); }
  // Advances the clock in one step: the engine sees the events and the deadlines when all of them
  // have passed.
  void jump(std::chrono::nanoseconds by) { advance(by); }

  job_id push_delayed(std::chrono::nanoseconds by) { return push({.run_at = time.after(by)}); }
  static job_spec tried_twice(milliseconds pause) {
    job_spec s;
    s.retry = {.attempts_max = 2, .first = pause, .factor = 1.0, .jitter = 0};
    return s;
  }
  static job_spec tried_once() {
    job_spec s;
    s.retry = {.attempts_max = 1};
    return s;
  }
  void expect_given(future<leased>& reply, job_id id) {
    const leased got = reply.get();
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(ids_of(*got), ids{id});
  }
  void expect_timed_out(future<leased>& reply) {
    EXPECT_EQ(code_of(reply.get()), error_code::timed_out);
  }
};

// No early events.

TEST_F(EngineTime, ADelayedJobIsNotReadyBeforeItsTime) {
  (void)e();
  for (const auto offset : {0ns, 1ns, 300'000ns, 999'999ns}) {
    advance(offset);
    const time_point asked = time.timers().now();
    const job_id id = push_delayed(2s);
    advance(2s - 1ns);
    EXPECT_TRUE(is_empty()) << offset.count();
    advance(1ms);
    EXPECT_EQ(drain(), ids{id});
    EXPECT_LT(time.timers().now() - asked, 2s + 1ms);
  }
}

TEST_F(EngineTime, AReleasedJobIsNotReadyBeforeItsTime) {
  const job_id id = push();
  const leased_job l = take();
  advance(300us);
  ASSERT_TRUE(e().release(l.ref(), {.delay = 2s}).get());
  advance(2s - 1ns);
  EXPECT_TRUE(is_empty());
  advance(1ms);
  EXPECT_EQ(drain(), ids{id});
}

TEST_F(EngineTime, ARetryIsNotReadyBeforeItsTime) {
  const job_id id = push(tried_twice(2s));
  const leased_job l = take();
  advance(300us);
  ASSERT_TRUE(fail(l));
  advance(2s - 1ns);
  EXPECT_TRUE(is_empty());
  advance(1ms);
  EXPECT_EQ(drain(), ids{id});
}

TEST_F(EngineTime, ALeaseDoesNotExpireEarly) {
  advance(300us);
  push({.lease_for = 2s});
  const leased_job l = take();
  const unix_time end = time.after(2s);
  EXPECT_EQ(l.until, end);
  EXPECT_EQ(e().lease_of(l.job->id)->until, end);
  advance(100us);
  EXPECT_EQ(e().extend(l.ref())->until, time.after(2s));
}

TEST_F(EngineTime, ASavedLeaseDoesNotExpireEarlier) {
  advance(300us);
  push({.lease_for = 2s});
  const leased_job l = take();
  reopen();
  advance(2s - 1ns);
  EXPECT_TRUE(e().extend(l.ref()));
}

TEST_F(EngineTime, TheRateOfAKeyIsExactToTheNanosecond) {
  configure({.key_rate = 10, .key_burst = 1});
  for (int i = 0; i < 3; ++i) push({.key = "k"});
  advance(300us);
  ASSERT_TRUE(ack(take()));
  EXPECT_TRUE(is_empty());
  advance(100ms - 1ns);
  EXPECT_TRUE(is_empty());
  advance(1ms);
  ASSERT_TRUE(ack(take()));
}

TEST_F(EngineTime, AWaitDoesNotEndBeforeItsDeadline) {
  (void)e();
  auto waits = begin_lease(2s);
  advance(2s - 1ns);
  EXPECT_FALSE(waits.is_ready());
  advance(1ns);
  expect_timed_out(waits);
}

// Events precede later deadlines.

TEST_F(EngineTime, ADueJobPrecedesALaterDeadline) {
  for (const auto later : {0ns, 1ns, 1'000'000'000ns}) {
    const job_id id = push_delayed(2s);
    auto waits = begin_lease(2s + later);
    jump(10s);
    expect_given(waits, id);
    (void)e().cancel(id).get();
    advance(60s);  // its lease expires
  }
}

TEST_F(EngineTime, ADeadlinePrecedesALaterJob) {
  const job_id id = push_delayed(2s);
  auto waits = begin_lease(2s - 1ns);
  jump(10s);
  expect_timed_out(waits);
  EXPECT_EQ(drain(), ids{id});
}

TEST_F(EngineTime, WaitsEndInTheOrderOfTheirDeadlines) {
  const job_id first = push_delayed(2s);
  const job_id second = push_delayed(4s);
  auto too_short = begin_lease(1s);
  auto gets_first = begin_lease(3s);
  auto gets_second = begin_lease(5s);
  auto too_late = begin_lease(6s);
  jump(10s);
  expect_timed_out(too_short);
  expect_given(gets_first, first);
  expect_given(gets_second, second);
  expect_timed_out(too_late);
}

TEST_F(EngineTime, ACallThatDoesNotWaitGetsADueJob) {
  const job_id id = push_delayed(2s);
  settle();
  time.advance(2s);
  const leased got = try_lease();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(ids_of(*got), ids{id});
}

TEST_F(EngineTime, ACallThatDoesNotWaitEndsWhileLaterJobsBecomeDue) {
  push({.queue = "other", .run_at = time.after(1s)});
  push({.queue = "other", .run_at = time.after(2s)});
  settle();
  event answered;
  bool is_first = true;
  drive.block();
  drive.fails_when([&](const transaction&) -> std::optional<error> {
    if (std::exchange(is_first, false)) {
      time.advance(1s);  // the second job becomes due while the first one is committed
    } else {
      answered.wait();
    }
    return std::nullopt;
  });
  time.advance(1s);
  drive.await_blocked();
  auto call = e().lease({}, at_once());
  drive.unblock();
  sluice::testing::eventually([&] { return call.is_ready(); }, "the call to end");
  answered.set();
  expect_timed_out(call);
  drive.works();
  settle();  // no later commit uses the function above
}

TEST_F(EngineTime, ARetryPrecedesALaterDeadline) {
  const job_id id = push(tried_twice(2s));
  ASSERT_TRUE(fail(take()));
  auto waits = begin_lease(2s);
  jump(10s);
  expect_given(waits, id);
}

TEST_F(EngineTime, AnExpiringLeasePrecedesALaterDeadline) {
  job_spec s = tried_twice(0ms);
  s.lease_for = 1s;
  const job_id id = push(s);
  (void)take();
  auto waits = begin_lease(1s + 1ns);
  jump(10s);
  expect_given(waits, id);
}

TEST_F(EngineTime, AnExpiredJobsRetryIsCountedFromTheEndOfItsLease) {
  job_spec s = tried_twice(3s);
  s.lease_for = 1s;
  const job_id id = push(s);
  (void)take();
  auto too_short = begin_lease(4s - 1ns);
  auto waits = begin_lease(4s);
  jump(10s);
  expect_timed_out(too_short);
  expect_given(waits, id);
}

TEST_F(EngineTime, AnExpiringLeaseOfACancelledJobPrecedesALaterDeadline) {
  push({.lease_for = 1s, .key = "k"});
  const job_id next = push({.key = "k"});
  const leased_job l = take();
  ASSERT_TRUE(e().cancel(l.job->id).get());
  auto waits = begin_lease(2s);
  jump(10s);
  expect_given(waits, next);
}

TEST_F(EngineTime, ARatePrecedesALaterDeadline) {
  configure({.rate = 1, .rate_burst = 1});
  push();
  const job_id id = push();
  (void)take();
  auto waits = begin_lease(1s);
  jump(10s);
  expect_given(waits, id);
}

TEST_F(EngineTime, TheRateOfAKeyPrecedesALaterDeadline) {
  configure({.key_rate = 1, .key_burst = 1});
  push({.key = "k"});
  const job_id id = push({.key = "k"});
  ASSERT_TRUE(ack(take()));
  EXPECT_TRUE(is_empty());
  auto waits = begin_lease(1s);
  jump(10s);
  expect_given(waits, id);
}

TEST_F(EngineTime, TheEndOfAPausePrecedesALaterDeadline) {
  const job_id id = push();
  ASSERT_TRUE(e().pause_for("default", 1s));
  auto waits = begin_lease(1s);
  jump(10s);
  expect_given(waits, id);
}

TEST_F(EngineTime, ACronRunPrecedesALaterDeadline) {
  cron_spec every_minute;
  every_minute.name = "minute";
  every_minute.schedule = "* * * * *";
  every_minute.job.kind = "k";
  ASSERT_TRUE(e().set_cron(every_minute).get());
  auto waits = begin_lease(61s);
  jump(10min);
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineTime, CapacityFreedByALeasePrecedesTheDeadlineOfAPush) {
  configure({.capacity_jobs = 1, .when_full = overflow::block});
  job_spec s = tried_once();
  s.lease_for = 1s;
  push(s);
  (void)take();
  auto too_short = begin_push({}, until(1s - 1ns));
  settle();
  auto waits = begin_push({}, until(1s));
  jump(10s);
  EXPECT_FALSE(too_short.get());
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineTime, TheEndOfAJobPrecedesTheDeadlineOfItsWaiter) {
  job_spec s = tried_once();
  s.lease_for = 1s;
  const job_id id = push(s);
  (void)take();
  auto too_short = e().wait(id, until(1s - 1ns));
  auto waits = e().wait(id, until(1s));
  settle();
  jump(10s);
  EXPECT_EQ(code_of(too_short.get()), error_code::timed_out);
  const auto ended = waits.get();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, job_state::dead);
}

TEST_F(EngineTime, AnEventPrecedesTheDeadlineOfAWaitForEvents) {
  job_spec s = tried_once();
  s.lease_for = 2s;
  const job_id id = push(s);
  (void)take();
  const event_request request{.types = {event_type::dead}};
  auto too_short = e().events(request, until(2s - 1ns));
  auto waits = e().events(request, until(2s));
  auto waits_longer = e().events(request, until(3s));
  settle();
  jump(10s);
  EXPECT_TRUE(too_short.get()->events.empty());
  for (auto* const each : {&waits, &waits_longer}) {
    const auto page = each->get();
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->events.size(), 1U);
    EXPECT_EQ(page->events[0].job, id);
  }
}

TEST_F(EngineTime, TheLastExpiringLeasePrecedesTheDeadlineOfDrained) {
  job_spec s = tried_once();
  s.lease_for = 1s;
  push(s);
  (void)take();
  auto too_short = e().drained(until(1s - 1ns));
  auto waits = e().drained(until(1s));
  jump(10s);
  EXPECT_EQ(too_short.get(), status::timed_out);
  EXPECT_EQ(waits.get(), status::ok);
}

// A failing store does not delay deadlines forever.

TEST_F(EngineTime, ADeadlineIsMetIfDueJobsCannotBeRead) {
  const job_id id = push_delayed(1s);
  auto waits = begin_lease(2s);
  settle();
  drive.reads_fail(true);
  time.advance(2s);
  expect_timed_out(waits);
  drive.reads_fail(false);
  advance(2s);
  EXPECT_EQ(drain(), ids{id});
}

TEST_F(EngineTime, ADeadlineIsMetIfDueJobsCannotBeStored) {
  const job_id id = push_delayed(1s);
  auto waits = begin_lease(2s);
  settle();
  drive.fails(error_code::io_error);
  time.advance(2s);
  expect_timed_out(waits);
  drive.works();
  advance(2s);
  EXPECT_EQ(drain(), ids{id});
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_time_test
