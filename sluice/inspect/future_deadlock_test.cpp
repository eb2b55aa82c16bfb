#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/testing/deadlock_fixture.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::testing::future_deadlock_test {
namespace {

using namespace std::chrono_literals;

class future_deadlock_test : public deadlock_fixture {};

TEST_F(future_deadlock_test, ATaskThatWaitsForATaskBehindItInItsPool) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  auto outer = async(pool, [&] { (void)async(pool, [] { return 1; }).get(token()); });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"pool-1"}));
  EXPECT_FALSE(found.is_certain());
  EXPECT_EQ(found.steps.at(0).holder.role, "could run it");
  stop_.request_stop();
  outer.get();
}

TEST_F(future_deadlock_test, ATaskOnEachThreadOfALargePool) {
  constexpr std::size_t threads = 80;
  thread_pool pool({.core = threads, .capacity = 2 * threads, .name = "pool"});
  barrier all(threads);
  std::vector<future<void>> outer;
  const ending at_the_end{*this};
  for (std::size_t i = 0; i < threads; ++i) {
    outer.push_back(async(pool, [&] {
      all.arrive_and_wait();
      (void)async(pool, [] { return 1; }).get(token());
    }));
  }
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.at(0).object.servers.size(), threads);
  stop_.request_stop();
  for (auto& each : outer) each.get();
}

TEST_F(future_deadlock_test, APoolWithAFreeThreadIsNotDeadlocked) {
  event begun;
  event go;
  thread_pool pool({.core = 2, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  auto busy = async(pool, [&] {
    begun.set();
    go.wait();
  });
  begun.wait();
  auto inner = async(pool, [&] { return async(pool, [] { return 1; }).get(); });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  go.set();
  EXPECT_EQ(inner.get(), 1);
  busy.get();
}

TEST_F(future_deadlock_test, APoolThatMayGrowIsNotDeadlocked) {
  event never;
  thread_pool pool({.core = 1, .max = 2, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  auto outer = async(pool, [&] {
    auto inner = async(pool, [&] { (void)never.wait(token()); });
    (void)inner.get(token());
  });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  stop_.request_stop();
  outer.get();
}

// The producer of a result is found through its continuations.
TEST_F(future_deadlock_test, ThroughASharedFutureOfAStage) {
  mutex m(named("m"));
  promise<int> p;
  shared_future<int> shared(p.get_future().then([](int v) { return v + 1; }));
  const ending at_the_end{*this};
  party("ann", [&] {
    p.made_by(wait_report::party::this_thread());
    both_.arrive_and_wait();
    want(m);
    p.set_value(1);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    (void)shared.get(token());
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_TRUE(objects(found).contains("mutex m"));
}

// After a result is made, its producer does not run the continuations.
TEST_F(future_deadlock_test, NotThroughAStageThatIsItselfQueued) {
  mutex m(named("m"));
  manual_executor later;
  promise<int> p;
  auto attached = p.get_future().via(later).then([](int v) { return v; });
  const ending at_the_end{*this};
  party("ann", [&] {
    p.made_by(wait_report::party::this_thread());
    p.set_value(1);
    both_.arrive_and_wait();
    want(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    (void)attached.get(token());
  });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  stop_.request_stop();
  threads_.clear();
  EXPECT_TRUE(later.run_one());
}

TEST_F(future_deadlock_test, AFutureWithATimeoutEndsByItself) {
  manual_clock time;
  mutex m(named("m"));
  promise<int> p;
  auto soon = p.get_future().with_timeout(1h, time);
  const ending at_the_end{*this};
  party("ann", [&] {
    p.made_by(wait_report::party::this_thread());
    both_.arrive_and_wait();
    want(m);
    p.set_value(1);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    (void)soon.get(token());
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  for (const auto& s : found.steps) {
    EXPECT_EQ(s.wait.ends_by_itself, s.object.type == "future") << found.text();
    EXPECT_FALSE(s.wait.has_deadline) << found.text();
  }
}

// Only the future's own stop can end it: neither wait has a limit.
TEST_F(future_deadlock_test, AFutureWithAStopOfItsOwnEndsByItself) {
  mutex m(named("m"));
  promise<int> p;
  auto stoppable = p.get_future().with_stop(token());
  const ending at_the_end{*this};
  party("ann", [&] {
    p.made_by(wait_report::party::this_thread());
    both_.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    EXPECT_THROW((void)stoppable.get(), future_error);
  });
  const auto found = the_deadlock();
  EXPECT_TRUE(found.ends_by_itself());
  EXPECT_FALSE(found.is_certain());
  for (const auto& s : found.steps) {
    EXPECT_EQ(s.wait.ends_by_itself, s.object.type == "future") << found.text();
    EXPECT_FALSE(s.wait.has_deadline || s.wait.can_be_stopped) << found.text();
  }
}

}  // namespace
}  // namespace sluice::testing::future_deadlock_test
