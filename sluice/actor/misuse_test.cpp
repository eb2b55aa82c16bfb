// What becomes of calls that are mistakes: docs/reference/actors.md has them all in a table, and
// here are those that no other test is about.
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

TEST_F(misuse_test, AnActorThatStopsItselfInItsConstructorTakesNothing) {
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

// ---- answers

struct answer_twice {
  using reply = int;
};
class eager : public actor<eager, answer_twice> {
 public:
  void on(answer_twice, responder<int> to) {
    to.reply(1);
    is_open = to.is_open();
    to.reply(2);
    to.fail(std::make_exception_ptr(std::runtime_error("three")));
  }
  static inline bool is_open = true;
};

TEST_F(misuse_test, OnlyTheFirstAnswerIsOne) {
  const auto e = s.system.spawn<eager>();
  auto asked = e.ask(answer_twice{}, deadline::after(1h, s.clock));
  s.run();
  EXPECT_EQ(asked.get(), 1);
  EXPECT_FALSE(eager::is_open);
  EXPECT_EQ(s.system.stats().late_replies, 0U);
  EXPECT_EQ(s.system.stats().failures, 0U);
}

TEST_F(misuse_test, AnAskWithoutLimitsThatIsNotAnsweredIsOverWhenTheActorIs) {
  struct never {
    using reply = int;
  };
  class silent : public actor<silent, never> {
   public:
    void on(never, responder<int> to) { kept_ = std::move(to); }

   private:
    responder<int> kept_;
  };
  const auto who = s.system.spawn<silent>();
  auto asked = who.ask(never{});
  s.run();
  EXPECT_FALSE(asked.is_ready());
  who.stop();
  s.run();
  try {
    (void)asked.get();
    FAIL() << "answered";
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::unanswered);
  }
}

// ---- time

TEST_F(misuse_test, ATimerWhoseTimeHasPassedIsAtOnce) {
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    (void)me.send_after(-1h, say{"late"});
    (void)me.send_after(0s, say{"now"});
  });
  s.advance(0s);
  EXPECT_EQ(s.took(), "+a a:late a:now");
}

// ---- broken contracts: the program ends and says what was expected

struct by_key {};
class entity : public actor<entity, by_key> {
 public:
  void on(by_key) {}
};

class misuse_DeathTest : public misuse_test {
 protected:
  misuse_DeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(misuse_DeathTest, ARefThatIsEmptyRefersToNobody) {
  const ref<player> nobody;
  EXPECT_FALSE(nobody);
  EXPECT_EQ(nobody, ref<player>());
  EXPECT_DEATH((void)nobody.send(say{"hello"}), "an actor to refer to");
  EXPECT_DEATH((void)nobody.ask(question{}), "an actor to refer to");
  EXPECT_DEATH(nobody.stop(), "an actor to refer to");
  EXPECT_DEATH((void)recipient<say>().try_send(say{"hello"}), "an actor to refer to");
  EXPECT_DEATH((void)recipient<question>().ask(question{}), "an actor to refer to");
  EXPECT_DEATH((void)nobody.async_send(say{"hello"}), "an actor to refer to");
  EXPECT_DEATH((void)nobody.async_ask(question{}), "an actor to refer to");
  EXPECT_DEATH((void)recipient<say>().async_send(say{"hello"}), "an actor to refer to");
  EXPECT_DEATH((void)any_ref().is_over(), "an actor to refer to");
  EXPECT_DEATH((void)keyed_ref<entity>().send(by_key{}), "an actor to refer to");
}

TEST_F(misuse_DeathTest, AnActorIsNotMadeByHand) {
  EXPECT_DEATH(entity(), "to be made by spawn, and not by hand");
}

TEST_F(misuse_DeathTest, AMailboxHasRoomForOneAndRunsNothingAtItsSender) {
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.mailbox = {.capacity = 0}}),
               "a mailbox with room for one message at least");
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.mailbox = {.overflow = overflow::caller_runs}}),
               "caller_runs");
}

TEST_F(misuse_DeathTest, AnActorHasAnExecutorOrAThreadOfItsOwn) {
  EXPECT_DEATH((void)s.system.spawn_with<entity>({.on = &s.executor, .own_thread = true}),
               "an executor or a thread of its own, and not both");
}

TEST_F(misuse_DeathTest, AHandlerDoesNotWaitForItsSystem) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [&](player&) { (void)s.system.join(); }),
               "to be waited for by somebody else than its own actors");
  EXPECT_DEATH(s.tell(a, [&](player&) { (void)s.system.shutdown_within({}); }),
               "to be waited for by somebody else than its own actors");
}

TEST_F(misuse_DeathTest, AHandlerDoesNotWaitForItsOwnEnd) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.self().shutdown_within({}); }),
               "an actor not to wait for its own end");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.self().async_shutdown(); }),
               "an actor not to wait for its own end");
}

TEST_F(misuse_DeathTest, TicksHaveAPeriod) {
  const auto a = s.enter("a");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.send_every(0s, say{"tick"}); }),
               "a period that is longer than nothing");
  EXPECT_DEATH(s.tell(a, [](player& me) { (void)me.send_every(-1s, say{"tick"}); }),
               "a period that is longer than nothing");
}

TEST_F(misuse_DeathTest, OthersAreLetInByAHandlerOnly) {
  inline_executor here;
  EXPECT_DEATH((void)spawn(here, letting_others_in(make_ready_future(1))).get(),
               "to be in a handler that is a coroutine");
}

TEST_F(misuse_DeathTest, APoolHasMembersAndTimesThatAreLongerThanNothing) {
  const auto make = [&](actor_pool_options o) { actor_pool<entity>(s.system, std::move(o)); };
  EXPECT_DEATH(make({.members_min = 0}), "one member at least");
  EXPECT_DEATH(make({.members_min = 3, .members_max = 2}), "no less than that at most");
  EXPECT_DEATH(make({.grow_at = 0}), "a queue to grow at");
  EXPECT_DEATH(make({.grow_pause = 0s}), "a queue to grow at");
  EXPECT_DEATH(make({.idle_for = 0s}), "a queue to grow at");
}

TEST_F(misuse_DeathTest, EntitiesHaveOneKeeperWithLimitsThatFit) {
  EXPECT_DEATH((void)s.system.of<entity>("a"), "a keyed_actors of this type in the system");
  const auto make = [&](keyed_options o) { keyed_actors<entity>(s.system, std::move(o)); };
  EXPECT_DEATH(make({.live_max = 0}), "room for one live actor at least");
  EXPECT_DEATH(make({.live_max = 10, .live_limit = 9}), "not below live_max");
  EXPECT_DEATH(make({.idle = -1s}), "an idle time that is not negative");
  EXPECT_DEATH(make({.each = {.kind = child_kind::permanent}}), "neither permanent nor temporary");
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

TEST_F(misuse_DeathTest, ATraceHasRoomAndIsClearedWhileItIsOff) {
  EXPECT_DEATH(actor_trace({.capacity = 0}), "at least one event");
  EXPECT_DEATH(
      {
        actor_trace trace;
        trace.start();
        trace.clear();
      },
      "to be off while it is cleared");
}

}  // namespace
}  // namespace sluice::misuse_test
