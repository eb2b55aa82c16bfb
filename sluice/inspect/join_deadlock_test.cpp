// A join waits for all parties whose end it needs: a scope, a fork, a pool, a strand.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/executor/fork.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/inspect/testing/deadlock_fixture.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"

namespace sluice::testing::join_deadlock_test {
namespace {

class join_deadlock_test : public deadlock_fixture {
 protected:
  // Acquires the lock that its joiner holds.
  auto wants_it() {
    return [this] { want(m_); };
  }
  static bool has_text(const inspect::deadlock& d, const std::string& part) {
    return d.text().find(part) != std::string::npos;
  }

  mutex m_{named("m")};
};

TEST_F(join_deadlock_test, AScopeAndATaskInIt) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const auto child = [&]() -> task<> { (void)co_await m_.async_lock(token()); };
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    sync_scope(pool, [&](scope& s) { s.start(child()); });
  });
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U) << found.text();
  EXPECT_TRUE(has_text(found, "(ann) waits to wait scope")) << found.text();
}

TEST_F(join_deadlock_test, AScopeAndAFunctionInIt) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    sync_scope(pool, [&](scope& s) { s.start(wants_it()); });
  });
  const auto found = the_deadlock();
  EXPECT_TRUE(parties(found).contains("ann")) << found.text();
  EXPECT_TRUE(objects(found).contains("mutex m")) << found.text();
}

TEST_F(join_deadlock_test, AScopeAndAChildWithAFuture) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    sync_scope(pool, [&](scope& s) { (void)s.spawn(wants_it()); });
  });
  const auto found = the_deadlock();
  EXPECT_TRUE(parties(found).contains("ann")) << found.text();
  EXPECT_TRUE(objects(found).contains("mutex m")) << found.text();
}

TEST_F(join_deadlock_test, ATaskThatAwaitsTheEndOfItsScope) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const auto child = [&]() -> task<> { (void)co_await m_.async_lock(token()); };
  const auto body = [&](scope& s) -> task<> {
    s.start(child());
    co_return;
  };
  const auto parent = [&]() -> task<> {
    const auto hold = co_await m_.async_lock();
    co_await with_scope(pool, body);
  };
  const ending at_the_end{*this};
  party("ann", [&] { sync_wait(parent()); });
  const auto found = the_deadlock();
  EXPECT_TRUE(objects(found).contains("mutex m")) << found.text();
}

// All children must end: one deadlocked child is enough.
TEST_F(join_deadlock_test, AScopeOfHundredsOfChildrenLeavesCapacityForLocks) {
  thread_pool pool({.core = 1, .capacity = 1000, .name = "pool"});
  semaphore slots(0, named("slots"));
  const auto child = [&]() -> task<> { (void)co_await slots.async_acquire(); };
  const auto last = [&]() -> task<> { (void)co_await m_.async_lock(token()); };
  const ending at_the_end{*this};
  constexpr int children = 200;
  party("ann", [&] {
    std::vector<std::unique_ptr<mutex>> locks;
    for (int i = 0; i < children; ++i) {
      locks.push_back(std::make_unique<mutex>());
      locks.back()->lock();
    }
    const std::lock_guard hold(m_);
    sync_scope(pool, [&](scope& s) {
      for (int i = 0; i < children; ++i) s.start(child());
      s.start(last());
    });
    for (auto& l : locks) l->unlock();
  });
  until_waited_for(&slots, children);
  const auto found = the_deadlock();
  EXPECT_EQ(objects(found).count("mutex m"), 1U) << found.text();
  EXPECT_EQ(inspect::left_out(), 0U);
  const auto held = inspect::holds();
  EXPECT_EQ(std::ranges::count(held, "mutex", [](const auto& h) { return h.object.type; }),
            children + 1);
  slots.release(children);
}

TEST_F(join_deadlock_test, AThreadThatJoinsAForkOnAPool) {
  work_stealing_pool pool({.threads = 1, .name = "pool"});
  const ending at_the_end{*this};
  int joined = 0;
  party("ann", [&] {
    const std::lock_guard hold(m_);
    auto child = fork(pool, wants_it());
    joined = __LINE__ + 1;
    child.join();
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "pool-1"}));
  EXPECT_TRUE(has_text(found, "(ann) waits to join fork")) << found.text();
  EXPECT_TRUE(has_text(found, "(pool-1) runs")) << found.text();
  EXPECT_FALSE(has_text(found, "fork.cpp")) << found.text();
  EXPECT_TRUE(has_text(found, "join_deadlock_test.cpp:" + std::to_string(joined))) << found.text();
}

TEST_F(join_deadlock_test, AWorkerThatJoinsAForkStolenByAnother) {
  event begun;
  event helped;
  int joined = 0;
  work_stealing_pool pool({.threads = 2, .name = "pool"});
  const ending at_the_end{*this};
  const auto joins = [&] {
    const std::lock_guard hold(m_);
    auto child = fork([&] {
      begun.set();
      want(m_);
    });
    begun.wait();
    joined = __LINE__ + 1;
    child.join();
  };
  ASSERT_TRUE(pool.submit(joins));
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U) << found.text();
  EXPECT_TRUE(has_text(found, "waits to join fork")) << found.text();
  EXPECT_TRUE(has_text(found, "join_deadlock_test.cpp:" + std::to_string(joined))) << found.text();
  // The wait is the same one after the worker was woken to help meanwhile.
  ASSERT_TRUE(pool.submit([&] { helped.set(); }));
  helped.wait();
  EXPECT_EQ(the_deadlock().waits(), found.waits());
}

// A lock that the helped work acquires is listed as held by the helper until it is released.
TEST_F(join_deadlock_test, AWorkerThatHelpsMeanwhileDoesNotWait) {
  event begun;
  event helps;
  event go;
  work_stealing_pool pool({.threads = 2, .name = "pool", .spares_max = 0});
  const ending at_the_end{*this};
  ASSERT_TRUE(pool.submit([&] {
    auto child = fork([&] {
      begun.set();
      helps.wait();
      want(m_);
    });
    begun.wait();
    child.join();
  }));
  begun.wait();
  ASSERT_TRUE(pool.submit([&] {
    const std::lock_guard hold(m_);
    helps.set();
    while (!go.try_wait()) std::this_thread::yield();
  }));
  until_waited_for(&m_);
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  go.set();
}

TEST_F(join_deadlock_test, AForkWithoutAFreeThread) {
  work_stealing_pool pool({.threads = 1, .name = "pool", .spares_max = 0});
  event held;
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    held.set();
    until_waited_for(&m_);
    fork(pool, [] {}).join();
  });
  held.wait();
  ASSERT_TRUE(pool.submit(wants_it()));
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "pool-1"}));
  EXPECT_TRUE(has_text(found, "(pool-1) could run it")) << found.text();
  EXPECT_FALSE(found.is_certain());
}

TEST_F(join_deadlock_test, AJoinerOfAWorkStealingPoolAndOneOfItsWorkers) {
  work_stealing_pool pool({.threads = 2, .name = "pool"});
  event held;
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    held.set();
    EXPECT_FALSE(pool.join(token()));
  });
  held.wait();
  ASSERT_TRUE(pool.submit(wants_it()));
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U) << found.text();
  EXPECT_TRUE(parties(found).contains("ann"));
  EXPECT_EQ(objects(found), (names{"event pool", "mutex m"}));
}

TEST_F(join_deadlock_test, AJoinerOfAStrandAndTheThreadThatRunsIt) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  strand account(pool, {.name = "account"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m_);
    EXPECT_TRUE(account.submit(wants_it()));
    EXPECT_FALSE(account.join(token()));
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "pool-1"}));
  EXPECT_EQ(objects(found), (names{"strand account", "mutex m"}));
}

// The threads of these pools are reported only by the join.
TEST(join_deadlock_late_test, PoolsConstructedBeforeInspectWasOn) {
  mutex m(named("m"));
  event begun;
  event go;
  std::stop_source stop;
  work_stealing_pool pool({.threads = 1, .name = "pool"});
  ASSERT_TRUE(pool.submit([&] {
    begun.set();
    go.wait();
    if (m.lock(stop.get_token())) m.unlock();
  }));
  begun.wait();
  const inspect::enabled on({.lock_order = false});
  m.lock();
  std::jthread ends([&] {
    until_waited_for(&m);
    eventually([] { return inspect::find_deadlocks().size() == 1; }, "a deadlock");
    stop.request_stop();
  });
  go.set();
  EXPECT_FALSE(pool.join(stop.get_token()));
  m.unlock();
}

// In a pool of any size: one deadlocked thread is enough.
TEST_F(join_deadlock_test, AJoinerOfAPoolOfManyThreadsAndAnyOfThem) {
  constexpr std::size_t threads = 64;
  event go(named("go"));
  event held;
  thread_pool pool({.core = threads, .capacity = threads, .name = "pool"});
  const ending at_the_end{*this};
  for (std::size_t i = 1; i < threads; ++i) {
    ASSERT_TRUE(pool.submit([&] { go.wait(); }));
  }
  until_waited_for(&go, threads - 1);
  party("ann", [&] {
    const std::lock_guard hold(m_);
    held.set();
    EXPECT_FALSE(pool.join(token()));
  });
  held.wait();
  ASSERT_TRUE(pool.submit(wants_it()));
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U) << found.text();
  EXPECT_EQ(the_wait_on(found.steps[0].object.address).on[0].text(), found.steps[0].object.text());
  EXPECT_EQ(inspect::left_out(), 0U);
  go.set();
}

}  // namespace
}  // namespace sluice::testing::join_deadlock_test
