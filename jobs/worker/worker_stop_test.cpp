// How handlers hear that they should stop, and what becomes of their jobs: cancel, time limit, a
// lost lease, shutdown.
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
using what = worker_event::what;

class WorkerStop : public testing::worker_test {
 protected:
  // A handler that runs until it is asked to stop, and then throws.
  void handle_until_stopped(const char* kind) {
    w().handle(kind, [this](job_context& ctx) {
      event asked;
      const std::stop_callback on_stop(ctx.stop_token(), [&] { asked.set(); });
      begun_.set();
      asked.wait();
      reason_.store(ctx.why_stopped());
      throw std::runtime_error("interrupted");
    });
  }
  // One that does not listen, until the test lets it go.
  void handle_deaf(const char* kind) {
    w().handle(kind, [this] {
      begun_.set();
      let_go_.wait();
      return 7;
    });
  }

  event begun_;
  event let_go_;
  atomic<stop_reason> reason_{stop_reason::none};
};

TEST_F(WorkerStop, TellsTheHandlerThatItsJobWasCancelled) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);  // the next heartbeat
  wait_until_ended(id);
  EXPECT_EQ(reason_.load(), stop_reason::cancelled);
  EXPECT_EQ(source_.said(id).why.type, "cancelled");
  EXPECT_EQ(source_.said(id).why.message, "was called off while it ran: interrupted");
}

TEST_F(WorkerStop, TellsACoroutineThroughItsOwnToken) {
  w().handle("long", [this]() -> task<> {
    begun_.set();
    event never;
    const status ended = co_await never.async_wait();  // hears the task's token
    if (ended == status::stopped) throw std::runtime_error("stopped in a wait");
  });
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  wait_until_ended(id);
  EXPECT_EQ(source_.said(id).why.message, "was called off while it ran: stopped in a wait");
}

TEST_F(WorkerStop, AcksACancelledJobWhoseHandlerSucceededAllTheSame) {
  handle_deaf("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  eventually([&] { return source_.extensions() == 1; });
  let_go_.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

TEST_F(WorkerStop, DoesNotStartAJobThatWasCancelledWhileItWaited) {
  options_.concurrency = 1;
  options_.prefetch = 1;
  handle_deaf("long");
  w().start();
  source_.offer({.kind = "long"});
  begun_.wait();
  const job_id id = source_.offer({.kind = "never"});
  eventually([&] { return w().stats().waiting == 1; });
  source_.cancel(id);
  wait_until_quiet(1);
  time_.advance(20s);
  wait_until_ended(id);
  EXPECT_EQ(source_.said(id).why.message, "was called off before it began");
  let_go_.set();
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
  EXPECT_EQ(source_.said(id).why.type, "time_limit");
  EXPECT_EQ(source_.said(id).why.message,
            "took longer than its time limit of 5000 ms: interrupted");
}

TEST_F(WorkerStop, AnswersForAHandlerThatDoesNotStop) {
  options_.concurrency = 1;
  handle_deaf("deaf");
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
  EXPECT_EQ(source_.said(id).why.message,
            "took longer than its time limit of 5000 ms, and did not end when asked to");
  EXPECT_EQ(w().stats().abandoned, 1U);
  EXPECT_EQ(w().stats().running, 1U);  // its thread is still busy
  let_go_.set();
  const job_id next = source_.offer({.kind = "next"});
  wait_until_ended(next);  // and is free again
  EXPECT_EQ(source_.words_about(id), 1U);
}

TEST_F(WorkerStop, TellsTheHandlerThatTheLeaseIsLostAndTellsTheSourceNothing) {
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
  EXPECT_EQ(message_of(what::lost), "the lease is lost");
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
  EXPECT_GE(source_.extensions(), 5U);  // it was tried more than once
  EXPECT_EQ(reason_.load(), stop_reason::lease_lost);
  EXPECT_EQ(source_.ended(id), "");
}

TEST_F(WorkerStop, KeepsAJobThroughAnOutageShorterThanItsLease) {
  options_.concurrency = 1;
  handle_deaf("long");
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
  let_go_.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

// ---- telling the source

TEST_F(WorkerStop, TellsTheSourceAgainUntilItHasHeard) {
  options_.concurrency = 1;
  handle_deaf("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  source_.break_down(error{error_code::unavailable, "down"});
  let_go_.set();
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
  EXPECT_EQ(source_.words_about(id), 1U);
}

TEST_F(WorkerStop, SendsAcksThatBecomeDueMeanwhileTogether) {
  options_.concurrency = 8;
  w().handle("quick", [] {});
  source_.hold_acks();
  w().start();
  source_.offer({.kind = "quick"});
  eventually([&] { return source_.ack_calls().size() == 1; });
  for (int i = 0; i < 20; ++i) source_.offer({.kind = "quick"});
  eventually([&] { return w().stats().unsettled == 21; });
  source_.answer_acks();
  eventually([&] { return source_.words() == 21; });
  EXPECT_EQ(source_.ack_calls(), (std::vector<std::size_t>{1, 20}));
}

TEST_F(WorkerStop, FailsAJobForGoodWhoseResultIsRefused) {
  w().handle("odd", [] { return payload{"not JSON"}; });
  source_.refuse_ack({error_code::invalid, "result: expected JSON"});
  w().start();
  const job_id id = source_.offer({.kind = "odd"});
  wait_until_ended(id);
  EXPECT_EQ(source_.said(id).why.type, "bad_result");
  EXPECT_EQ(source_.said(id).why.message, "result: expected JSON");
  EXPECT_TRUE(source_.said(id).why.for_good);
}

// ---- shutdown

TEST_F(WorkerStop, LetsWhatRunsFinish) {
  handle_deaf("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  w().close();
  eventually([&] { return !source_.has_waiting_lease(); });
  let_go_.set();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.ended(id), "acked");
  EXPECT_EQ(w().stats().succeeded, 1U);
}

TEST_F(WorkerStop, GivesBackWhatHasNotBegun) {
  options_.concurrency = 1;
  options_.prefetch = 2;
  handle_deaf("long");
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
  let_go_.set();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.ended(first), "acked");
}

TEST_F(WorkerStop, GivesBackJobsThatWereOnTheirWayWhenItClosed) {
  w().start();
  eventually([&] { return source_.has_waiting_lease(); });
  source_.race_stopped_leases();
  EXPECT_EQ(w().stop(), status::ok);
  EXPECT_EQ(source_.words(), 1U);
  EXPECT_EQ(source_.ended(1), "released");
}

TEST_F(WorkerStop, AsksHandlersToStopAtTheDeadlineAndGivesTheirJobsBack) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  EXPECT_EQ(w().stop(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(reason_.load(), stop_reason::shutdown);
  EXPECT_EQ(source_.ended(id), "released");
  EXPECT_EQ(source_.said(id).how.delay, 0ms);
  EXPECT_EQ(w().stats().given_back, 1U);
}

TEST_F(WorkerStop, HurriesWhenTheTokenOfStopAsks) {
  handle_until_stopped("long");
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun_.wait();
  std::stop_source hurry;
  hurry.request_stop();
  EXPECT_EQ(w().stop(hurry.get_token()), status::stopped);
  EXPECT_EQ(source_.ended(id), "released");
}

TEST_F(WorkerStop, GivesBackTheJobOfAHandlerThatDoesNotStop) {
  options_.stop_grace = 0ms;
  handle_deaf("deaf");
  w().start();
  const job_id id = source_.offer({.kind = "deaf"});
  begun_.wait();
  EXPECT_EQ(w().stop(deadline::after(0s)), status::timed_out);
  EXPECT_EQ(source_.ended(id), "released");
  EXPECT_EQ(w().stats().abandoned, 1U);
  EXPECT_EQ(w().stats().given_back, 1U);
  let_go_.set();  // else the destructor would wait for it
}

TEST_F(WorkerStop, EndsWhenTheSourceCannotBeTold) {
  options_.stop_grace = 0ms;
  handle_deaf("deaf");
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
  EXPECT_EQ(message_of(what::lost), "shut down before the source could be told");
  let_go_.set();
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
  EXPECT_EQ(source_.ended(id), "acked");  // it was asked to stop, and ended as if all were well
}

TEST_F(WorkerStop, StopsWithoutHavingBeenStarted) {
  EXPECT_EQ(w().stop(), status::ok);
}

TEST_F(WorkerStop, IsBrokenByASecondHandlerForAKindAndByOneThatComesLate) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  w().handle("mail", [] {});
  EXPECT_DEATH(w().handle("mail", [] {}), "one handler for each kind");
  EXPECT_DEATH(
      {
        w().start();
        w().handle("more", [] {});
      },
      "before it is started");
}

TEST_F(WorkerStop, IsIdleWhileThereIsNothingToDo) {
  handle_deaf("long");
  w().start();
  source_.offer({.kind = "long"});
  begun_.wait();
  wait_until_quiet(1);
  const auto before = w().stats();
  time_.advance(10s);
  const auto after = w().stats();
  EXPECT_EQ(after.lease_calls, before.lease_calls);
  EXPECT_EQ(after.extend_calls, before.extend_calls);
  let_go_.set();
}

}  // namespace
}  // namespace sluice::jobs::worker_stop_test
