// Stopping handlers and the outcome of their jobs: cancel, time limit, lost lease, shutdown.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jobs/worker/testing/worker_fixture.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::worker_stop_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;
using event_kind = worker_event::event_kind;

class WorkerStop : public testing::worker_test {
 protected:
  // Adds a handler that runs until its stop is requested and then throws.
  void handle_until_stopped(const char* kind) {
    w().handle(kind, [this](job_context& ctx) {
      event stopped;
      const std::stop_callback on_stop(ctx.stop_token(), [&] { stopped.set(); });
      begun_.set();
      stopped.wait();
      reason_.store(ctx.why_stopped());
      throw std::runtime_error("interrupted");
    });
  }
  // Adds a handler that ignores the stop request until the test releases it.
  void handle_unstoppable(const char* kind) {
    w().handle(kind, [this] {
      begun_.set();
      release_.wait();
      return 7;
    });
  }

  event begun_;
  event release_;
  atomic<stop_reason> reason_{stop_reason::none};
};

TEST_F(WorkerStop, StopsTheHandlerOfACancelledJob) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);  // the next heartbeat
  wait_until_ended(id);
  EXPECT_EQ(reason_.load(), stop_reason::cancelled);
  EXPECT_EQ(source_.last_end(id).why.type, "cancelled");
  EXPECT_EQ(source_.last_end(id).why.message, "cancelled while it ran: interrupted");
}

TEST_F(WorkerStop, StopsACoroutineThroughItsOwnToken) {
  w().handle("long", [this]() -> task<> {
    begun_.set();
    event never;
    const status ended = co_await never.async_wait();  // ends through the task's token
    if (ended == status::stopped) throw std::runtime_error("stopped in a wait");
  });
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.message, "cancelled while it ran: stopped in a wait");
}

TEST_F(WorkerStop, AcksACancelledJobWhoseHandlerSucceeded) {
  handle_unstoppable("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  eventually([&] { return source_.extensions() == 1; });
  release_.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

TEST_F(WorkerStop, DoesNotStartAJobThatWasCancelledWhileItWaited) {
  options_.concurrency = 1;
  options_.prefetch = 1;
  handle_unstoppable("long");
  w().start();
  source_.offer({.kind = "long"});
  begun_.wait();
  const job_id id = source_.offer({.kind = "never"});
  eventually([&] { return w().stats().waiting == 1; });
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.message, "cancelled before it started");
  release_.set();
}

TEST_F(WorkerStop, AsksTheHandlerToStopAtTheTimeLimit) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long", .time_limit = 5s});
  begun_.wait();
  wait_until_quiet(1);
  time_.advance(4999ms);
  EXPECT_EQ(reason_.load(), stop_reason::none);
  wait_until_quiet(1);
  time_.advance(1ms);
  wait_until_ended(id);
  EXPECT_EQ(reason_.load(), stop_reason::time_limit);
  EXPECT_EQ(source_.last_end(id).why.type, "time_limit");
  EXPECT_EQ(source_.last_end(id).why.message, "exceeded its time limit of 5000 ms: interrupted");
}

TEST_F(WorkerStop, ReportsForAHandlerThatDoesNotStop) {
  options_.concurrency = 1;
  handle_unstoppable("deaf");
  w().handle("next", [] {});
  w().start();
  const job_id id = source_.offer({.kind = "deaf", .time_limit = 5s});
  begun_.wait();
  wait_until_quiet(1);
  time_.advance(5s);
  wait_until_quiet(1);
  EXPECT_EQ(source_.ended(id), "");
  time_.advance(10s);  // stop_grace
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.message,
            "exceeded its time limit of 5000 ms, and did not stop when requested");
  EXPECT_EQ(w().stats().abandoned, 1U);
  EXPECT_EQ(w().stats().running, 1U);  // its thread is still busy
  release_.set();
  const job_id next = source_.offer({.kind = "next"});
  wait_until_ended(next);  // and is free again
  EXPECT_EQ(source_.end_count(id), 1U);
}

TEST_F(WorkerStop, StopsTheHandlerOfALostLeaseAndReportsNothing) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.lose(id);
  wait_until_quiet(1);
  time_.advance(20s);
  eventually([&] { return w().stats().lost == 1 && w().stats().running == 0; });
  EXPECT_EQ(reason_.load(), stop_reason::lease_lost);
  EXPECT_EQ(source_.ended(id), "");
  EXPECT_EQ(message_of(event_kind::lost), "the lease is lost");
}

TEST_F(WorkerStop, CountsALeaseAsLostThatCouldNotBeExtendedInTime) {
  options_.concurrency = 1;
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.break_down(error{error_code::unavailable, "down"});
  for (int second = 0; second < 60; ++second) {
    wait_until_quiet(1);
    EXPECT_EQ(w().stats().lost, 0U) << "after " << second << " s";
    time_.advance(1s);
  }
  eventually([&] { return w().stats().lost == 1 && w().stats().running == 0; });
  EXPECT_GE(source_.extensions(), 5U);  // retried several times
  EXPECT_EQ(reason_.load(), stop_reason::lease_lost);
  EXPECT_EQ(source_.ended(id), "");
}

TEST_F(WorkerStop, KeepsAJobThroughAnOutageShorterThanItsLease) {
  options_.concurrency = 1;
  handle_unstoppable("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.break_down(error{error_code::unavailable, "down"});
  for (int second = 0; second < 50; ++second) {
    wait_until_quiet(1);
    time_.advance(1s);
  }
  wait_until_quiet(1);  // the last try has failed as well
  source_.break_down({});
  const auto tried = source_.extensions();
  wait_until_quiet(1);
  time_.advance(5s);
  eventually([&] { return source_.extensions() > tried; });
  release_.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

// ---- reporting

TEST_F(WorkerStop, RepeatsTheReportUntilTheSourceReplies) {
  options_.concurrency = 1;
  handle_unstoppable("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.break_down(error{error_code::unavailable, "down"});
  release_.set();
  eventually([&] { return w().stats().unsettled == 1; });
  for (int ms = 0; ms < 5000; ms += 100) {
    wait_until_quiet(1);
    time_.advance(100ms);
  }
  EXPECT_GE(source_.ack_calls().size(), 3U);
  source_.break_down({});
  for (int ms = 0; ms < 20'000 && source_.ended(id).empty(); ms += 100) {
    wait_until_quiet(1);
    time_.advance(100ms);
  }
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
  EXPECT_EQ(source_.end_count(id), 1U);
}

TEST_F(WorkerStop, SendsAcksThatBecomeDueDuringACallTogether) {
  options_.concurrency = 8;
  w().handle("quick", [] {});
  source_.hold_acks();
  w().start();
  source_.offer({.kind = "quick"});
  eventually([&] { return source_.ack_calls().size() == 1; });
  for (int i = 0; i < 20; ++i) source_.offer({.kind = "quick"});
  eventually([&] { return w().stats().unsettled == 21; });
  source_.answer_acks();
  eventually([&] { return source_.ended_jobs() == 21; });
  EXPECT_EQ(source_.ack_calls(), (std::vector<std::size_t>{1, 20}));
}

TEST_F(WorkerStop, FailsAJobForGoodWhoseResultIsRefused) {
  w().handle("odd", [] { return payload{"not JSON"}; });
  source_.refuse_ack({error_code::invalid, "result: expected JSON"});
  w().start();
  const job_id id = source_.offer({.kind = "odd"});
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.type, "bad_result");
  EXPECT_EQ(source_.last_end(id).why.message, "result: expected JSON");
  EXPECT_TRUE(source_.last_end(id).why.for_good);
}

// ---- shutdown

TEST_F(WorkerStop, WaitsForRunningHandlers) {
  handle_unstoppable("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  w().close();
  eventually([&] { return !source_.has_waiting_lease(); });
  release_.set();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.ended(id), "acked");
  EXPECT_EQ(w().stats().succeeded, 1U);
}

TEST_F(WorkerStop, ReleasesJobsThatHaveNotStarted) {
  options_.concurrency = 1;
  options_.prefetch = 2;
  handle_unstoppable("long");
  w().start();
  const job_id first = source_.offer({.kind = "long"});
  begun_.wait();
  const job_id second = source_.offer({.kind = "long"});
  const job_id third = source_.offer({.kind = "long"});
  eventually([&] { return w().stats().waiting == 2; });
  w().close();
  wait_until_ended(second);
  wait_until_ended(third);
  EXPECT_EQ(source_.ended(second), "released");
  EXPECT_EQ(source_.ended(third), "released");
  EXPECT_EQ(source_.ended(first), "");
  release_.set();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.ended(first), "acked");
}

TEST_F(WorkerStop, ReleasesJobsThatArriveAfterItClosed) {
  w().start();
  eventually([&] { return source_.has_waiting_lease(); });
  source_.race_stopped_leases();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.ended_jobs(), 1U);
  EXPECT_EQ(source_.ended(1), "released");
}

TEST_F(WorkerStop, StopsHandlersAtTheDeadlineAndReleasesTheirJobs) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  EXPECT_EQ(w().stop(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(reason_.load(), stop_reason::shutdown);
  EXPECT_EQ(source_.ended(id), "released");
  EXPECT_EQ(source_.last_end(id).options.delay, 0ms);
  EXPECT_EQ(w().stats().given_back, 1U);
}

TEST_F(WorkerStop, StopsHandlersWhenTheTokenOfStopIsTriggered) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  std::stop_source hurry;
  hurry.request_stop();
  EXPECT_EQ(w().stop(hurry.get_token()), status::stopped);
  EXPECT_EQ(source_.ended(id), "released");
}

TEST_F(WorkerStop, ReleasesTheJobOfAHandlerThatDoesNotStop) {
  options_.stop_grace = 0ms;
  handle_unstoppable("deaf");
  w().start();
  const job_id id = source_.offer({.kind = "deaf"});
  begun_.wait();
  EXPECT_EQ(w().stop(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(source_.ended(id), "released");
  EXPECT_EQ(w().stats().abandoned, 1U);
  EXPECT_EQ(w().stats().given_back, 1U);
  release_.set();  // the destructor waits for the handler
}

TEST_F(WorkerStop, EndsWhenTheSourceDoesNotReply) {
  options_.stop_grace = 0ms;
  handle_unstoppable("deaf");
  w().start();
  source_.offer({.kind = "deaf"});
  begun_.wait();
  source_.break_down(error{error_code::unavailable, "down"});
  status ended = status::ok;
  std::jthread stopping([&] { ended = w().stop(deadline::after(0s)); });
  for (int ms = 0; ms < 1000; ms += 100) {
    eventually([&] { return w().stats().abandoned == 1; });
    wait_until_quiet(1);
    time_.advance(100ms);
  }
  stopping.join();
  EXPECT_EQ(ended, status::timed_out);
  EXPECT_EQ(w().stats().lost, 1U);
  EXPECT_EQ(message_of(event_kind::lost),
            "the worker stopped before it could report the job's end");
  release_.set();
}

TEST_F(WorkerStop, EndsACoroutineThatWaitsWhenItIsDestroyed) {
  w().handle("long", [this]() -> task<> {
    begun_.set();
    event never;
    (void)co_await never.async_wait();
  });
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  worker_.reset();
  EXPECT_EQ(source_.ended(id), "acked");  // its stop was requested, and it ended normally
}

TEST_F(WorkerStop, StopsWithoutHavingBeenStarted) {
  EXPECT_EQ(w().stop(), status::ok);
}

TEST_F(WorkerStop, IsBrokenByASecondHandlerForAKindAndByALateHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  w().handle("mail", [] {});
  EXPECT_DEATH(w().handle("mail", [] {}), "at most one handler per kind");
  EXPECT_DEATH(
      {
        w().start();
        w().handle("more", [] {});
      },
      "added before start");
}

TEST_F(WorkerStop, IsIdleWhileThereIsNothingToDo) {
  handle_unstoppable("long");
  w().start();
  source_.offer({.kind = "long"});
  begun_.wait();
  wait_until_quiet(1);
  const auto before = w().stats();
  time_.advance(10s);
  const auto after = w().stats();
  EXPECT_EQ(after.lease_calls, before.lease_calls);
  EXPECT_EQ(after.extend_calls, before.extend_calls);
  release_.set();
}

}  // namespace
}  // namespace sluice::jobs::worker_stop_test
