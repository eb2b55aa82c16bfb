// Effects of coroutine handlers on their actor, and on the actors that share its thread.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::handler_turn_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::journal;
using testing::named;
using testing::part;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;
using testing::stage;

task<> pause(clock& on, std::chrono::nanoseconds wait) {
  (void)co_await sleep_for(wait, on);
}

// ---- reentrant waits

task<> pause_inside(player& me, clock& on) {
  co_await reentrant(pause(on, 1s));
  me.note("inner");
  (void)co_await sleep_for(1s, on);
  me.note("inner-again");
}

TEST(handler_turn_test, NestedReentrantWaitsLastUntilTheOutermostEnds) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
    co_await reentrant(pause_inside(me, s.clock));
    me.note("outer");
    (void)co_await sleep_for(1s, s.clock);
    me.note("done");
  }}));
  ASSERT_TRUE(a.send(say{"one"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:one");
  s.advance(1s);
  ASSERT_TRUE(a.send(say{"two"}));
  s.run();
  EXPECT_EQ(s.took(), "inner a:two") << "the outer wait is still reentrant";
  s.advance(1s);
  ASSERT_TRUE(a.send(say{"three"}));
  s.run();
  EXPECT_EQ(s.took(), "inner-again outer") << "it has the exclusive turn again";
  s.advance(1s);
  EXPECT_EQ(s.took(), "done a:three");
  a.close();
  s.run();
  EXPECT_EQ(s.took(), "a! -a");
}

TEST(handler_turn_test, ConcurrentReentrantWaitsEndWithTheLaterOne) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
    auto both = when_all(reentrant(pause(s.clock, 1s)), reentrant(pause(s.clock, 2s)));
    co_await std::move(both);
    me.note("both");
    (void)co_await sleep_for(1s, s.clock);
  }}));
  s.run();
  s.advance(1s);
  ASSERT_TRUE(a.send(say{"between"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:between");
  s.advance(1s);
  ASSERT_TRUE(a.send(say{"after"}));
  s.run();
  EXPECT_EQ(s.took(), "both");
  s.advance(1s);
  EXPECT_EQ(s.took(), "a:after");
}

// ---- fairness

// One thread for all actors; the test ends the yielding handlers.
class yielding_test : public ::testing::Test {
 protected:
  ref<player> enter(const std::string& name) {
    return system.spawn_with<player>(named(name), part{.name = name, .log = &log});
  }
  task<> yield_on() {
    while (!ends.load()) co_await this_task::yield();
  }
  void TearDown() override { ends.store(true); }

  journal log;
  std::atomic<bool> ends{false};
  thread_pool pool{{.core = 1}};
  actor_system system{pool};
};

TEST_F(yielding_test, AHandlerThatYieldsForEverLeavesTheThreadToOthers) {
  const auto busy = enter("busy");
  const auto other = enter("other");
  ASSERT_TRUE(busy.send(perform{[this](player&) { return yield_on(); }}));
  EXPECT_EQ(other.ask(question{}).get(30s).value_or("nobody"), "other");
}

TEST_F(yielding_test, AHandlerThatYieldsReentrantlyLeavesTheTurnToOtherMessages) {
  const auto busy = enter("busy");
  ASSERT_TRUE(busy.send(perform{[this](player&) -> task<> { co_await reentrant(yield_on()); }}));
  EXPECT_EQ(busy.ask(question{}).get(30s).value_or("nobody"), "busy");
}

TEST_F(yielding_test, AStopIsNotDelayedByAHandlerThatYields) {
  const auto busy = enter("busy");
  ASSERT_TRUE(busy.send(perform{[this](player& me) -> task<> {
    const std::stop_token& stop = co_await this_task::stop_token();
    while (!stop.stop_requested() && !ends.load()) co_await this_task::yield();
    me.note(stop.stop_requested() ? "stopped" : "not-stopped");
  }}));
  busy.stop();
  EXPECT_TRUE(busy.ended().get(30s));
  ends.store(true);
  busy.ended().get();
  EXPECT_EQ(log.take().find("not-stopped"), std::string::npos);
}

// ---- a turn around another one, as when a handler joins a fork

// An actor with a full mailbox, and another actor whose handler runs inside its turn.
class turn_around_test : public ::testing::Test {
 protected:
  turn_around_test() {
    actor_options o = named("full");
    o.mailbox.capacity = 1;
    full = s.system.spawn_with<player>(o, part{.name = "full", .log = &s.log});
    sender = s.enter("sender");
    s.run();
    s.took();
  }
  template <class M>
  std::string said_inside(M m) {
    const status sent = full.send(act{[&](player& me) {
      EXPECT_TRUE(me.self().try_send(say{"filled"}));
      EXPECT_TRUE(sender.send(std::move(m)));
      s.run();
      me.note("goes-on");
    }});
    EXPECT_TRUE(sent);
    s.run();
    return s.took();
  }

  stage s;
  ref<player> full;
  ref<player> sender;
};

TEST_F(turn_around_test, ACoroutineWaitsForCapacityAlsoInsideTheTurnThatFreesIt) {
  EXPECT_EQ(said_inside(perform{[this](player& me) -> task<> {
              say word{"late"};
              auto sending = full.async_send(std::move(word));
              const status outcome = co_await sending;
              me.note(std::string(to_string(outcome)));
            }}),
            "goes-on full:filled full:late ok");
}

TEST_F(turn_around_test, AHandlerThatWouldBlockTheThreadGetsFull) {
  EXPECT_EQ(said_inside(act{
                [this](player& me) { me.note(std::string(to_string(full.send(say{"late"})))); }}),
            "full goes-on full:filled");
}

// ---- exceptions while their actor ends

// Waits for the stop, then throws by `fails`.
template <class Fails>
perform throws_when_stopped(clock& on, Fails fails) {
  return perform{[&on, fails](player&) -> task<> {
    co_await reentrant(pause(on, 1h));
    fails();
  }};
}

TEST(handler_turn_test, AnExceptionWhileAnActorStopsIsReported) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(throws_when_stopped(s.clock, [] { throw std::runtime_error("no disk"); })));
  s.run();
  a.stop();
  s.run();
  EXPECT_EQ(s.failures(), "a:stop");
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(a.ended().get().why, end_reason::stopped);
}

TEST(handler_turn_test, AnExceptionWhileAnActorIsRestartedIsReported) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(throws_when_stopped(s.clock, [] { throw std::runtime_error("no disk"); })));
  s.fall(a);
  EXPECT_EQ(s.failures(), "a:restart a:restart");
  EXPECT_EQ(s.took(), "+a a! -a +a");
}

TEST(handler_turn_test, AStoppedExceptionWhileAnActorStopsIsNoFailure) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(
      a.send(throws_when_stopped(s.clock, [] { throw future_error(future_error::cancelled); })));
  ASSERT_TRUE(a.send(
      throws_when_stopped(s.clock, [] { throw actor_error(actor_error::stopped, "b", "say"); })));
  s.run();
  a.stop();
  s.run();
  EXPECT_EQ(s.failures(), "");
  EXPECT_EQ(s.took(), "+a a! -a");
}

}  // namespace
}  // namespace sluice::handler_turn_test
