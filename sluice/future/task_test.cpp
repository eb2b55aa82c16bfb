#include "sluice/future/task.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::task_test {
namespace {

using namespace std::chrono_literals;

constexpr int million = 1'000'000;

class task_test : public leak_checked {};

task<int> answer(tracked = {}) { co_return 42; }
task<> nothing() { co_return; }

TEST_F(task_test, ReturnsItsValueToTheAwaitingTask) {
  const auto sum = []() -> task<int> { co_return co_await answer() + co_await answer(); };
  EXPECT_EQ(sync_wait(sum()), 84);
}

TEST_F(task_test, RunsNothingUntilItIsAwaited) {
  bool ran = false;
  const auto set = [](bool& flag) -> task<> {
    flag = true;
    co_return;
  };
  auto t = set(ran);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(t.valid());
  sync_wait(std::move(t));
  EXPECT_TRUE(ran);
  EXPECT_FALSE(t.valid());
}

TEST_F(task_test, DiscardedUnawaitedItNeverRunsAndFreesItsArguments) {
  bool ran = false;
  const auto set = [](bool& flag, tracked) -> task<> {
    flag = true;
    co_return;
  };
  {
    const auto t = set(ran, {});
    EXPECT_EQ(tracked::alive(), 1);
  }
  EXPECT_EQ(tracked::alive(), 0);
  auto t = set(ran, {});
  t = task<>();
  EXPECT_EQ(tracked::alive(), 0);
  EXPECT_FALSE(ran);
}

TEST_F(task_test, FreesTheFrameAtTheEndOfTheExpressionThatAwaitsIt) {
  const auto outer = []() -> task<> {
    auto kept = answer();
    EXPECT_EQ(tracked::alive(), 1);
    const int got = co_await std::move(kept);
    EXPECT_EQ(got, 42);
    EXPECT_EQ(tracked::alive(), 0);
  };
  sync_wait(outer());
}

TEST_F(task_test, CarriesMoveOnlyValues) {
  const auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
  const auto pass = [&]() -> task<std::unique_ptr<int>> { co_return co_await make(); };
  EXPECT_EQ(*sync_wait(pass()), 7);
}

TEST_F(task_test, CarriesReferences) {
  int target = 1;
  const auto pick = [](int& which) -> task<int&> { co_return which; };
  const auto use = [&]() -> task<> {
    int& picked = co_await pick(target);
    EXPECT_EQ(&picked, &target);
    picked = 2;
  };
  sync_wait(use());
  EXPECT_EQ(target, 2);
  EXPECT_EQ(&sync_wait(pick(target)), &target);
  const auto constant = [](const int& which) -> task<const int&> { co_return which; };
  EXPECT_EQ(&sync_wait(constant(target)), &target);
}

TEST_F(task_test, ConvertsTheReturnedValue) {
  const auto text = []() -> task<std::string> { co_return "text"; };
  EXPECT_EQ(sync_wait(text()), "text");
  const auto braces = []() -> task<std::vector<int>> { co_return {1, 2, 3}; };
  EXPECT_EQ(sync_wait(braces()).size(), 3U);
}

TEST_F(task_test, RethrowsItsExceptionWhereItIsAwaited) {
  const auto fails = [](tracked) -> task<int> {
    throw std::runtime_error("no answer");
    co_return 0;
  };
  const auto tries = [&]() -> task<std::string> {
    try {
      (void)co_await fails({});
    } catch (const std::runtime_error& e) {
      co_return e.what();
    }
    co_return "nothing was thrown";
  };
  EXPECT_EQ(sync_wait(tries()), "no answer");
  EXPECT_THROW(sync_wait(fails({})), std::runtime_error);
}

// ---- stack

TEST_F(task_test, ALoopOfAMillionReadyTasksNeedsNoStack) {
  const auto loop = []() -> task<long> {
    long sum = 0;
    for (int i = 0; i < million; ++i) sum += co_await answer();
    co_return sum;
  };
  EXPECT_EQ(sync_wait(loop()), 42L * million);
}

task<int> nest(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await nest(depth - 1);
}

TEST_F(task_test, AMillionTasksThatAwaitEachOtherNeedNoStack) {
  EXPECT_EQ(sync_wait(nest(million)), million);
}

TEST_F(task_test, NorDoTheyOnAnInlineExecutorOrNone) {
  inline_executor here;
  EXPECT_EQ(spawn(here, nest(million)).get(), million);
  int got = 0;
  const auto from_nowhere = [](int& result) -> detached { result = co_await nest(million); };
  from_nowhere(got);
  EXPECT_EQ(got, million);
}

task<> fail_at(int depth) {
  if (depth == 0) throw std::runtime_error("at the bottom");
  co_await fail_at(depth - 1);
}

TEST_F(task_test, AnExceptionPropagatesThroughATenthOfAMillionTasks) {
  EXPECT_THROW(sync_wait(fail_at(million / 10)), std::runtime_error);
}

TEST_F(task_test, AMillionYieldsAndMovesBetweenExecutorsNeedNoStack) {
  inline_executor here;
  inline_executor there;
  const auto hops = [](executor& a, executor& b) -> task<int> {
    int count = 0;
    for (; count < million / 4; ++count) {
      co_await this_task::yield();
      co_await resume_on(a);
      co_await resume_on(b);
    }
    co_return count;
  };
  EXPECT_EQ(spawn(here, hops(there, here)).get(), million / 4);
}

// ---- executor

TEST_F(task_test, InheritsTheExecutorOfTheAwaitingTask) {
  manual_executor ex;
  const auto inner = []() -> task<executor*> { co_return co_await this_task::executor(); };
  const auto outer = [&]() -> task<executor*> { co_return co_await inner(); };
  auto f = spawn(ex, outer());
  EXPECT_FALSE(f.is_ready());
  ex.run_all();
  EXPECT_EQ(f.get(), &ex);
}

TEST_F(task_test, ResumesOnItsExecutorAfterAWait) {
  manual_executor ex;
  event e;
  bool done = false;
  const auto waits = [](event& on, bool& flag) -> task<> {
    (void)co_await on.async_wait();
    flag = true;
  };
  auto f = spawn(ex, waits(e, done));
  ex.run_all();
  std::jthread([&] { e.set(); }).join();
  EXPECT_FALSE(done) << "the thread that ends the wait does not run the task";
  EXPECT_EQ(ex.pending(), 1U);
  ex.run_all();
  EXPECT_TRUE(done);
}

TEST_F(task_test, ResumeOnMovesTheRestOfATaskAndNotOfTheAwaitingTask) {
  manual_executor a;
  manual_executor b;
  std::vector<std::string> steps;
  const auto here = [&] { return executor::current() == &a ? "a" : "b"; };
  const auto inner = [&]() -> task<> {
    steps.push_back(std::string("inner begins on ") + here());
    co_await resume_on(b);
    steps.push_back(std::string("inner resumes on ") + here());
    co_await this_task::yield();
    steps.push_back(std::string("inner ends on ") + here());
  };
  const auto outer = [&]() -> task<> {
    co_await inner();
    steps.push_back(std::string("outer resumes on ") + here());
  };
  auto f = spawn(a, outer());
  while (!f.is_ready()) {
    ASSERT_TRUE(a.run_one() || b.run_one());
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"inner begins on a", "inner resumes on b",
                                             "inner ends on b", "outer resumes on a"}));
}

TEST_F(task_test, ResumeOnWhereItRunsAlreadyDoesNotSuspend) {
  manual_executor ex;
  const auto stays = [&]() -> task<> { co_await resume_on(ex); };
  auto f = spawn(ex, stays());
  EXPECT_TRUE(ex.run_one());
  EXPECT_TRUE(f.is_ready());
}

TEST_F(task_test, YieldRunsOtherWorkOfItsExecutor) {
  manual_executor ex;
  std::string order;
  event go;
  const auto writes = [&](char c) -> task<> {
    (void)co_await go.async_wait();
    for (int i = 0; i < 3; ++i) {
      order += c;
      co_await this_task::yield();
    }
  };
  auto a = spawn(ex, writes('a'));
  auto b = spawn(ex, writes('b'));
  ex.run_all();
  go.set();
  ex.run_all();
  EXPECT_EQ(order, "ababab");
}

TEST_F(task_test, ACoroutineThatIsNoTaskPassesItsSinkOn) {
  manual_sink sink;
  event e;
  int got = 0;
  const auto waits = [](event& on) -> task<int> {
    (void)co_await on.async_wait();
    co_return 1;
  };
  const auto outer = [](manual_sink&, task<int> t, int& result) -> detached {
    result = co_await std::move(t);
  };
  outer(sink, waits(e), got);
  e.set();
  EXPECT_EQ(got, 0);
  sink.run_all();
  EXPECT_EQ(got, 1);
}

TEST_F(task_test, WithoutAnExecutorItResumesWhereItsWaitsEnd) {
  event e;
  std::thread::id went_on;
  const auto waits = [](event& on, std::thread::id& resumed_on) -> task<> {
    executor* const none = co_await this_task::executor();
    EXPECT_EQ(none, nullptr);
    (void)co_await on.async_wait();
    resumed_on = std::this_thread::get_id();
  };
  const auto outer = [](task<> t) -> detached { co_await std::move(t); };
  outer(waits(e, went_on));
  std::thread::id setter;
  std::jthread([&] {
    setter = std::this_thread::get_id();
    e.set();
  }).join();
  EXPECT_EQ(went_on, setter);
}

// ---- stop

// A task that waits in one of several ways, awaited by another task, and is stopped there.
template <class Wait>
status stopped_in(Wait wait) {
  const auto inner = [](Wait& w) -> task<status> { co_return co_await w(); };
  const auto outer = [&](Wait& w) -> task<status> { co_return co_await inner(w); };
  manual_executor ex;
  auto f = spawn(ex, outer(wait));
  ex.run_all();
  EXPECT_FALSE(f.is_ready()) << "it should wait";
  f.cancel();
  ex.run_all();
  EXPECT_TRUE(f.is_ready());
  return f.get();
}

TEST_F(task_test, AStopEndsTheWaitItIsInHoweverDeep) {
  event e;
  EXPECT_EQ(stopped_in([&] { return e.async_wait(); }), status::stopped);
  semaphore none(0);
  EXPECT_EQ(stopped_in([&] { return none.async_acquire(); }), status::stopped);
  bounded_queue<int> full(1);
  ASSERT_TRUE(full.try_push(1));
  EXPECT_EQ(stopped_in([&] { return full.async_push(2); }), status::stopped);
  bounded_queue<int> empty(1);
  EXPECT_EQ(stopped_in([&]() -> task<status> { co_return (co_await empty.async_pop()).status(); }),
            status::stopped);
  EXPECT_EQ(stopped_in([]() -> task<status> {
              co_return co_await sleep_until(deadline::never());
            }),
            status::stopped);
  EXPECT_EQ(e.waiting() + static_cast<std::size_t>(none.waiting()), 0U);
}

TEST_F(task_test, AStopThatEndsTheWaitForAFutureThrowsCancelledAndCancelsIt) {
  promise<int> p;
  const auto waits = [](future<int> f) -> task<int> { co_return co_await std::move(f); };
  manual_executor ex;
  auto f = spawn(ex, waits(p.get_future()));
  ex.run_all();
  f.cancel();
  ex.run_all();
  EXPECT_TRUE(p.stop_token().stop_requested());
  try {
    (void)f.get();
    FAIL() << "no exception";
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::cancelled);
  }
}

TEST_F(task_test, AwaitsFutures) {
  promise<std::unique_ptr<int>> p;
  promise<int> broken;
  const auto waits = [](future<std::unique_ptr<int>> f, future<int> g) -> task<int> {
    const auto got = co_await std::move(f);
    try {
      (void)co_await std::move(g);
    } catch (const std::runtime_error&) {
      co_return *got;
    }
    co_return -1;
  };
  auto t = waits(p.get_future(), broken.get_future());
  std::jthread sets([&] {
    p.set_value(std::make_unique<int>(5));
    broken.set_exception(std::runtime_error("broken"));
  });
  EXPECT_EQ(sync_wait(std::move(t)), 5);
}

TEST_F(task_test, AWaitWithATokenOfItsOwnDoesNotUseTheTasks) {
  event e;
  std::stop_source source;
  const auto waits = [](event& on, std::stop_token token) -> task<status> {
    co_return co_await on.async_wait(token);
  };
  manual_executor ex;
  auto f = spawn(ex, waits(e, source.get_token()));
  ex.run_all();
  f.cancel();
  ex.run_all();
  EXPECT_FALSE(f.is_ready());
  source.request_stop();
  ex.run_all();
  EXPECT_EQ(f.get(), status::stopped);
}

TEST_F(task_test, ReturnsItsTokenForComputations) {
  const auto looks = []() -> task<bool> {
    const std::stop_token token = co_await this_task::stop_token();
    co_await this_task::yield();
    co_return token.stop_requested();
  };
  manual_executor ex;
  auto f = spawn(ex, looks());
  ex.run_one();
  f.cancel();
  ex.run_all();
  EXPECT_TRUE(f.get());
  const auto possible = []() -> task<bool> {
    co_return (co_await this_task::stop_token()).stop_possible();
  };
  EXPECT_FALSE(sync_wait(possible())) << "a task without limits cannot be stopped";
}

TEST_F(task_test, AWaitMayStandInACondition) {
  event e;
  bounded_queue<int> q(1);
  const auto waits = [](event& on, bounded_queue<int>& in) -> task<int> {
    if (!co_await on.async_wait()) co_return -1;
    int sum = 0;
    while (co_await answer() == 42 && sum < 3) sum += *co_await in.async_pop();
    if ((co_await in.async_pop()).status() == status::closed) co_return sum;
    co_return -2;
  };
  manual_executor ex;
  auto f = spawn(ex, waits(e, q));
  ex.run_all();
  EXPECT_EQ(e.waiting(), 1U);
  e.set();
  for (int i = 0; i < 3; ++i) {
    ex.run_all();
    ASSERT_TRUE(q.try_push(1));
  }
  ex.run_all();
  q.close();
  ex.run_all();
  EXPECT_EQ(f.get(), 3);
}

// ---- awaitables from outside

struct from_outside {
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
  int await_resume() const noexcept { return 9; }
};
struct with_member {
  from_outside operator co_await() const noexcept { return {}; }
};
struct with_free {};
from_outside operator co_await(with_free) noexcept { return {}; }

TEST_F(task_test, AwaitsAnyAwaitable) {
  const auto all = []() -> task<int> {
    from_outside named;
    const int a = co_await named + co_await from_outside{};
    const int b = co_await with_member{};
    co_return a + b + co_await with_free{};
  };
  EXPECT_EQ(sync_wait(all()), 36);
}

// ---- misuse

using task_DeathTest = task_test;

TEST_F(task_DeathTest, AwaitingTwiceIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = []() -> task<> {
    auto t = nothing();
    co_await std::move(t);
    co_await std::move(t);
  };
  EXPECT_DEATH(sync_wait(twice()), "task.*not been awaited yet");
}

TEST_F(task_DeathTest, AwaitingAnEmptyTaskIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(sync_wait(task<int>()), "task.*not been awaited yet");
}

}  // namespace
}  // namespace sluice::testing::task_test
