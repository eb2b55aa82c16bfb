#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sluice/actor/letting_others_in.hpp"
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

class waits_when_made : public actor<waits_when_made, act> {
 public:
  explicit waits_when_made(const std::function<void()>& how) { how(); }
  void on(act m) { m.what(); }
};

class actors_test : public acting_fixture {
 protected:
  // The wait of the actor of this name, once it is there.
  static inspect::wait_info the_wait_of(const std::string& name) {
    std::vector<inspect::wait_info> found;
    eventually(
        [&] {
          found = inspect::waits();
          std::erase_if(found, [&](const auto& w) { return w.who.name != name; });
          return found.size() == 1;
        },
        "one wait of the actor");
    return found.front();
  }
  // What is counted of the waits for the actor of this name.
  static std::vector<inspect::contention_info> counted_for(const std::string& name) {
    auto all = inspect::contention();
    std::erase_if(all, [&](const auto& c) { return c.type != "actor" || c.name != name; });
    return all;
  }
};

TEST_F(actors_test, OneThatBlocksInALockIsListedByItsName) {
  semaphore slots(0, named("slots"));
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  have(desk, [&] { want(slots); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.who.text(), "actor 1 (desk)");
  EXPECT_EQ(wait.on.at(0).text(), "semaphore slots");
  // The thread that it runs on cannot go on either, and is no wait of its own.
  ASSERT_EQ(wait.holds_up.size(), 1U);
  EXPECT_EQ(wait.holds_up[0].id.what(), watch::party::kind::thread);
  EXPECT_EQ(wait.holds_up[0].name.substr(0, 4), "pool");
  EXPECT_EQ(waits_on(&slots).size(), 1U);
}

TEST_F(actors_test, OneThatHasAskedIsListedWithWhomItWaitsFor) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  have(desk, [&] { ask(store, riddle{}); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.on.at(0).wants, "hear from");
  EXPECT_EQ(wait.on.at(0).text(), "actor store");
  EXPECT_EQ(wait.on.at(0).servers.at(0).who.text(), "actor 2 (store)");
  EXPECT_TRUE(inspect::find_deadlocks().empty());
}

TEST_F(actors_test, OneWhoseHandlerIsSuspendedInAnAskIsListed) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  have_await(desk, [&]() -> task<> {
    auto answer = store.async_ask(riddle{});
    (void)co_await std::move(answer);
  });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.who.text(), "actor 1 (desk)");
  EXPECT_EQ(wait.on.at(0).servers.at(0).who.text(), "actor 2 (store)");
  EXPECT_TRUE(wait.holds_up.empty());  // no thread waits
}

TEST_F(actors_test, OneThatWaitsForRoomIsListed) {
  event go;
  const auto desk = hire("desk");
  const auto store = hire("store", 1);
  const ending at_the_end{*this};
  have(store, [&] { (void)go.wait(token()); });
  have(desk, [&] { fill(store); });
  const auto wait = the_wait_of("desk");
  EXPECT_EQ(wait.on.at(0).wants, "send to");
  EXPECT_EQ(wait.on.at(0).text(), "actor store");
  EXPECT_EQ(wait.on.at(0).capacity, 1U);
  EXPECT_EQ(wait.on.at(0).servers.at(0).who.text(), "actor 2 (store)");
}

TEST_F(actors_test, AThreadThatHasAskedIsListedWithWhomItWaitsFor) {
  const auto store = hire("store");
  const ending at_the_end{*this};
  party("ann", [&] { ask(store, riddle{}); });
  const auto wait = the_wait_of("ann");
  EXPECT_EQ(wait.on.at(0).servers.at(0).who.text(), "actor 1 (store)");
}

TEST_F(actors_test, AreInTheTextTheJsonAndTheGraph) {
  const auto desk = hire("desk");
  const auto store = hire("store");
  const ending at_the_end{*this};
  have(desk, [&] { ask(store, riddle{}); });
  const std::vector<inspect::wait_info> waits{the_wait_of("desk")};
  const auto text = inspect::to_text(waits);
  EXPECT_NE(text.find("actor 1 (desk)  hear from actor store"), std::string::npos) << text;
  EXPECT_NE(text.find("actor 2 (store) is asked"), std::string::npos) << text;
  const auto json = inspect::to_json(waits);
  EXPECT_NE(json.find(R"("kind":"actor")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("name":"desk")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("holds_up":[{"kind":"thread")"), std::string::npos) << json;
  const auto graph = inspect::to_mermaid(waits);
  EXPECT_NE(graph.find("actor 1 (desk)"), std::string::npos) << graph;
  EXPECT_NE(graph.find("actor 2 (store)"), std::string::npos) << graph;
}

TEST_F(actors_test, OneThatLetsOthersInDoesNotWait) {
  event go;
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  have_await(desk, [&]() -> task<> {
    const auto waiting = [&]() -> task<> { (void)co_await go.async_wait(); };
    co_await letting_others_in(waiting());
  });
  until_waited_for(&go);
  EXPECT_EQ(the_wait_on(&go).who.id.what(), watch::party::kind::coroutine);
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  go.set();
}

// From one of two places at once.
TEST_F(actors_test, OneThatLetsOthersInWhileItAwaitsSomethingElseDoesNotWait) {
  event go;
  event other;
  const auto desk = hire("desk");
  const auto waiting = [](event& e) -> task<> { (void)co_await e.async_wait(); };
  const ending at_the_end{*this};
  have_await(
      desk, [&]() -> task<> { co_await when_all(waiting(other), letting_others_in(waiting(go))); });
  until_waited_for(&go);
  EXPECT_EQ(the_wait_on(&go).who.id.what(), watch::party::kind::coroutine);
  EXPECT_EQ(the_wait_on(&other).who.id.what(), watch::party::kind::coroutine);
  go.set();
  eventually([&] { return the_wait_on(&other).who.name == "desk"; }, "to have the floor again");
  other.set();
}

TEST_F(actors_test, AHandlerThatWantsToGoOnWhileAnotherIsNotDoneIsListed) {
  event go;
  event other;
  const auto desk = hire("desk");
  const auto waiting = [](event& e) -> task<> { (void)co_await e.async_wait(); };
  const ending at_the_end{*this};
  have_await(desk, [&]() -> task<> { co_await letting_others_in(waiting(go)); });
  const auto placed = __LINE__ - 1;
  until_waited_for(&go);
  have_await(desk, [&]() -> task<> { (void)co_await other.async_wait(); });
  until_waited_for(&other);
  go.set();
  std::vector<inspect::wait_info> found;
  eventually([&] {
    found = inspect::waits();
    std::erase_if(found, [](const auto& w) { return w.on.at(0).wants != "go on in"; });
    return found.size() == 1;
  });
  EXPECT_EQ(found[0].who.id.what(), watch::party::kind::coroutine);
  EXPECT_EQ(found[0].on[0].text(), "actor desk");
  ASSERT_EQ(found[0].on[0].servers.size(), 1U);
  EXPECT_EQ(found[0].on[0].servers[0].who.text(), "actor 1 (desk)");
  EXPECT_TRUE(ends_with(inspect::to_string(found[0].at.value()),
                        "actors_test.cpp:" + std::to_string(placed)));
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  other.set();
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  EXPECT_TRUE(inspect::waits().empty());
}

TEST_F(actors_test, ASuspendedHandlerThatKeepsOthersOutIsItsActor) {
  event go;
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  have_await(desk, [&]() -> task<> { (void)co_await go.async_wait(); });
  EXPECT_EQ(the_wait_on(&go).who.text(), "actor 1 (desk)");
  go.set();
}

TEST_F(actors_test, WhatAHandlerTakesItsActorHolds) {
  mutex m(named("m"));
  semaphore slots(1, named("slots"));
  const auto desk = hire("desk");
  const ending at_the_end{*this};
  have(desk, [&] { slots.acquire(); });  // and gives it back in another message
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  const auto holds = inspect::holds();
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds[0].who.text(), "actor 1 (desk)");
  have(desk, [&] { slots.release(); });
  EXPECT_EQ(desk.ask(query{}).get(), 1);
  EXPECT_TRUE(inspect::holds().empty());
}

TEST_F(actors_test, AnActorThatHasEndedLeavesNoName) {
  mutex m(named("m"));
  watch::party who;
  {
    const auto desk = hire("desk");
    have(desk, [&] {
      m.lock();
      who = watch::party::current();
      m.unlock();
    });
    EXPECT_EQ(desk.ask(query{}).get(), 1);
    EXPECT_EQ(watch::name_of(who), "desk");
    desk.stop();
    (void)desk.ended().get();
  }
  eventually([&] { return watch::name_of(who).empty(); }, "its cell to be gone");
}

TEST_F(actors_test, WaitsForRoomAndForAnswersCountForTheActorByItsName) {
  event go;
  const auto desk = hire("desk");
  const auto store = hire("store", 1);
  const ending at_the_end{*this};
  have(store, [&] { (void)go.wait(token()); });
  until_waited_for(&go);
  party("ann", [&] { EXPECT_EQ(store.ask(query{}).get(), 1); });
  const auto asks = the_wait_of("ann");
  EXPECT_EQ(asks.on.at(0).wants, "hear from");
  have(desk, [&] { EXPECT_TRUE(store.send(act{[] {}})); });
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
  EXPECT_EQ(counted_for("store")[0].waiting_most, 2U);
  EXPECT_GT(counted_for("store")[0].waited, 0ns);
}

TEST_F(actors_test, AnActorThatIsGoneIsNotCountedAnyMore) {
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
  eventually([&] { return counted_for("store").empty(); }, "it to be forgotten");
}

// A look has locks when it asks who is held up: it only takes the numbers of those.
TEST_F(actors_test, WhomAWaitHoldsUpIsNamedByTheWaitAndNotByALook) {
  const auto outer = hire("outer");
  semaphore slots(0, named("slots"));
  const ending at_the_end{*this};
  watch::party of_inner;
  event begun;
  have(outer, [&] {
    (void)system_.spawn_with<waits_when_made>({.name = "inner"}, [&] {
      of_inner = watch::party::current();
      begun.set();
      want(slots);
    });
  });
  begun.wait();
  // Of the same system, and made just before it.
  const auto of_outer = watch::party::from_word(of_inner.word() - 1);
  eventually([&] { return watch::name_of(of_outer) == "outer"; }, "its name without a look");
  const auto wait = the_wait_of("inner");
  ASSERT_EQ(wait.holds_up.size(), 2U);
  EXPECT_EQ(wait.holds_up[1].text(), "actor 1 (outer)");
}

// Nor does one of them keep the place of another that does.
TEST_F(actors_test, ThatHaveEndedTakeFromNoQueue) {
  bounded_queue<int> rows({.capacity = 1, .name = "rows"});
  ASSERT_TRUE(rows.push(0));
  const ending at_the_end{*this};
  std::vector<ref<doer>> all;  // somebody may still have their addresses
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
    have(x, [&] {
      EXPECT_TRUE(rows.pop());
      go.wait();
    });
    pushed.wait();
    party("bob", [&] { (void)rows.push(2, token()); });
    const auto wait = the_wait_on(&rows);
    EXPECT_EQ(wait.on[0].by, watch::served_by::takers);
    ASSERT_EQ(wait.on[0].servers.size(), 1U);
    EXPECT_EQ(wait.on[0].servers[0].who.name, "x");
    stop_.request_stop();
    threads_.clear();
    stop_ = std::stop_source();
    go.set();
    x.stop();
    (void)x.ended().get();
  }
}

// As long as an actor is stuck it does not end.
TEST_F(actors_test, AnEndIsAWaitForTheActor) {
  event go(named("go"));
  const auto x = hire("x");
  const ending at_the_end{*this};
  have(x, [&] { go.wait(); });
  until_waited_for(&go);
  party("ann", [&] { (void)x.ended().get(token()); });
  const auto wait = [&] {
    std::vector<inspect::wait_info> found;
    eventually([&] {
      found = inspect::waits();
      std::erase_if(found, [](const auto& w) { return w.who.name != "ann"; });
      return found.size() == 1;
    });
    return found.front();
  }();
  ASSERT_EQ(wait.on.size(), 1U);
  EXPECT_EQ(wait.on[0].text(), "actor x");
  ASSERT_EQ(wait.on[0].servers.size(), 1U);
  EXPECT_EQ(wait.on[0].servers[0].who.name, "x");
  go.set();
}

}  // namespace
}  // namespace sluice::testing::actors_test
