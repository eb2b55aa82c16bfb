// The outcomes of mistakes that no other test covers; docs/reference/actors.md has a table of all
// mistakes.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_trace.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/future/spawn.hpp"

namespace sluice::misuse_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::part;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;
using testing::stage;

class misuse_test : public ::testing::Test {
 protected:
  stage s;
};

// ---- stopping from inside

TEST_F(misuse_test, AnActorThatStopsItselfInItsConstructorHandlesNothing) {
  ref<player> me_too;
  const auto a = s.enter(part{.name = "a", .at_start = [&](player& me) {
                                me.stop_self();
                                me_too = me.self();
                              }});
  EXPECT_EQ(a, me_too);
  ASSERT_TRUE(a.send(say{"too late"})) << "its end has not begun";
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(s.dead_letters(), "say");
  EXPECT_EQ(a.send(say{"never"}), status::closed);
}

TEST_F(misuse_test, AnActorMayStopItsParentAndEndsFirst) {
  const auto boss = s.enter("boss");
  const auto anna = s.hire(boss, {"anna"})[0];
  s.tell(anna, [&](player& me) {
    boss.stop();
    me.note("still");
  });
  EXPECT_EQ(s.took(), "+boss +anna still anna! -anna boss! -boss");
}

TEST_F(misuse_test, AHandlerMayStopTheWholeSystem) {
  const auto anna = s.enter("anna");
  (void)s.enter("bob");
  s.tell(anna, [&](player& me) {
    s.system.stop();
    me.note("still");
  });
  EXPECT_TRUE(s.system.join(deadline::after(0ns)));
  EXPECT_EQ(s.took(), "+anna +bob still bob! -bob anna! -anna");
}

TEST_F(misuse_test, AStopInStoppingChangesNothing) {
  const auto a = s.enter(part{.name = "a", .at_stop = [](player& me) {
                                me.stop_self();
                                me.close_self();
                              }});
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(s.failures(), "");
}

// ---- replies

struct answer_twice {
  using reply = int;
};
class eager : public actor<eager, answer_twice> {
 public:
  void on(answer_twice, responder<int> asker) {
    asker.reply(1);
    is_open = asker.is_open();
    asker.reply(2);
    asker.fail(std::make_exception_ptr(std::runtime_error("three")));
  }
  static inline bool is_open = true;
};

TEST_F(misuse_test, OnlyTheFirstReplyCounts) {
  const auto e = s.system.spawn<eager>();
  auto asked = e.ask(answer_twice{}, deadline::after(1h, s.clock));
  s.run();
  EXPECT_EQ(asked.get(), 1);
  EXPECT_FALSE(eager::is_open);
  EXPECT_EQ(s.system.stats().late_replies, 0U);
  EXPECT_EQ(s.system.stats().failures, 0U);
}

TEST_F(misuse_test, AnAskWithoutLimitsOrReplyEndsWithTheActor) {
  struct never {
    using reply = int;
  };
  class silent : public actor<silent, never> {
   public:
    void on(never, responder<int> asker) { kept_ = std::move(asker); }

   private:
    responder<int> kept_;
  };
  const auto target = s.system.spawn<silent>();
  auto asked = target.ask(never{});
  s.run();
  EXPECT_FALSE(asked.is_ready());
  target.stop();
  s.run();
  try {
    (void)asked.get();
    FAIL() << "there was a reply";
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::unanswered);
  }
}

// ---- time

TEST_F(misuse_test, ATimerInThePastFiresAtOnce) {
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    (void)me.send_after(-1h, say{"late"});
    (void)me.send_after(0s, say{"now"});
  });
  s.advance(0s);
  EXPECT_EQ(s.took(), "+a a:late a:now");
}

// ---- broken contracts: the program ends with the expectation

struct by_key {};
class entity : public actor<entity, by_key> {
 public:
  void on(by_key) {}
};

class misuse_DeathTest : public misuse_test {
 protected:
  misuse_DeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(misuse_DeathTest, AnEmptyRefIsABrokenContract) {
  const ref<player> empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty, ref<player>());
  EXPECT_DEATH((void)empty.send(say{"hello"}), "a non-empty ref");
  EXPECT_DEATH((void)empty.ask(question{}), "a non-empty ref");
  EXPECT_DEATH(empty.stop(), "a non-empty ref");
  EXPECT_DEATH((void)recipient<say>().try_send(say{"hello"}), "a non-empty ref");
  EXPECT_DEATH((void)recipient<question>().ask(question{}), "a non-empty ref");
  EXPECT_DEATH((void)empty.async_send(say{"hello"}), "a non-empty ref");
  EXPECT_DEATH((void)empty.async_ask(question{}), "a non-empty ref");
  EXPECT_DEATH((void)recipient<say>().async_send(say{"hello"}), "a non-empty ref");
  EXPECT_DEATH((void)any_ref().is_terminated(), "a non-empty ref");
  EXPECT_DEATH((void)keyed_ref<entity>().send(by_key{}), "a non-empty ref");
}

TEST_F(misuse_DeathTest, AnActorIsCreatedOnlyBySpawn) {
  EXPECT_DEATH(entity(), "an actor to be created by spawn");
}

TEST_F(misuse_DeathTest, AMailboxHasACapacityAndNoCallerRuns) {
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.mailbox = {.capacity = 0}}),
               "a mailbox capacity > 0");
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.mailbox = {.overflow = overflow::caller_runs}}),
               "caller_runs");
}

TEST_F(misuse_DeathTest, AnActorHasAnExecutorOrAThreadOfItsOwn) {
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.on = &s.executor, .own_thread = true}),
               "either options.on or options.own_thread, not both");
}

TEST_F(misuse_DeathTest, AHandlerDoesNotWaitForItsSystem) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [&](player&) { (void)s.system.join(); }),
               "a join from outside its own actors");
  EXPECT_DEATH(s.tell(a, [&](player&) { (void)s.system.shutdown({}); }),
               "a join from outside its own actors");
}

TEST_F(misuse_DeathTest, AHandlerDoesNotWaitForItsOwnEnd) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.self().shutdown({}); }),
               "a caller other than the actor itself");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.self().async_shutdown(); }),
               "a caller other than the actor itself");
}

TEST_F(misuse_DeathTest, TicksHaveAPeriod) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.send_every(0s, say{"tick"}); }), "a period > 0");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.send_every(-1s, say{"tick"}); }),
               "a period > 0");
}

TEST_F(misuse_DeathTest, ReentrantIsOnlyForHandlers) {
  inline_executor here;
  EXPECT_DEATH((void)spawn(here, reentrant(make_ready_future(1))).get(),
               "to be called in a handler that is a coroutine");
}

TEST_F(misuse_DeathTest, APoolHasMembersAndPositiveTimes) {
  const auto make = [&](actor_pool_options o) { actor_pool<entity>(s.system, std::move(o)); };
  EXPECT_DEATH(make({.members_min = 0}), "1 <= members_min");
  EXPECT_DEATH(make({.members_min = 3, .members_max = 2}), "1 <= members_min <= members_max");
  EXPECT_DEATH(make({.grow_at = 0}), "grow_at, grow_pause and idle_for > 0");
  EXPECT_DEATH(make({.grow_pause = 0s}), "grow_at, grow_pause and idle_for > 0");
  EXPECT_DEATH(make({.idle_for = 0s}), "grow_at, grow_pause and idle_for > 0");
}

TEST_F(misuse_DeathTest, AKeyedTypeHasOneKeyedActorsWithConsistentLimits) {
  EXPECT_DEATH((void)s.system.of<entity>("a"), "a keyed_actors of this type in the system");
  const auto make = [&](keyed_options o) { keyed_actors<entity>(s.system, std::move(o)); };
  EXPECT_DEATH(make({.live_max = 0}), "live_max > 0");
  EXPECT_DEATH(make({.live_max = 10, .live_limit = 9}), "live_limit >= live_max");
  EXPECT_DEATH(make({.idle = -1s}), "idle >= 0");
  EXPECT_DEATH(make({.each = {.kind = child_kind::permanent}}), "each.kind to be transient");
  memory_actor_store store;
  EXPECT_DEATH(
      {
        keyed_actors<entity> kept(s.system, {.store = &store});
        (void)kept.of("a").send(by_key{});
        s.run();
      },
      "an actor with save\\(\\) and load\\(\\)");
  EXPECT_DEATH(
      {
        keyed_actors<entity> one(s.system);
        keyed_actors<entity> another(s.system);
      },
      "one part of a kind at a time");
}

TEST_F(misuse_DeathTest, ATraceHasACapacityAndIsClearedWhileItIsOff) {
  EXPECT_DEATH(actor_trace({.capacity = 0}), "a capacity from 1 to 2.23 events");
  EXPECT_DEATH(
      {
        actor_trace trace;
        trace.start();
        trace.clear();
      },
      "to be off during clear");
}

}  // namespace
}  // namespace sluice::misuse_test
