#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/actor/stall_detector.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "tests/inspect/acting.hpp"

namespace sluice::testing::actor_deadlock_test {
namespace {

using namespace std::chrono_literals;

class forwarder : public actor<forwarder, query> {
 public:
  explicit forwarder(ref<doer> target) : target_(std::move(target)) {}
  void on(query m, responder<int> reply) { (void)forward(target_, m, std::move(reply)); }

 private:
  const ref<doer> target_;
};

class keyed_doer : public actor<keyed_doer, act, query> {
 public:
  void on(act m) { m.body(); }
  int on(query) { return 1; }
};

class awaits_peer;
struct ask_peer {
  keyed_ref<awaits_peer> peer;
  std::function<void()> first;
};
class awaits_peer : public actor<awaits_peer, ask_peer, query> {
 public:
  task<> on(ask_peer m) {
    m.first();
    auto answer = m.peer.async_ask(query{});
    (void)co_await std::move(answer);
  }
  int on(query) { return 1; }
};

class actor_deadlock_test : public acting_fixture {
 protected:
  // Releases additional permits, which ends waits that cannot be stopped.
  struct rescue {
    semaphore& of;
    ~rescue() { of.release(8); }
  };
  static bool mentions(const inspect::deadlock& d, const std::string& phrase) {
    return d.text().find(phrase) != std::string::npos;
  }
};

TEST_F(actor_deadlock_test, ThroughALockAndAnAskIsFoundOnce) {
  mutex ledger(named("ledger"));
  const auto x = hire("x");
  const auto y = hire("y");
  const ending at_the_end{*this};
  run_in(x, [&] {
    const std::lock_guard hold(ledger);
    both_.arrive_and_wait();
    ask(y, query{});
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    want(ledger);
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y"}));
  EXPECT_EQ(objects(found), (names{"mutex ledger", "actor y"}));
  EXPECT_TRUE(mentions(found, "actor 1 (x) waits to get a reply from actor y")) << found.text();
  EXPECT_TRUE(mentions(found, "actor 2 (y) waits to lock mutex ledger")) << found.text();
  EXPECT_TRUE(mentions(found, "which actor 1 (x) holds")) << found.text();
  EXPECT_TRUE(mentions(found, "acting.hpp:")) << found.text();
}

// An asked actor may forward the request to another.
TEST_F(actor_deadlock_test, ThroughAnAskIsNotCertain) {
  semaphore slots(1, named("slots"));
  const auto x = hire("x");
  const auto y = hire("y");
  const ending at_the_end{*this};
  const rescue by_permits{slots};
  run_in(x, [&, y] {
    slots.acquire();
    both_.arrive_and_wait();
    EXPECT_EQ(y.ask(query{}).get(), 1);
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    slots.acquire();
  });
  const auto found = the_deadlock();
  EXPECT_FALSE(found.ends_by_itself());
  EXPECT_FALSE(found.is_certain());
  EXPECT_TRUE(mentions(found, "as far as is known")) << found.text();
}

TEST_F(actor_deadlock_test, ThroughPermitsAndAFullMailboxIsCertain) {
  semaphore slots(1, named("slots"));
  const auto x = hire("x");
  const auto y = hire("y", 1);
  const ending at_the_end{*this};
  const rescue by_permits{slots};
  run_in(x, [&, y] {
    slots.acquire();
    both_.arrive_and_wait();
    EXPECT_TRUE(y.send(act{[] {}}));
    (void)y.send(act{[] {}});
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    slots.acquire();
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y"}));
  EXPECT_EQ(objects(found), (names{"semaphore slots", "actor y"}));
  EXPECT_TRUE(found.is_certain()) << found.text();
}

TEST_F(actor_deadlock_test, ThroughALockAndAFullMailboxThatCanBeStoppedIsNotCertain) {
  mutex ledger(named("ledger"));
  const auto x = hire("x");
  const auto y = hire("y", 1);
  const ending at_the_end{*this};
  run_in(x, [&] {
    const std::lock_guard hold(ledger);
    both_.arrive_and_wait();
    fill(y);
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    want(ledger);
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y"}));
  EXPECT_TRUE(found.ends_by_itself());
  EXPECT_FALSE(found.is_certain());
}

TEST_F(actor_deadlock_test, OfAThreadThatAsksWhileItHoldsALock) {
  mutex ledger(named("ledger"));
  const auto y = hire("y");
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(ledger);
    both_.arrive_and_wait();
    ask(y, query{});
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    want(ledger);
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"ann", "y"}));
}

TEST_F(actor_deadlock_test, OfHandlersThatAreCoroutines) {
  mutex ledger(named("ledger"));
  event go;
  const auto x = hire("x");
  const auto y = hire("y");
  const ending at_the_end{*this};
  await_in(x, [&]() -> task<> {
    auto hold = co_await ledger.async_lock();
    (void)co_await go.async_wait();
    auto answer = y.async_ask(query{});
    (void)co_await std::move(answer);
  });
  until_waited_for(&go);
  await_in(y, [&]() -> task<> { (void)co_await ledger.async_lock(); });
  until_waited_for(&ledger);
  go.set();
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y"}));
  EXPECT_TRUE(found.ends_by_itself());  // when one of them is stopped
}

// A reentrant part of the handler releases the lock, and the blocked turn does not delay that part.
TEST_F(actor_deadlock_test, ThroughALockThatAReentrantPartReleasesIsNotCertain) {
  mutex ledger(named("ledger"));
  event written;
  thread_pool disk({.core = 1, .max = 1, .name = "disk"});
  const auto write_out = [&](std::unique_lock<mutex> hold) -> task<> {
    co_await resume_on(disk);
    (void)co_await written.async_wait();
    hold.unlock();
  };
  const auto x = hire("x");
  const ending at_the_end{*this};
  await_in(x, [&]() -> task<> {
    auto hold = co_await ledger.async_lock();
    auto writing = write_out(*std::move(hold));
    co_await reentrant(std::move(writing));
  });
  until_waited_for(&written);
  event through;
  run_in(x, [&] {
    { const std::lock_guard hold(ledger); }
    through.set();
  });
  until_waited_for(&ledger);
  for (const auto& d : inspect::find_deadlocks()) EXPECT_FALSE(d.is_certain()) << d.text();
  written.set();
  EXPECT_TRUE(through.wait(30s));
}

TEST_F(actor_deadlock_test, ThroughAPermitThatAReentrantPartReleasesIsNotCertain) {
  semaphore slots(1, named("slots"));
  event written;
  thread_pool disk({.core = 1, .max = 1, .name = "disk"});
  const auto give_back = [&]() -> task<> {
    co_await resume_on(disk);
    (void)co_await written.async_wait();
    slots.release();
  };
  const auto x = hire("x");
  const ending at_the_end{*this};
  await_in(x, [&]() -> task<> {
    (void)co_await slots.async_acquire();
    auto giving = give_back();
    co_await reentrant(std::move(giving));
  });
  until_waited_for(&written);
  event through;
  run_in(x, [&] {
    slots.acquire();
    slots.release();
    through.set();
  });
  until_waited_for(&slots);
  for (const auto& d : inspect::find_deadlocks()) EXPECT_FALSE(d.is_certain()) << d.text();
  written.set();
  EXPECT_TRUE(through.wait(30s));
}

// The first handler holds the lock and waits to resume; the second has the exclusive turn and waits
// for the lock.
TEST_F(actor_deadlock_test, OfTwoHandlersOfOneActor) {
  mutex ledger(named("ledger"));
  event go;
  const auto take = [&]() -> task<std::unique_lock<mutex>> {
    auto hold = co_await ledger.async_lock();
    (void)co_await go.async_wait();
    co_return *std::move(hold);
  };
  const auto x = hire("x");
  const ending at_the_end{*this};
  await_in(x, [&]() -> task<> { const auto hold = co_await reentrant(take()); });
  until_waited_for(&go);
  await_in(x, [&]() -> task<> { (void)co_await ledger.async_lock(); });
  until_waited_for(&ledger);
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  go.set();
  const auto found = the_deadlock();
  EXPECT_EQ(found.steps.size(), 2U);
  EXPECT_EQ(objects(found), (names{"mutex ledger", "actor x"}));
  EXPECT_TRUE(mentions(found, "waits to resume in actor x")) << found.text();
  EXPECT_TRUE(mentions(found, "which actor 1 (x) is on another message")) << found.text();
  EXPECT_FALSE(found.is_certain());
}

TEST_F(actor_deadlock_test, OfAnActorThatAsksItselfAndBlocks) {
  const auto x = hire("x");
  const ending at_the_end{*this};
  run_in(x, [&] { ask(x, query{}); });
  EXPECT_EQ(parties(the_deadlock()), (names{"x"}));
}

TEST_F(actor_deadlock_test, WithATimeoutOfTheAskEndsByItself) {
  manual_clock time;
  const auto x = hire("x");
  const ending at_the_end{*this};
  run_in(x, [&] {
    try {
      (void)x.ask(query{}, deadline::after(1h, time)).get(token());
    } catch (const future_error&) {
    }
  });
  const auto found = the_deadlock();
  EXPECT_TRUE(found.steps.at(0).wait.ends_by_itself);
  EXPECT_FALSE(found.steps.at(0).wait.has_deadline);
  EXPECT_TRUE(found.ends_by_itself());
}

TEST_F(actor_deadlock_test, IsTheSameWithAStallDetector) {
  stall_detector watch({.period = 0s});
  actor_system_options o;
  o.observer = &watch;
  actor_system watched(pool_, std::move(o));
  const auto x = watched.spawn_with<doer>({.name = "x"});
  const auto y = watched.spawn_with<doer>({.name = "y"});
  const ending at_the_end{*this};
  run_in(x, [&] {
    both_.arrive_and_wait();
    ask(y, query{});
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    ask(x, query{});
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"x", "y"}));
  EXPECT_EQ(inspect::waits().size(), 2U);
  EXPECT_EQ(watch.find_cycles().size(), 1U);
}

// In each of two systems an actor asks another, and the two asked actors have equal numbers.
TEST_F(actor_deadlock_test, ActorsOfTwoSystemsAreNotConfused) {
  actor_system other(pool_);
  const auto a = hire("a");
  const auto b = hire("b");
  const auto c = other.spawn_with<doer>({.name = "c"});
  const auto d = other.spawn_with<doer>({.name = "d"});
  const ending at_the_end{*this};
  run_in(a, [&] { ask(b, riddle{}); });
  run_in(d, [&] { ask(c, riddle{}); });
  eventually([] { return inspect::waits().size() == 2; });
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  const auto waits = inspect::waits();
  ASSERT_EQ(waits.size(), 2U);
  for (const auto& w : waits) {
    const auto text = w.party.text();
    EXPECT_TRUE(text == "actor 1 (a)" || text == "actor 2 (d)") << text;
  }
}

TEST_F(actor_deadlock_test, AcrossTwoSystems) {
  actor_system other(pool_);
  const auto a = hire("a");
  const auto b = other.spawn_with<doer>({.name = "b"});
  const ending at_the_end{*this};
  run_in(a, [&] {
    both_.arrive_and_wait();
    ask(b, query{});
  });
  run_in(b, [&] {
    both_.arrive_and_wait();
    ask(a, query{});
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"a", "b"}));
}

TEST_F(actor_deadlock_test, ThroughTheMemberOfAGroup) {
  actor_router_options o;
  o.members = 1;
  o.member.name = "member";
  const actor_router<doer> group(system_, o);
  const auto x = hire("x");
  const ending at_the_end{*this};
  run_in(x, [&] {
    both_.arrive_and_wait();
    try {
      (void)group.ask(query{}).get(token());
    } catch (const actor_error&) {
    }
  });
  run_in(group.members().at(0), [&] {
    both_.arrive_and_wait();
    ask(x, query{});
  });
  EXPECT_EQ(parties(the_deadlock()), (names{"x", "member/1"}));
}

// The actor that forwarded the request waits for nothing and is not part of the deadlock.
TEST_F(actor_deadlock_test, ThroughAForwardedRequest) {
  const auto x = hire("x");
  const auto y = hire("y");
  const auto between = system_.spawn_with<forwarder>({.name = "between"}, y);
  const ending at_the_end{*this};
  run_in(x, [&] {
    both_.arrive_and_wait();
    try {
      (void)between.ask(query{}).get(token());
    } catch (const actor_error&) {
    }
  });
  run_in(y, [&] {
    both_.arrive_and_wait();
    ask(x, query{});
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y"}));
  EXPECT_TRUE(mentions(found, "actor 1 (x) waits to get a reply from actor y")) << found.text();
}

// Any member could reply, so the asker is deadlocked only if all members are.
TEST_F(actor_deadlock_test, ThroughAnAskOfAllMembersWhenNoneIsFree) {
  actor_router_options o;
  o.members = 2;
  o.member.name = "member";
  const actor_router<doer> group(system_, o);
  const auto x = hire("x");
  event free;
  std::stop_source first;
  barrier all(3);
  const ending at_the_end{*this};
  const auto members = group.members();
  run_in(x, [&] {
    all.arrive_and_wait();
    try {
      (void)group.ask_first(query{}).get(token());
    } catch (const actor_error&) {
    }
  });
  run_in(members.at(0), [&] {
    all.arrive_and_wait();
    ask(x, query{});
  });
  run_in(members.at(1), [&] {
    all.arrive_and_wait();
    (void)free.wait(first.get_token());
    ask(x, query{});
  });
  eventually([] { return inspect::waits().size() == 3; });
  EXPECT_TRUE(inspect::find_deadlocks().empty()) << inspect::to_text(inspect::waits());
  first.request_stop();
  const auto found = the_deadlock();
  EXPECT_TRUE(parties(found).contains("x")) << found.text();
  EXPECT_EQ(found.steps.size(), 2U);
}

TEST_F(actor_deadlock_test, ThroughAKeyedActor) {
  keyed_options o;
  o.type = "account";
  keyed_actors<keyed_doer> accounts(system_, o);
  const auto x = hire("x");
  const ending at_the_end{*this};
  const auto ann = accounts.of("ann");
  run_in(x, [&] {
    both_.arrive_and_wait();
    try {
      (void)ann.ask(query{}).get(token());
    } catch (const actor_error&) {
    }
  });
  ASSERT_TRUE(ann.send(act{[&] {
    both_.arrive_and_wait();
    ask(x, query{});
  }}));
  EXPECT_EQ(parties(the_deadlock()), (names{"x", "account/ann"}));
}

TEST_F(actor_deadlock_test, OfTwoKeyedActorsThatAwaitEachOther) {
  keyed_options o;
  o.type = "account";
  keyed_actors<awaits_peer> accounts(system_, o);
  barrier both(2);
  const ending at_the_end{*this};
  const auto ann = accounts.of("ann");
  const auto bob = accounts.of("bob");
  const auto meet = [&] { both.arrive_and_wait(); };
  ASSERT_TRUE(ann.send(ask_peer{bob, meet}));
  ASSERT_TRUE(bob.send(ask_peer{ann, meet}));
  EXPECT_EQ(parties(the_deadlock()), (names{"account/ann", "account/bob"}));
}

// The thread cannot release its lock before the actor's turn that it runs has ended.
TEST_F(actor_deadlock_test, ThroughTheThreadThatAnActorRunsOn) {
  mutex ledger(named("ledger"));
  mutex journal(named("journal"));
  inline_executor same_thread;
  actor_system inlined(same_thread);
  const auto x = inlined.spawn_with<doer>({.name = "x"});
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(ledger);
    both_.arrive_and_wait();
    run_in(x, [&] { want(journal); });  // in this thread
  });
  party("bob", [&] {
    const std::lock_guard hold(journal);
    both_.arrive_and_wait();
    want(ledger);
  });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob", "x"}));
  EXPECT_TRUE(mentions(found, "(ann) waits to end turn of actor 1 (x)")) << found.text();
}

TEST_F(actor_deadlock_test, OfActorsThatOccupyAllThreadsOfAPoolAndAQueuedActor) {
  thread_pool fixed({.core = 1, .capacity = 10, .name = "fixed"});
  actor_system system(fixed);
  const auto x = system.spawn_with<doer>({.name = "x"});
  const auto y = system.spawn_with<doer>({.name = "y"});
  const ending at_the_end{*this};
  run_in(x, [&] { ask(y, query{}); });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"x", "y", "fixed-1"}));
  EXPECT_FALSE(found.is_certain());
  EXPECT_TRUE(mentions(found, "actor 2 (y) waits to have a thread to run on")) << found.text();
  EXPECT_TRUE(mentions(found, "which thread")) << found.text();
}

TEST(actor_lock_order_test, AnInversionNamesTheActor) {
  std::vector<std::string> inversions;
  const inspect::enabled on(
      {.lock_order = true, .on_inversion = [&](const auto& i) { inversions.push_back(i.text()); }});
  mutex left(named("left"));
  mutex right(named("right"));
  inline_executor same_thread;
  actor_system system(same_thread);
  const auto x = system.spawn_with<doer>({.name = "x"});
  const auto both = [](mutex& first, mutex& second) {
    return act{[&] {
      const std::lock_guard one(first);
      const std::lock_guard two(second);
    }};
  };
  ASSERT_TRUE(x.send(both(left, right)));
  ASSERT_TRUE(inversions.empty());
  ASSERT_TRUE(x.send(both(right, left)));
  ASSERT_EQ(inversions.size(), 1U);
  EXPECT_NE(inversions[0].find("actor 1 (x) took mutex left"), std::string::npos) << inversions[0];
}

}  // namespace
}  // namespace sluice::testing::actor_deadlock_test
