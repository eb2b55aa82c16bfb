#include "sluice/inspect/deadlock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/channel/select.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/inspect/testing/deadlock_fixture.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::testing::deadlock_test {
namespace {

using namespace std::chrono_literals;

class deadlock_test : public deadlock_fixture {};

TEST_F(deadlock_test, TwoMutexesLockedInBothOrdersUntilTheirDeadlines) {
  manual_clock time;
  mutex left(named("left"));
  mutex right(named("right"));
  const auto take = [&](mutex& first, mutex& second) {
    const std::lock_guard hold(first);
    both_.arrive_and_wait();
    EXPECT_EQ(second.lock(deadline::after(1h, time)), status::timed_out);
    both_.arrive_and_wait();
  };
  const ending at_the_end{*this};
  party("ann", [&] { take(left, right); });
  party("bob", [&] { take(right, left); });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_EQ(objects(found), (names{"mutex left", "mutex right"}));
  EXPECT_TRUE(found.ends_by_itself());
  for (const auto& s : found.steps) {
    EXPECT_EQ(s.holder.role, "holds");
    EXPECT_NE(s.holder.party.id, s.wait.party.id);
    EXPECT_NE(inspect::to_string(s.wait.at.value()).find("deadlock_test.cpp"), std::string::npos);
  }
  const auto text = found.text();
  for (const auto* part :
       {"deadlock of 2 parties", "ann", "bob", "mutex left", "mutex right", "until a deadline"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  eventually([&] { return time.pending() == 2; });
  time.advance(2h);
  threads_.clear();
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(deadlock_test, WaitsYoungerThanTheMinimumAreIgnored) {
  mutex left;
  mutex right;
  const auto take = [&](mutex& first, mutex& second) {
    const std::lock_guard hold(first);
    both_.arrive_and_wait();
    want(second);
  };
  const ending at_the_end{*this};
  party("ann", [&] { take(left, right); });
  party("bob", [&] { take(right, left); });
  (void)the_deadlock();
  EXPECT_TRUE(inspect::find_deadlocks(1h).empty());
  EXPECT_FALSE(inspect::find_deadlocks(0h).empty());
}

TEST_F(deadlock_test, TwoFullQueuesWithEachOthersProducersAsConsumers) {
  bounded_queue<int> there({.capacity = 1, .name = "there"});
  bounded_queue<int> back({.capacity = 1, .name = "back"});
  const auto exchange = [&](bounded_queue<int>& target, bounded_queue<int>& source) {
    EXPECT_TRUE(target.push(1));
    EXPECT_TRUE(source.pop());  // both are recorded as consumers
    both_.arrive_and_wait();
    while (target.push(2, token())) {
    }
  };
  const ending at_the_end{*this};
  party("ann", [&] { exchange(there, back); });
  party("bob", [&] { exchange(back, there); });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_EQ(objects(found), (names{"bounded_queue there", "bounded_queue back"}));
}

TEST_F(deadlock_test, AFullQueueWithAnotherConsumerIsNoDeadlock) {
  bounded_queue<int> there({.capacity = 1, .name = "there"});
  bounded_queue<int> back({.capacity = 1, .name = "back"});
  ASSERT_TRUE(there.push(0));
  ASSERT_TRUE(there.pop());  // by this thread, which does not wait
  const auto exchange = [&](bounded_queue<int>& target, bounded_queue<int>& source) {
    EXPECT_TRUE(target.push(1));
    EXPECT_TRUE(source.pop());
    both_.arrive_and_wait();
    while (target.push(2, token())) {
    }
  };
  const ending at_the_end{*this};
  party("ann", [&] { exchange(there, back); });
  party("bob", [&] { exchange(back, there); });
  eventually([&] { return there.waiting_to_push() == 1 && back.waiting_to_push() == 1; });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(deadlock_test, ASemaphoreAndALock) {
  semaphore slots(2, named("slots"));
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    slots.acquire(2);
    both_.arrive_and_wait();
    want(m);
    slots.release(2);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    want(slots);
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_EQ(objects(found), (names{"semaphore slots", "mutex m"}));
}

TEST_F(deadlock_test, ASemaphoreWithAnotherHolderIsNoDeadlock) {
  semaphore slots(2, named("slots"));
  mutex m(named("m"));
  slots.acquire();  // by this thread, which does not wait and keeps the permit
  const ending at_the_end{*this};
  party("ann", [&] {
    slots.acquire();
    both_.arrive_and_wait();
    want(m);
    slots.release();
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    want(slots);
  });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(deadlock_test, APartyWithAllPermitsThatAcquiresMore) {
  semaphore slots(1, named("slots"));
  const ending at_the_end{*this};
  party("ann", [&] {
    slots.acquire();
    want(slots);
    slots.release();
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"ann"}));
}

TEST_F(deadlock_test, ASemaphoreWithAHolderThatDidNotFitIsNoDeadlock) {
  semaphore slots(2, named("slots"));
  event has_one;
  event go_on;
  const ending at_the_end{*this};
  party("ann", [&] {
    slots.acquire();
    has_one.set();
    go_on.wait();
    want(slots);
    slots.release();
  });
  has_one.wait();
  std::vector<mutex> many(8000);
  for (auto& m : many) m.lock();
  ASSERT_GT(inspect::left_out(), 0U);
  slots.acquire();  // by this thread, which does not wait
  go_on.set();
  until_waited_for(&slots);
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  for (auto& m : many) m.unlock();
  slots.release();
}

// Completing a promise looks like the release of a signal: there was no acquisition.
TEST_F(deadlock_test, ASignalSemaphoreIsNoDeadlockAlsoAfterThousandsOfPromises) {
  const auto keep_many = [] {
    std::vector<promise<int>> all(4000);  // at different addresses
    std::vector<future<int>> futures;
    for (auto& p : all) futures.push_back(p.get_future());
    for (auto& p : all) p.set_value(1);
  };
  keep_many();
  semaphore ready(0, named("ready"));
  ready.release();
  const ending at_the_end{*this};
  event taken;
  event kept;
  party("ann", [&] {
    ready.acquire();
    taken.set();
    kept.wait();
    want(ready);
  });
  taken.wait();
  keep_many();
  kept.set();
  until_waited_for(&ready);
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  EXPECT_EQ(inspect::left_out(), 0U);
}

TEST_F(deadlock_test, TwoRendezvousChannelsOnWhichBothSend) {
  channel<int> there({.capacity = 0, .name = "there"});
  channel<int> back({.capacity = 0, .name = "back"});
  const ending at_the_end{*this};
  party("ann", [&] {
    EXPECT_TRUE(there.send(1));
    EXPECT_TRUE(back.receive());
    (void)there.send(2, token());
  });
  party("bob", [&] {
    EXPECT_TRUE(there.receive());
    EXPECT_TRUE(back.send(1));
    (void)back.send(2, token());
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_EQ(objects(found), (names{"channel there", "channel back"}));
}

TEST_F(deadlock_test, ASelectIsDeadlockedOnlyIfAllOfItsCasesAre) {
  channel<int> there({.capacity = 0, .name = "there"});
  channel<int> back({.capacity = 0, .name = "back"});
  channel<int> news({.capacity = 1, .name = "news"});
  const ending at_the_end{*this};
  party("ann", [&] {
    EXPECT_TRUE(there.send(1));
    EXPECT_TRUE(back.receive());
    (void)there.send(2, token());
  });
  std::stop_source first;
  party("bob", [&] {
    EXPECT_TRUE(there.receive());
    EXPECT_TRUE(back.send(1));
    const auto ignore = [](status) {};
    EXPECT_FALSE(select(first.get_token(), on_send(back, 2, ignore),
                        on_receive(news, [](const outcome<int>&) {})));
    EXPECT_FALSE(select(token(), on_send(back, 2, ignore), on_send(back, 3, ignore)));
  });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  first.request_stop();
  EXPECT_EQ(parties(the_deadlock()), (names{"ann", "bob"}));
}

TEST_F(deadlock_test, AJoinOfAFunctionThatLocksTheJoinersMutex) {
  mutex m(named("m"));
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m);
    auto result = async(pool, [&] { want(m); });
    (void)result.get(token());
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "pool-1"}));
  stop_.request_stop();
  threads_.clear();
}

TEST_F(deadlock_test, TheDestructorOfAPoolWhoseThreadLocksTheDestroyersMutex) {
  mutex m(named("m"));
  event held;
  thread_pool pool({.core = 2, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m);
    held.set();
    EXPECT_FALSE(pool.join(token()));
  });
  held.wait();
  ASSERT_TRUE(pool.submit([&] { want(m); }));
  const auto found = the_deadlock();
  const auto who = parties(found);
  EXPECT_EQ(who.size(), 2U);
  EXPECT_TRUE(who.contains("ann"));
  EXPECT_TRUE(objects(found).contains("mutex m"));
  stop_.request_stop();
  threads_.clear();
}

TEST_F(deadlock_test, ACoroutineAndAThread) {
  mutex left(named("left"));
  mutex right(named("right"));
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  event begun;
  event held;
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(right);
    begun.set();
    held.wait();
    want(left);
  });
  const auto inner = [&]() -> task<> { const auto other = co_await right.async_lock(token()); };
  const auto outer = [&]() -> task<> {
    auto hold = co_await left.async_lock();
    held.set();
    co_await inner();
  };
  begun.wait();
  auto ended = spawn(pool, outer());
  const auto found = the_deadlock();
  EXPECT_EQ(objects(found), (names{"mutex left", "mutex right"}));
  const auto coroutines = std::ranges::count_if(found.steps, [](const auto& s) {
    return s.wait.party.id.type() == wait_report::party::kind::coroutine;
  });
  EXPECT_EQ(coroutines, 1);
  stop_.request_stop();
  ended.get();
}

// A coroutine releases under the name of its thread: which of two readers has released is not known
// then.
TEST_F(deadlock_test, ACoroutineThatReleasedASharedLockIsNotListedAsItsReader) {
  shared_mutex table(named("table"));
  mutex m(named("m"));
  thread_pool pool({.core = 2, .capacity = 4, .name = "pool"});
  event a_reads;
  event go;
  const ending at_the_end{*this};
  const auto reads_on = [&]() -> task<> {
    const auto reads = co_await table.async_lock_shared();
    a_reads.set();
    (void)co_await go.async_wait();
  };
  auto a = spawn(pool, reads_on());
  a_reads.wait();
  const auto lets_go = [&]() -> task<> {
    auto reads = *co_await table.async_lock_shared();
    reads.unlock();
    both_.arrive_and_wait();
    (void)co_await m.async_lock(token());
  };
  party("ann", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    want(table);
  });
  auto b = spawn(pool, lets_go());
  until_waited_for(&table);
  until_waited_for(&m);
  EXPECT_TRUE(inspect::find_deadlocks().empty()) << inspect::to_text(inspect::waits());
  go.set();
  a.get();
  stop_.request_stop();
  b.get();
}

TEST_F(deadlock_test, TheRemainingReaderIsAGuessAfterAThreadAndItsTaskBothRead) {
  shared_mutex table(named("table"));
  event read;
  event go;
  mutex m(named("m"));
  const ending at_the_end{*this};
  // The task is still listed as a reader: its release removed the entry of its thread.
  party("ann", [&] {
    const std::shared_lock reads(table);
    const auto body = [&]() -> task<> {
      { const auto again = co_await table.async_lock_shared(); }
      read.set();
      (void)co_await m.async_lock(token());
    };
    both_.arrive_and_wait();
    sync_wait(body());
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    read.wait();
    want(table);
  });
  until_waited_for(&table);
  until_waited_for(&m);
  for (const auto& w : waits_on(&table)) EXPECT_EQ(w.on[0].by, wait_report::served_by::unknown);
}

TEST_F(deadlock_test, TwoCoroutinesWithASemaphoreAndALockAlsoAfterACompleteRound) {
  semaphore slots(1, named("slots"));
  mutex m(named("m"));
  thread_pool pool({.core = 2, .capacity = 4, .name = "pool"});
  const ending at_the_end{*this};
  const auto clean = [&]() -> task<> {
    (void)co_await slots.async_acquire();
    slots.release();
  };
  spawn(pool, clean()).get();
  const auto permit_first = [&]() -> task<> {
    (void)co_await slots.async_acquire();
    both_.arrive_and_wait();
    { const auto hold = co_await m.async_lock(token()); }
    slots.release();
  };
  const auto lock_first = [&]() -> task<> {
    const auto hold = co_await m.async_lock();
    both_.arrive_and_wait();
    if (co_await slots.async_acquire(1, token())) slots.release();
  };
  auto a = spawn(pool, permit_first());
  auto b = spawn(pool, lock_first());
  EXPECT_EQ(objects(the_deadlock()), (names{"semaphore slots", "mutex m"}));
  stop_.request_stop();
  a.get();
  b.get();
}

TEST_F(deadlock_test, ASyncWaitForATaskThatLocksTheWaitersMutex) {
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m);
    const auto body = [&]() -> task<> { (void)co_await m.async_lock(token()); };
    sync_wait(body());
  });
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U);
  EXPECT_TRUE(objects(found).contains("mutex m"));
}

TEST_F(deadlock_test, ThreePartiesThroughALockASemaphoreAndAFullQueue) {
  mutex m(named("m"));
  semaphore slots(1, named("slots"));
  bounded_queue<int> q({.capacity = 1, .name = "q"});
  barrier all(3);
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m);
    all.arrive_and_wait();
    want(slots);
  });
  party("bob", [&] {
    slots.acquire();
    all.arrive_and_wait();
    while (q.push(1, token())) {
    }
    slots.release();
  });
  party("cat", [&] {
    EXPECT_TRUE(q.push(0));
    EXPECT_TRUE(q.pop());
    all.arrive_and_wait();
    want(m);
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob", "cat"}));
  EXPECT_EQ(objects(found), (names{"mutex m", "semaphore slots", "bounded_queue q"}));
}

TEST_F(deadlock_test, AWriterDeadlockedWithOneOfSeveralReaders) {
  shared_mutex table(named("table"));
  mutex m(named("m"));
  table.lock_shared();  // by this thread, which does not wait
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::shared_lock reads(table);
    both_.arrive_and_wait();
    want(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    want(table);
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"ann", "bob"}));
  table.unlock_shared();
}

TEST_F(deadlock_test, AChainOfWaitsIsNoDeadlock) {
  mutex first(named("first"));
  mutex second(named("second"));
  event go;
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(first);
    both_.arrive_and_wait();
    EXPECT_FALSE(go.wait(token()));
  });
  party("bob", [&] {
    const std::lock_guard hold(second);
    both_.arrive_and_wait();
    want(first);
  });
  until_waited_for(&first);
  party("cat", [&] { want(second); });
  eventually([] { return inspect::waits().size() == 3; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(deadlock_test, ConsumersOfAnEmptyQueueAreIdle) {
  bounded_queue<int> q({.capacity = 4, .name = "q"});
  bounded_queue<int> results({.capacity = 4, .name = "results"});
  const ending at_the_end{*this};
  party("worker", [&] {
    while (auto item = q.pop(token())) EXPECT_TRUE(results.push(*item));
  });
  party("asker", [&] {
    EXPECT_TRUE(q.push(1));
    EXPECT_TRUE(results.pop());
    EXPECT_FALSE(results.pop(token()));
  });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(deadlock_test, WaitersForADeadlockedPartyAreNotPartOfTheDeadlock) {
  mutex left(named("left"));
  mutex right(named("right"));
  const auto take = [&](mutex& first, mutex& second) {
    const std::lock_guard hold(first);
    both_.arrive_and_wait();
    want(second);
  };
  const ending at_the_end{*this};
  party("ann", [&] { take(left, right); });
  party("bob", [&] { take(right, left); });
  (void)the_deadlock();
  party("cat", [&] { want(left); });
  eventually([] { return inspect::waits().size() == 3; });
  EXPECT_EQ(parties(the_deadlock()), (names{"ann", "bob"}));
}

}  // namespace
}  // namespace sluice::testing::deadlock_test
