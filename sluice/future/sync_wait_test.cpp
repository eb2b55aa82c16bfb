#include "sluice/future/sync_wait.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::sync_wait_test {
namespace {

using namespace std::chrono_literals;

// A task that waits for an event, run by sync_wait on a thread and by `within` in a coroutine: a
// task with limits gives the guarantees of every wait of the library.
class task_gate {
 public:
  status wait(const wait_limits& limits) { return sync_wait(pass(event_, {}), limits); }
  template <class Where>
  static detached await(task_gate& gate, Where&, wait_limits limits, ending& ended) {
    auto limited = within(pass(gate.event_, {}), std::move(limits));
    ended.set(co_await std::move(limited));
  }
  void open() { event_.set(); }
  std::size_t waiting() const { return event_.waiting(); }

 private:
  static task<> pass(event& e, tracked) { (void)co_await e.async_wait(); }

  event event_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(sync_wait_and_within, waiting_suite, task_gate);

class sync_wait_test : public leak_checked {};

task<int> wait_for(event& e, tracked = {}) {
  const status s = co_await e.async_wait();
  co_return s ? 1 : -1;
}

TEST_F(sync_wait_test, EveryStepRunsOnTheThreadThatWaits) {
  const auto me = std::this_thread::get_id();
  std::vector<event> events(20);
  const auto steps = [&]() -> task<int> {
    int here = 0;
    for (auto& e : events) {
      (void)co_await e.async_wait();
      here += std::this_thread::get_id() == me ? 1 : 0;
    }
    co_return here;
  };
  std::jthread sets([&] {
    for (auto& e : events) {
      eventually([&] { return e.waiting() == 1; });
      e.set();
    }
  });
  EXPECT_EQ(sync_wait(steps()), 20);
}

TEST_F(sync_wait_test, ATaskThatMovesAwayStillEndsHere) {
  thread_pool pool(1);
  const auto me = std::this_thread::get_id();
  const auto away = [&]() -> task<bool> {
    co_await resume_on(pool);
    co_return std::this_thread::get_id() != me;
  };
  const auto outer = [&]() -> task<bool> {
    const bool was_away = co_await away();
    co_return was_away && std::this_thread::get_id() == me;
  };
  EXPECT_TRUE(sync_wait(outer()));
  EXPECT_TRUE(sync_wait(away()));
}

TEST_F(sync_wait_test, AtItsDeadlineTheTaskIsAskedToStopAndHasEnded) {
  event never;
  bool asked = false;
  const auto notes = [&](tracked) -> task<int> {
    const status s = co_await never.async_wait();
    asked = s == status::stopped;
    co_return 5;
  };
  EXPECT_EQ(sync_wait(notes({}), deadline::after(1ms)).status(), status::timed_out)
      << "the value of a task that was asked to stop is dropped";
  EXPECT_TRUE(asked);
  EXPECT_EQ(tracked::alive(), 0);
  EXPECT_EQ(never.waiting(), 0U);
}

TEST_F(sync_wait_test, ATaskIsAskedAtTheDeadlineAlsoWhileItComputes) {
  const auto computes = []() -> task<> {
    const std::stop_token stop = co_await this_task::stop_token();
    eventually([&] { return stop.stop_requested(); });
  };
  EXPECT_EQ(sync_wait(computes(), deadline::after(1ms)), status::timed_out);
}

TEST_F(sync_wait_test, GivesTheValueWhenTheTaskEndsInTime) {
  event e;
  std::stop_source source;
  std::jthread sets([&] { e.set(); });
  EXPECT_EQ(*sync_wait(wait_for(e), {deadline::after(1h), source.get_token()}), 1);
  EXPECT_EQ(*sync_wait(wait_for(e), source.get_token()), 1);
  EXPECT_EQ(*sync_wait(wait_for(e), wait_limits{}), 1);
  int target = 0;
  const auto pick = [&]() -> task<int&> { co_return target; };
  EXPECT_EQ(&sync_wait(pick(), deadline::after(1h))->get(), &target);
}

TEST_F(sync_wait_test, ADeadlineOnAManualClockCounts) {
  manual_clock clock;
  event never;
  std::jthread moves([&] {
    eventually([&] { return never.waiting() == 1; });
    clock.advance(1h);
  });
  EXPECT_EQ(sync_wait(wait_for(never), deadline::after(1h, clock)).status(), status::timed_out);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(sync_wait_test, AStopFromAnotherThreadEndsIt) {
  event never;
  std::stop_source source;
  std::jthread stops([&] {
    eventually([&] { return never.waiting() == 1; });
    source.request_stop();
  });
  EXPECT_EQ(sync_wait(wait_for(never), source.get_token()).status(), status::stopped);
}

TEST_F(sync_wait_test, WithAnEarlierStopTheTaskIsNotBegun) {
  std::stop_source source;
  source.request_stop();
  bool ran = false;
  const auto set = [&](tracked) -> task<> {
    ran = true;
    co_return;
  };
  EXPECT_EQ(sync_wait(set({}), source.get_token()), status::stopped);
  EXPECT_EQ(sync_wait(set({}), {deadline::after(1h), source.get_token()}), status::stopped);
  EXPECT_FALSE(ran);
}

TEST_F(sync_wait_test, WithAPassedDeadlineTheTaskStillRunsUntilItsFirstWait) {
  event open;
  open.set();
  EXPECT_EQ(*sync_wait(wait_for(open), deadline::after(-1s)), 1);
  EXPECT_EQ(*sync_wait(within(wait_for(open), deadline::after(-1s))), 1);
  event shut;
  EXPECT_EQ(sync_wait(wait_for(shut), deadline::after(-1s)).status(), status::timed_out);
  EXPECT_EQ(sync_wait(within(wait_for(shut), deadline::after(-1s))).status(), status::timed_out);
}

TEST_F(sync_wait_test, AnExceptionOfTheTasksOwnIsThrownAlsoWhenTimeWasUp) {
  event never;
  const auto complains = [&](tracked) -> task<int> {
    const status s = co_await never.async_wait();
    if (!s) throw std::runtime_error("interrupted");
    co_return 0;
  };
  EXPECT_THROW((void)sync_wait(complains({}), deadline::after(1ms)), std::runtime_error);
  const auto gives_up = [&](tracked) -> task<int> {
    promise<int> p;
    co_return co_await p.get_future();
  };
  EXPECT_EQ(sync_wait(gives_up({}), deadline::after(1ms)).status(), status::timed_out)
      << "future_error::cancelled is the result of a stop";
}

TEST_F(sync_wait_test, MayBeCalledInsideATaskThatIsWaitedFor) {
  event e;
  std::jthread sets([&] {
    eventually([&] { return e.waiting() == 1; });
    e.set();
  });
  const auto outer = [&]() -> task<int> { co_return sync_wait(wait_for(e)); };
  EXPECT_EQ(sync_wait(outer()), 1);
}

TEST_F(sync_wait_test, ItsExecutorTakesFunctionsUpToABoundAndThenReturnsFull) {
  int ran = 0;
  const auto floods = [&]() -> task<std::size_t> {
    executor& current = *co_await this_task::executor();
    EXPECT_EQ(current.name(), "sync_wait");
    std::size_t taken = 0;
    while (current.try_submit([&] { ++ran; })) ++taken;
    EXPECT_EQ(current.try_submit([] {}), status::full);
    std::stop_source source;
    source.request_stop();
    EXPECT_EQ(current.submit([] {}, source.get_token()), status::stopped);
    co_await this_task::yield();  // behind them
    EXPECT_EQ(current.try_submit([&] { ++ran; }), status::ok);
    co_return taken;
  };
  EXPECT_EQ(sync_wait(floods()), 1024U);
  EXPECT_EQ(ran, 1025) << "the last submission runs before it returns";
}

TEST_F(sync_wait_test, DeadlinesStopsAndEventsThatRaceLeaveNothingBehind) {
  stress run;
  std::vector<std::jthread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&run, number] {
      auto choose = run.generator(static_cast<std::uint64_t>(number));
      for (int round = 0; round < 300; ++round) {
        event e;
        std::stop_source source;
        std::jthread other;
        switch (choose.below(3)) {
          case 0: other = std::jthread([&] { e.set(); }); break;
          case 1: other = std::jthread([&] { source.request_stop(); }); break;
          default: break;
        }
        const deadline until = deadline::after(std::chrono::microseconds(choose.below(100)));
        const auto ended = choose.below(2) == 0
                               ? sync_wait(wait_for(e), {until, source.get_token()})
                               : sync_wait(within(wait_for(e), {until, source.get_token()}));
        if (ended) {
          EXPECT_EQ(*ended, 1);
        } else {
          EXPECT_TRUE(ended.status() == status::timed_out || ended.status() == status::stopped);
        }
        run.did();
      }
    });
  }
}

}  // namespace
}  // namespace sluice::testing::sync_wait_test
