#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sluice/actor/reentrant.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "tests/inspect/acting.hpp"

namespace sluice::testing::actors_test {
namespace {

using namespace std::chrono_literals;

class waits_in_constructor : public actor<waits_in_constructor, act> {
 public:
  explicit waits_in_constructor(const std::function<void()>& wait) { wait(); }
  void on(act m) { m.body(); }
};

class actors_test : public acting_fixture {
 protected:
  // Blocks until the actor of this name waits, and returns that wait.
  static inspect::wait_info the_wait_of(const std::string& name) {
    std::vector<inspect::wait_info> found;
    eventually(
        [&] {
          found = inspect::waits();
          std::erase_if(found, [&](const auto& w) { return w.party.name != name; });
          return found.size() == 1;
        },
        "one wait of the actor");
    return found.front();
  }
  // Returns the contention counters of the actor of this name.
  static std::vector<inspect::contention_info> counted_for(const std::string& name) {
    auto all = inspect::contention();
    std::erase_if(all, [&](const auto& c) { return c.type != "actor" || c.name != name; });
    return all;
  }
};

TEST_F(actors_test, AnActorBlockedInALockIsListedByItsName) {
  semaphore slots(0, named("slots"));
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  run_in(desk, [&] { want(slots); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.party.text(), "actor 1 (desk)");
  EXPECT_EQ(wait.on.at(0).text(), "semaphore slots");
  // The actor's thread is blocked too, but is not listed as a separate wait.
  ASSERT_EQ(wait.also_blocked.size(), 1U);
  EXPECT_EQ(wait.also_blocked[0].id.type(), wait_report::party::kind::thread);
  EXPECT_EQ(wait.also_blocked[0].name.substr(0, 4), "pool");
  EXPECT_EQ(waits_on(&slots).size(), 1U);
}

TEST_F(actors_test, AnActorBlockedInAnAskIsListedWithTheAskedActor) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  run_in(desk, [&] { ask(store, riddle{}); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.on.at(0).wants, "get a reply from");
  EXPECT_EQ(wait.on.at(0).text(), "actor store");
  EXPECT_EQ(wait.on.at(0).servers.at(0).party.text(), "actor 2 (store)");
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(actors_test, AnActorWithAHandlerSuspendedInAnAskIsListed) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  await_in(desk, [&]() -> task<> {
    auto answer = store.async_ask(riddle{});
    (void)co_await std::move(answer);
  });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.party.text(), "actor 1 (desk)");
  EXPECT_EQ(wait.on.at(0).servers.at(0).party.text(), "actor 2 (store)");
  EXPECT_TRUE(wait.also_blocked.empty());  // no thread waits
}

TEST_F(actors_test, ASenderToAFullMailboxIsListed) {
  event go;
  const auto desk = hire("desk");
  const auto store = hire("store", 1);
  const ending at_the_end{*this};
  run_in(store, [&] { (void)go.wait(token()); });
  run_in(desk, [&] { fill(store); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.on.at(0).wants, "send to");
  EXPECT_EQ(wait.on.at(0).text(), "actor store");
  EXPECT_EQ(wait.on.at(0).capacity, 1U);
  EXPECT_EQ(wait.on.at(0).servers.at(0).party.text(), "actor 2 (store)");
}

TEST_F(actors_test, AThreadBlockedInAnAskIsListedWithTheAskedActor) {
  const auto store = hire("store");
  const ending at_the_end{*this};
  party("ann", [&] { ask(store, riddle{}); });
  const auto wait = the_wait_of("ann");
  EXPECT_EQ(wait.on.at(0).servers.at(0).party.text(), "actor 1 (store)");
}

TEST_F(actors_test, AreInTheTextTheJsonAndTheGraph) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  run_in(desk, [&] { ask(store, riddle{}); });
  const std::vector<inspect::wait_info> waits{the_wait_of("desk")};
  const auto text = inspect::to_text(waits);
  EXPECT_NE(text.find("actor 1 (desk)  get a reply from actor store"), std::string::npos) << text;
  EXPECT_NE(text.find("actor 2 (store) is asked"), std::string::npos) << text;
  const auto json = inspect::to_json(waits);
  EXPECT_NE(json.find(R"("kind":"actor")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("name":"desk")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("holds_up":[{"kind":"thread")"), std::string::npos) << json;
  const auto graph = inspect::to_mermaid(waits);
  EXPECT_NE(graph.find("actor 1 (desk)"), std::string::npos) << graph;
  EXPECT_NE(graph.find("actor 2 (store)"), std::string::npos) << graph;
}

TEST_F(actors_test, AReentrantActorDoesNotWait) {
  event go;
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  await_in(desk, [&]() -> task<> {
    const auto waiting = [&]() -> task<> { (void)co_await go.async_wait(); };
    co_await reentrant(waiting());
  });
  until_waited_for(&go);
  EXPECT_EQ(the_wait_on(&go).party.id.type(), wait_report::party::kind::coroutine);
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  go.set();
}

// The handler awaits two tasks at once; only one of them is reentrant.
TEST_F(actors_test, AnActorThatIsReentrantInOneOfTwoAwaitsDoesNotWait) {
  event go;
  event other;
  const auto desk = hire("desk");
  const auto waiting = [](event& e) -> task<> { (void)co_await e.async_wait(); };
  const ending at_the_end{*this};
  await_in(desk, [&]() -> task<> { co_await when_all(waiting(other), reentrant(waiting(go))); });
  until_waited_for(&go);
  EXPECT_EQ(the_wait_on(&go).party.id.type(), wait_report::party::kind::coroutine);
  EXPECT_EQ(the_wait_on(&other).party.id.type(), wait_report::party::kind::coroutine);
  go.set();
  eventually([&] { return the_wait_on(&other).party.name == "desk"; },
             "to have the exclusive turn again");
  other.set();
}

TEST_F(actors_test, AHandlerThatWaitsToResumeBehindAnotherIsListed) {
  event go;
  event other;
  const auto desk = hire("desk");
  const auto waiting = [](event& e) -> task<> { (void)co_await e.async_wait(); };
  const ending at_the_end{*this};
  await_in(desk, [&]() -> task<> { co_await reentrant(waiting(go)); });
  const auto placed = __LINE__ - 1;
  until_waited_for(&go);
  await_in(desk, [&]() -> task<> { (void)co_await other.async_wait(); });
  until_waited_for(&other);
  go.set();
  std::vector<inspect::wait_info> found;
  eventually([&] {
    found = inspect::waits();
    std::erase_if(found, [](const auto& w) { return w.on.at(0).wants != "resume in"; });
    return found.size() == 1;
  });
  EXPECT_EQ(found[0].party.id.type(), wait_report::party::kind::coroutine);
  EXPECT_EQ(found[0].on[0].text(), "actor desk");
  ASSERT_EQ(found[0].on[0].servers.size(), 1U);
  EXPECT_EQ(found[0].on[0].servers[0].party.text(), "actor 1 (desk)");
  EXPECT_TRUE(ends_with(inspect::to_string(found[0].at.value()),
                        "actors_test.cpp:" + std::to_string(placed)));
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  other.set();
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  EXPECT_TRUE(inspect::waits().empty());
}

TEST_F(actors_test, ASuspendedHandlerWithTheExclusiveTurnIsItsActor) {
  event go;
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  await_in(desk, [&]() -> task<> { (void)co_await go.async_wait(); });
  EXPECT_EQ(the_wait_on(&go).party.text(), "actor 1 (desk)");
  go.set();
}

TEST_F(actors_test, AnActorHoldsThePermitThatItsHandlerAcquired) {
  mutex m(named("m"));
  semaphore slots(1, named("slots"));
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  run_in(desk, [&] { slots.acquire(); });  // released in another message
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  const auto holds = inspect::holds();
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds[0].party.text(), "actor 1 (desk)");
  run_in(desk, [&] { slots.release(); });
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  EXPECT_TRUE(inspect::holds().empty());
}

TEST_F(actors_test, ATerminatedActorLeavesNoName) {
  mutex m(named("m"));
  wait_report::party terminated;
  {
    const auto desk = hire("desk");
    run_in(desk, [&] {
      m.lock();
      terminated = wait_report::party::current();
      m.unlock();
    });
    EXPECT_EQ(desk.ask(query{}).get(), 1);
    EXPECT_EQ(wait_report::name_of(terminated), "desk");
    desk.stop();
    (void)desk.ended().get();
  }
  eventually([&] { return wait_report::name_of(terminated).empty(); }, "its name to be removed");
}

TEST_F(actors_test, WaitsForCapacityAndForRepliesCountForTheActorByItsName) {
  event go;
  const auto desk = hire("desk");
  const auto store = hire("store", 1);
  const ending at_the_end{*this};
  run_in(store, [&] { (void)go.wait(token()); });
  until_waited_for(&go);
  party("ann", [&] { EXPECT_EQ(store.ask(query{}).get(), 1); });
  const auto asks = the_wait_of("ann");
  EXPECT_EQ(asks.on.at(0).wants, "get a reply from");
  run_in(desk, [&] { EXPECT_TRUE(store.send(act{[] {}})); });
  const auto sends = the_wait_of("desk");
  EXPECT_EQ(sends.on.at(0).wants, "send to");
  ASSERT_EQ(counted_for("store").size(), 1U);
  EXPECT_EQ(counted_for("store")[0].waits, 2U);
  EXPECT_EQ(counted_for("store")[0].waiting, 2U);
  EXPECT_NE(inspect::to_text(inspect::contention()).find("actor store "), std::string::npos);
  go.set();
  threads_.clear();
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  ASSERT_EQ(counted_for("store").size(), 1U);
  EXPECT_EQ(counted_for("store")[0].waits, 2U);
  EXPECT_EQ(counted_for("store")[0].waiting, 0U);
  EXPECT_EQ(counted_for("store")[0].waiting_max, 2U);
  EXPECT_GT(counted_for("store")[0].waited, 0ns);
}

TEST_F(actors_test, ATerminatedActorIsNotCounted) {
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  {
    const auto store = hire("store");
    party("ann", [&] { ask(store, riddle{}); });
    (void)the_wait_of("ann");
    ASSERT_EQ(counted_for("store").size(), 1U);
    store.stop();
    (void)store.ended().get();
    threads_.clear();
  }
  eventually([&] { return counted_for("store").empty(); }, "its counters to be removed");
}

// A snapshot holds locks while it collects the blocked parties, so it copies only their numbers.
TEST_F(actors_test, BlockedPartiesAreNamedByTheWaitAndNotByASnapshot) {
  const auto outer = hire("outer");
  semaphore slots(0, named("slots"));
  const ending at_the_end{*this};
  wait_report::party of_inner;
  event begun;
  run_in(outer, [&] {
    (void)system_.spawn_with<waits_in_constructor>({.name = "inner"}, [&] {
      of_inner = wait_report::party::current();
      begun.set();
      want(slots);
    });
  });
  begun.wait();
  // The actor of the same system that was created just before it.
  const auto of_outer = wait_report::party::from_word(of_inner.word() - 1);
  eventually([&] { return wait_report::name_of(of_outer) == "outer"; },
             "its name without a snapshot");
  const auto wait = the_wait_of("inner");
  ASSERT_EQ(wait.also_blocked.size(), 2U);
  EXPECT_EQ(wait.also_blocked[1].text(), "actor 1 (outer)");
}

// Nor does a terminated actor's record displace that of a live consumer.
TEST_F(actors_test, TerminatedActorsAreNotListedAsConsumers) {
  bounded_queue<int> rows({.capacity = 1, .name = "rows"});
  ASSERT_TRUE(rows.push(0));
  const ending at_the_end{*this};
  std::vector<ref<doer>> all;  // keeps their addresses from being reused
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    event pushed;
    party("ann", [&] {
      EXPECT_TRUE(rows.push(1));
      pushed.set();
    });
    EXPECT_TRUE(the_wait_on(&rows).on[0].servers.empty());
    const auto x = all.emplace_back(hire("x"));
    event go;
    run_in(x, [&] {
      EXPECT_TRUE(rows.pop());
      go.wait();
    });
    pushed.wait();
    party("bob", [&] { (void)rows.push(2, token()); });
    const auto wait = the_wait_on(&rows);
    EXPECT_EQ(wait.on[0].by, wait_report::served_by::consumers);
    ASSERT_EQ(wait.on[0].servers.size(), 1U);
    EXPECT_EQ(wait.on[0].servers[0].party.name, "x");
    stop_.request_stop();
    threads_.clear();
    stop_ = std::stop_source();
    go.set();
    x.stop();
    (void)x.ended().get();
  }
}

// A blocked actor does not terminate.
TEST_F(actors_test, WaitingForTerminationIsAWaitForTheActor) {
  event go(named("go"));
  const auto x = hire("x");
  const ending at_the_end{*this};
  run_in(x, [&] { go.wait(); });
  until_waited_for(&go);
  party("ann", [&] { (void)x.ended().get(token()); });
  const auto wait = [&] {
    std::vector<inspect::wait_info> found;
    eventually([&] {
      found = inspect::waits();
      std::erase_if(found, [](const auto& w) { return w.party.name != "ann"; });
      return found.size() == 1;
    });
    return found.front();
  }();
  ASSERT_EQ(wait.on.size(), 1U);
  EXPECT_EQ(wait.on[0].text(), "actor x");
  ASSERT_EQ(wait.on[0].servers.size(), 1U);
  EXPECT_EQ(wait.on[0].servers[0].party.name, "x");
  go.set();
}

}  // namespace
}  // namespace sluice::testing::actors_test
