#include "sluice/future/scope.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::scope_test {
namespace {

using namespace std::chrono_literals;

class scope_test : public leak_checked {
 protected:
  inline_executor here;
  event never;
};

task<> count(int& counter, tracked = {}) {
  ++counter;
  co_return;
}
task<> fail(const char* why, tracked = {}) {
  throw std::runtime_error(why);
  co_return;
}
// Waits until it is stopped.
task<> until_stopped(event& on, status& result, tracked = {}) { result = co_await on.async_wait(); }

// ---- structure

TEST_F(scope_test, LeavingWaitsForAllChildren) {
  thread_pool pool(2);
  std::atomic<int> ended{0};
  event go;
  const auto child = [](event& on, std::atomic<int>& counter, tracked) -> task<> {
    (void)co_await on.async_wait();
    ++counter;
  };
  const auto body = [&](scope& s) -> task<int> {
    for (int i = 0; i < 10; ++i) s.start(child(go, ended, {}));
    go.set();
    co_return 7;
  };
  EXPECT_EQ(sync_wait(with_scope(pool, body)), 7);
  EXPECT_EQ(ended, 10);
  EXPECT_EQ(tracked::alive(), 0);
}

TEST_F(scope_test, TheBlockingFormWaitsToo) {
  thread_pool pool(2);
  std::atomic<int> ended{0};
  const int got = sync_scope(pool, [&](scope& s) {
    for (int i = 0; i < 100; ++i) s.start([&] { ++ended; });
    return 3;
  });
  EXPECT_EQ(got, 3);
  EXPECT_EQ(ended, 100);
}

TEST_F(scope_test, TakesTasksAndPlainFunctionsWithAndWithoutAToken) {
  int ran = 0;
  sync_scope(here, [&](scope& s) {
    s.start(count(ran));
    s.start([&] { ++ran; });
    s.start([&](std::stop_token stop) { ran += stop.stop_possible() ? 1 : 0; });
  });
  EXPECT_EQ(ran, 3);
}

TEST_F(scope_test, AnEmptyScopeIsLeftAtOnce) {
  sync_scope(here, [](scope&) {});
  scope s(here);
  s.join();
  scope unused(here);
}

TEST_F(scope_test, ChildrenMayStartSiblings) {
  thread_pool pool(2);
  std::atomic<int> ran{0};
  struct tree {
    static task<> grow(scope& s, std::atomic<int>& counter, int depth, tracked) {
      ++counter;
      if (depth == 0) co_return;
      s.start(grow(s, counter, depth - 1, {}));
      s.start(grow(s, counter, depth - 1, {}));
    }
  };
  const auto body = [&](scope& s) -> task<> {
    s.start(tree::grow(s, ran, 9, {}));
    co_return;
  };
  sync_wait(with_scope(pool, body));
  EXPECT_EQ(ran, 1023);
}

TEST_F(scope_test, ScopesNest) {
  thread_pool pool(2);
  std::atomic<int> ran{0};
  const auto inner = [&](scope& s) -> task<> {
    for (int i = 0; i < 5; ++i) s.start([&] { ++ran; });
    co_return;
  };
  const auto outer = [&](scope& s) -> task<> {
    for (int i = 0; i < 5; ++i) s.start(with_scope(pool, inner));
    co_return;
  };
  sync_wait(with_scope(pool, outer));
  EXPECT_EQ(ran, 25);
}

TEST_F(scope_test, TheBodyMayReturnAReferenceOrAMoveOnlyValue) {
  int target = 0;
  const auto reference = [&](scope&) -> task<int&> { co_return target; };
  EXPECT_EQ(&sync_wait(with_scope(here, reference)), &target);
  const auto moved = [](scope&) -> task<std::unique_ptr<int>> {
    co_return std::make_unique<int>(3);
  };
  EXPECT_EQ(*sync_wait(with_scope(here, moved)), 3);
}

// ---- failure

TEST_F(scope_test, TheFirstFailureStopsTheSiblingsAndIsThrownAtTheEnd) {
  status sibling = status::ok;
  status body_wait = status::ok;
  const auto body = [&](scope& s) -> task<> {
    s.start(until_stopped(never, sibling));
    s.start(fail("first"));
    s.start(fail("second"));
    body_wait = co_await never.async_wait();
  };
  try {
    sync_wait(with_scope(here, body));
    FAIL() << "no exception";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "first");
  }
  EXPECT_EQ(sibling, status::stopped);
  EXPECT_EQ(body_wait, status::stopped);
}

TEST_F(scope_test, AnExceptionOfTheBodyStopsTheChildrenAndIsRethrown) {
  status sibling = status::ok;
  const auto body = [&](scope& s) -> task<int> {
    s.start(until_stopped(never, sibling));
    throw std::runtime_error("body");
    co_return 1;
  };
  EXPECT_THROW((void)sync_wait(with_scope(here, body)), std::runtime_error);
  EXPECT_EQ(sibling, status::stopped);
  sibling = status::ok;
  EXPECT_THROW(sync_scope(here,
                          [&](scope& s) {
                            s.start(until_stopped(never, sibling));
                            throw std::logic_error("body");
                          }),
               std::logic_error);
  EXPECT_EQ(sibling, status::stopped);
}

TEST_F(scope_test, AFailedPlainFunctionFailsTheScope) {
  EXPECT_THROW(sync_scope(here, [](scope& s) { s.start([] { throw std::logic_error("f"); }); }),
               std::logic_error);
}

TEST_F(scope_test, ACancelledChildIsNoFailure) {
  scope s(here);
  promise<int> p;
  const auto waits = [](future<int> f, tracked) -> task<> { (void)co_await std::move(f); };
  s.start(waits(p.get_future(), {}));
  s.cancel();
  s.join();
}

TEST_F(scope_test, AFutureCancelledByAnotherPartyIsAFailure) {
  scope s(here);
  promise<int> p;
  const auto waits = [](future<int> f, tracked) -> task<> { (void)co_await std::move(f); };
  s.start(waits(p.get_future(), {}));
  p.set_exception(future_error(future_error::cancelled));
  EXPECT_THROW(s.join(), future_error) << "the child was not asked to stop";
}

TEST_F(scope_test, FailMakesItFail) {
  status sibling = status::ok;
  scope s(here);
  s.start(until_stopped(never, sibling));
  s.fail(std::make_exception_ptr(std::logic_error("from outside")));
  s.fail(std::make_exception_ptr(std::runtime_error("too late")));
  EXPECT_THROW(s.join(), std::logic_error);
  EXPECT_EQ(sibling, status::stopped);
}

// ---- stop

TEST_F(scope_test, CancelAsksAllChildrenAndThoseStartedLaterDoNotRun) {
  int ran = 0;
  std::vector<status> results(3, status::ok);
  scope s(here);
  for (auto& each : results) s.start(until_stopped(never, each));
  EXPECT_EQ(s.children(), 3U);
  s.cancel();
  for (const auto each : results) EXPECT_EQ(each, status::stopped);
  s.start(count(ran));
  auto unwanted = count(ran);
  EXPECT_EQ(s.try_start(std::move(unwanted)), status::stopped);
  EXPECT_TRUE(unwanted.valid()) << "a refused child stays with the caller";
  EXPECT_EQ(s.start(std::move(unwanted), wait_limits()), status::stopped);
  auto f = s.spawn(count(ran));
  EXPECT_THROW(f.get(), future_error);
  s.join();
  EXPECT_EQ(ran, 0);
}

TEST_F(scope_test, AChildThatWasSubmittedBeforeTheCancelAndNotBegunDoesNotRun) {
  manual_executor later;
  int ran = 0;
  scope s(later);
  s.start(count(ran));
  auto f = s.spawn(count(ran));
  s.cancel();
  later.run_all();
  s.join();
  EXPECT_EQ(ran, 0);
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(scope_test, StopsOnTheTokenOfTheAwaitingTaskAndOnThatOfItsOptions) {
  for (const bool by_option : {false, true}) {
    status child = status::ok;
    std::stop_source source;
    const auto body = [&](scope& s) -> task<> {
      s.start(until_stopped(never, child));
      co_return;
    };
    scope_options o;
    if (by_option) o.stop = source.get_token();
    manual_executor ex;
    auto f = spawn(ex, with_scope(ex, body, o));
    ex.run_all();
    EXPECT_EQ(never.waiting(), 1U);
    if (by_option) {
      source.request_stop();
    } else {
      f.cancel();
    }
    ex.run_all();
    f.get();
    EXPECT_EQ(child, status::stopped);
  }
}

TEST_F(scope_test, ABodyThatIsCancelledThrowsCancelled) {
  promise<int> p;
  const auto body = [&](scope&) -> task<int> { co_return co_await p.get_future(); };
  manual_executor ex;
  auto f = spawn(ex, with_scope(ex, body));
  ex.run_all();
  f.cancel();
  ex.run_all();
  EXPECT_THROW((void)f.get(), future_error);
}

TEST_F(scope_test, JoinWithLimitsAsksTheChildrenAndWaitsForThem) {
  status child = status::ok;
  {
    scope s(here);
    s.start(until_stopped(never, child));
    EXPECT_EQ(s.join(deadline::after(1ms)), status::timed_out);
    EXPECT_EQ(child, status::stopped);
  }
  {
    scope s(here);
    s.start(until_stopped(never, child));
    auto join = s.async_join(deadline::after(1ms));
    EXPECT_EQ(sync_wait(std::move(join)), status::timed_out);
  }
  {
    scope s(here);
    std::stop_source source;
    source.request_stop();
    s.start(until_stopped(never, child));
    EXPECT_EQ(s.join(source.get_token()), status::stopped);
  }
  scope s(here);
  EXPECT_EQ(s.join(deadline::after(1h)), status::ok);
}

TEST_F(scope_test, AsyncJoinThrowsTheFailure) {
  scope s(here);
  s.start(fail("child"));
  EXPECT_THROW((void)sync_wait(s.async_join()), std::runtime_error);
}

// ---- futures of children

TEST_F(scope_test, SpawnGivesAFutureOfTheResult) {
  thread_pool pool(2);
  const auto child = [](int n, tracked) -> task<int> { co_return n * n; };
  const auto body = [&](scope& s) -> task<int> {
    auto a = s.spawn(child(3, {}));
    auto b = s.spawn([] { return std::make_unique<int>(4); });
    auto c = co_await s.async_spawn(child(5, {}));
    const int sum = co_await std::move(a) + *co_await std::move(b);
    co_return sum + co_await std::move(c);
  };
  EXPECT_EQ(sync_wait(with_scope(pool, body)), 38);
}

TEST_F(scope_test, WhenJoinHasReturnedAllFuturesAreReady) {
  thread_pool pool(2);
  scope s(pool);
  std::vector<future<int>> all;
  for (int i = 0; i < 100; ++i) all.push_back(s.spawn([i] { return i; }));
  s.join();
  for (auto& each : all) EXPECT_TRUE(each.is_ready());
}

TEST_F(scope_test, CancellingTheFutureOfAChildReachesThatChildAlone) {
  status one = status::ok;
  status other = status::ok;
  scope s(here);
  auto f = s.spawn(until_stopped(never, one));
  s.start(until_stopped(never, other));
  f.cancel();
  EXPECT_EQ(one, status::stopped);
  EXPECT_EQ(s.children(), 1U);
  EXPECT_FALSE(s.stop_token().stop_requested());
  s.cancel();
  s.join();
}

TEST_F(scope_test, AChildsFailureIsInItsFutureToo) {
  scope s(here);
  auto f = s.spawn(fail("both"));
  EXPECT_THROW(f.get(), std::runtime_error);
  EXPECT_THROW(s.join(), std::runtime_error);
}

// ---- bounds

TEST_F(scope_test, HoldsAtMostMaxChildrenAtATime) {
  thread_pool pool(4);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  sync_scope(
      pool,
      [&](scope& s) {
        for (int i = 0; i < 200; ++i) {
          s.start([&] {
            const int in = ++now;
            for (int seen = most; in > seen && !most.compare_exchange_weak(seen, in);) {
            }
            --now;
          });
        }
      },
      3);
  EXPECT_LE(most, 3);
}

TEST_F(scope_test, TryStartReturnsFull) {
  status child = status::ok;
  int ran = 0;
  scope s(here, 1);
  s.start(until_stopped(never, child));
  auto next = count(ran);
  EXPECT_EQ(s.try_start(std::move(next)), status::full);
  EXPECT_EQ(s.start(std::move(next), deadline::after(1ms)), status::timed_out);
  EXPECT_TRUE(next.valid());
  s.cancel();
  s.join();
}

TEST_F(scope_test, ACancelEndsTheWaitForCapacity) {
  status child = status::ok;
  int ran = 0;
  scope s(here, 1);
  s.start(until_stopped(never, child));
  std::jthread waits([&] { s.start(count(ran)); });
  eventually([&] { return s.waiting_to_start() == 1; });
  s.cancel();
  waits.join();
  s.join();
  EXPECT_EQ(ran, 0);
}

// Waiting for a place in a scope is a wait like any other.
class scope_gate {
 public:
  scope_gate() : scope_(here_, 1) { scope_.start(hold(opened_)); }
  ~scope_gate() {
    open();
    scope_.join();
  }
  status wait(const wait_limits& limits) {
    task<> child = pass();
    return scope_.start(std::move(child), limits);
  }
  template <class Where>
  static detached await(scope_gate& gate, Where&, wait_limits limits, ending& ended) {
    auto start = gate.scope_.async_start(pass(), std::move(limits));
    ended.set(co_await std::move(start));
  }
  void open() { opened_.set(); }
  std::size_t waiting() const { return scope_.waiting_to_start(); }

 private:
  static task<> hold(event& until) { (void)co_await until.async_wait(); }
  static task<> pass() { co_return; }

  inline_executor here_;
  event opened_;
  scope scope_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(scope, waiting_suite, scope_gate);

// ---- the executor refuses a child

TEST_F(scope_test, AChildThatTheExecutorRefusesFailsTheScope) {
  manual_executor closed;
  closed.close();
  scope s(closed);
  int ran = 0;
  s.start(count(ran));
  try {
    s.join();
    FAIL() << "no exception";
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::rejected);
  }
  scope t(closed);
  auto f = t.spawn(count(ran));
  EXPECT_THROW(f.get(), future_error);
  EXPECT_THROW(t.join(), future_error);
}

TEST_F(scope_test, AChildThatTheExecutorDropsFailsTheScope) {
  int ran = 0;
  auto drops = std::make_unique<manual_executor>(
      manual_executor_options{.capacity = 1, .overflow = overflow::drop_oldest});
  scope s(*drops);
  s.start(count(ran));
  s.start(count(ran));
  drops.reset();  // the second is destroyed unrun
  try {
    s.join();
    FAIL() << "no exception";
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::broken_promise);
  }
  EXPECT_EQ(ran, 0);
}

// ---- misuse

class scope_DeathTest : public scope_test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(scope_DeathTest, DestroyingAScopeWithChildrenInsideIsABrokenContract) {
  EXPECT_DEATH(
      {
        manual_executor later;
        int ran = 0;
        scope s(later);
        s.start(count(ran));
      },
      "scope.*no children inside");
}

// Its failure would be lost.
TEST_F(scope_DeathTest, DestroyingAScopeUnjoinedIsABrokenContractAlsoWhenItsChildrenHaveEnded) {
  const char* const expected =
      "sluice::scope \"parts\": expected to be joined before its destruction";
  scope_options options;
  options.name = "parts";
  EXPECT_DEATH(
      {
        scope s(here, options);
        s.start([] { throw std::runtime_error("no ink"); });
      },
      expected);
  EXPECT_DEATH(
      {
        try {
          scope s(here, options);
          s.start([] {});
          throw std::runtime_error("the block fails");
        } catch (const std::runtime_error&) {
        }
      },
      expected);
}

TEST_F(scope_test, AScopeWithoutChildrenNeedsNoJoin) {
  scope s(here);
  s.cancel();
  s.start([] {});
  EXPECT_EQ(s.children(), 0U);
}

TEST_F(scope_DeathTest, StartingAChildAfterJoinHasEndedIsABrokenContract) {
  EXPECT_DEATH(
      {
        scope s(here);
        s.join();
        s.start([] {});
      },
      "scope.*after join");
}

TEST_F(scope_DeathTest, NoCapacityForAnyChildIsABrokenContract) {
  EXPECT_DEATH(
      {
        scope s(here, 0);
      },
      "scope.*max_children > 0");
}

// ---- races

TEST_F(scope_test, FailingChildrenOnAPoolAlwaysStopTheirSiblings) {
  stress run;
  work_stealing_pool pool({.threads = 4});
  auto choose = run.generator(0);
  for (int round = 0; round < 300; ++round) {
    const auto children = 1 + static_cast<int>(choose.below(20));
    const auto failing = choose.below(static_cast<std::uint32_t>(2 * children));
    std::atomic<int> stopped{0};
    const auto sibling = [](event& on, std::atomic<int>& counter, tracked) -> task<> {
      const status s = co_await on.async_wait();
      if (s == status::stopped) ++counter;
    };
    const auto body = [&](scope& s) -> task<> {
      for (int i = 0; i < children; ++i) {
        if (static_cast<std::uint32_t>(i) == failing) {
          s.start(fail("chosen"));
        } else {
          s.start(sibling(never, stopped, {}));
        }
      }
      if (failing >= static_cast<std::uint32_t>(children)) s.cancel();
      co_return;
    };
    auto f = spawn(pool, with_scope(pool, body));
    if (failing < static_cast<std::uint32_t>(children)) {
      EXPECT_THROW(f.get(), std::runtime_error);
    } else {
      f.get();
    }
    EXPECT_LE(stopped, children);
    EXPECT_EQ(tracked::alive(), 0);
    run.did(static_cast<std::uint64_t>(children));
  }
  EXPECT_EQ(never.waiting(), 0U);
}

TEST_F(scope_test, StartsCancelsAndJoinsFromManyThreadsLoseNoChild) {
  stress run;
  thread_pool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> began{0};
    std::atomic<int> ended{0};
    scope s(pool, 8);
    const auto child = [](std::atomic<int>& in, std::atomic<int>& out, tracked) -> task<> {
      ++in;
      co_await this_task::yield();
      (void)co_await sleep_for(1us);
      ++out;
    };
    {
      std::vector<std::jthread> threads;
      for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&, number] {
          auto choose = run.generator(static_cast<std::uint64_t>(round * 10 + number));
          for (int i = 0; i < 20; ++i) {
            switch (choose.below(4)) {
              case 0: {
                auto t = child(began, ended, {});
                (void)s.try_start(std::move(t));
                break;
              }
              case 1: {
                auto f = s.spawn(child(began, ended, {}));
                if (choose.below(2) == 0) f.cancel();
                break;
              }
              default: s.start(child(began, ended, {}));
            }
          }
          if (choose.below(6) == 0) s.cancel();
          run.did(20);
        });
      }
    }
    s.join();
    EXPECT_EQ(began, ended);
    EXPECT_EQ(tracked::alive(), 0);
  }
}

}  // namespace
}  // namespace sluice::testing::scope_test
