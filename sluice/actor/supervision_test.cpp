// Failing actors, and the effects on their siblings, children and parents.
#include "sluice/actor/supervision.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::supervision_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::falls;
using testing::named;
using testing::part;
using testing::player;
using testing::question;
using testing::say;
using testing::stage;

using players = std::vector<ref<player>>;

supervision always(directive action) {
  supervision s;
  s.action = action;
  return s;
}
supervision by(strategy kind) {
  supervision s;
  s.strategy = kind;
  return s;
}

// ---- strategies

TEST(supervision_test, OneForOneRestartsOnlyTheFailedChild) {
  stage s;
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a", "b", "c"});
  s.took();
  s.fall(kids[1]);
  EXPECT_EQ(s.took(), "b! -b +b");
  EXPECT_EQ(s.failures(), "b:restart");
  EXPECT_EQ(s.system.stats().restarts, 1U);
}

TEST(supervision_test, OneForAllDestroysInReverseAndConstructsInOrder) {
  stage s;
  const auto boss = s.enter("boss", by(strategy::one_for_all));
  const players kids = s.hire(boss, {"a", "b", "c"});
  s.took();
  s.fall(kids[1]);
  EXPECT_EQ(s.took(), "c! -c b! -b a! -a +a +b +c");
  s.tell(kids[0], [](player& me) { me.note("here"); });
  EXPECT_EQ(s.took(), "here");
}

TEST(supervision_test, RestForOneLeavesOlderSiblings) {
  stage s;
  const auto boss = s.enter("boss", by(strategy::rest_for_one));
  const players kids = s.hire(boss, {"a", "b", "c", "d"});
  s.took();
  s.fall(kids[1]);
  EXPECT_EQ(s.took(), "d! -d c! -c b! -b +b +c +d");
  s.fall(kids[3]);
  EXPECT_EQ(s.took(), "d! -d +d");
}

TEST(supervision_test, ItsOwnChildrenEndBeforeItIsRestarted) {
  stage s;
  const auto boss = s.enter("boss");
  s.hire(boss, {"a", "b"});
  s.took();
  s.fall(boss);
  EXPECT_EQ(s.took(), "b! -b a! -a boss! -boss +boss");
}

TEST(supervision_test, ChildrenOfItsConstructorAreSpawnedAgain) {
  stage s;
  const auto boss = s.enter(part{.name = "boss", .at_start = [](player& me) { me.hire("kid"); }});
  s.took();
  s.fall(boss);
  EXPECT_EQ(s.took(), "kid! -kid boss! -boss +boss +kid");
}

TEST(supervision_test, QueuedMessagesOutliveTheState) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(act{&falls}));
  ASSERT_TRUE(a.send(say{"one"}));
  ASSERT_TRUE(a.send(say{"two"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a +a a:one a:two");
  EXPECT_EQ(s.dead_letters(), "");
}

TEST(supervision_test, AChildSpawnedDuringARoundIsNotRestarted) {
  stage s;
  const auto boss = s.enter("boss", by(strategy::one_for_all));
  const players kids = s.hire(boss, {"a", "b"});
  s.took();
  ASSERT_TRUE(kids[0].send(act{&falls}));
  ASSERT_TRUE(s.executor.run_one());  // it has failed
  ASSERT_TRUE(s.executor.run_one());  // the boss is notified
  s.hire(boss, {"c"});
  EXPECT_EQ(s.took(), "b! -b +c a! -a +a +b");
}

// ---- decisions

TEST(supervision_test, ResumeKeepsTheState) {
  stage s(always(directive::resume));
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.life = 7; });
  s.fall(a);
  EXPECT_EQ(s.failures(), "a:resume");
  s.tell(a, [](player& me) { me.note(std::to_string(me.life)); });
  EXPECT_EQ(s.took(), "+a 7");
}

TEST(supervision_test, StopEndsItWithItsChildrenAndReportsTheFailure) {
  stage s(always(directive::stop));
  const auto a = s.enter("a");
  s.hire(a, {"kid"});
  s.took();
  ASSERT_TRUE(a.send(act{&falls}));
  ASSERT_TRUE(a.send(say{"never"}));
  s.run();
  EXPECT_EQ(s.took(), "kid! -kid a! -a");
  EXPECT_EQ(s.dead_letters(), "say");
  const actor_end end = a.ended().get();
  EXPECT_EQ(end.why, end_reason::failed);
  EXPECT_THROW(std::rethrow_exception(end.error), std::runtime_error);
}

TEST(supervision_test, DecideGetsTheException) {
  supervision picky;
  picky.decide = [](const std::exception_ptr& e) {
    try {
      std::rethrow_exception(e);
    } catch (const std::invalid_argument&) {
      return directive::resume;
    } catch (...) {
      return directive::restart;
    }
  };
  stage s(picky);
  const auto a = s.enter("a");
  s.tell(a, [](player&) { throw std::invalid_argument("only that"); });
  EXPECT_EQ(s.took(), "+a");
  s.tell(a, [](player&) { throw 7; });
  EXPECT_EQ(s.took(), "a! -a +a");
}

TEST(supervision_test, ADecisionThatThrowsEscalates) {
  stage s(always(directive::stop));
  supervision broken;
  broken.decide = [](const std::exception_ptr&) -> directive { throw std::logic_error("no idea"); };
  const auto boss = s.enter("boss", broken);
  const players kids = s.hire(boss, {"a"});
  s.fall(kids[0]);
  EXPECT_EQ(s.failures(), "a:escalate boss:stop");
  EXPECT_TRUE(boss.is_terminated());
  EXPECT_TRUE(kids[0].is_terminated());
}

// ---- escalation

TEST(supervision_test, EscalationContinuesUpToAParentThatDecides) {
  stage s;
  const auto top = s.enter("top");  // restarts
  ref<player> low;
  ref<player> mid;
  s.tell(top, [&](player& me) { mid = me.hire("mid", named("", always(directive::escalate))); });
  s.tell(mid, [&](player& me) { low = me.hire("low", named("", always(directive::escalate))); });
  ref<player> kid;
  s.tell(low, [&](player& me) { kid = me.hire("kid"); });
  s.took();
  s.fall(kid);
  EXPECT_EQ(s.failures(), "kid:escalate low:escalate mid:restart");
  EXPECT_EQ(s.took(), "kid! -kid low! -low mid! -mid +mid");
  EXPECT_TRUE(low.is_terminated());
  EXPECT_FALSE(mid.is_terminated());
  EXPECT_FALSE(top.is_terminated());
}

TEST(supervision_test, AtTheTopEscalationStops) {
  stage s(always(directive::escalate));
  const auto a = s.enter("a");
  s.fall(a);
  EXPECT_EQ(s.failures(), "a:stop");
  EXPECT_TRUE(a.is_terminated());
}

TEST(supervision_test, ResumedByTheGrandparentTheChildrenContinue) {
  stage s(always(directive::resume));
  const auto boss = s.enter("boss", always(directive::escalate));
  const players kids = s.hire(boss, {"a", "b"});
  s.tell(kids[0], [](player& me) { me.life = 3; });
  s.took();
  ASSERT_TRUE(kids[0].send(act{&falls}));
  ASSERT_TRUE(kids[0].send(say{"next"}));
  s.run();
  EXPECT_EQ(s.failures(), "a:escalate boss:resume");
  s.tell(kids[0], [](player& me) { me.note(std::to_string(me.life)); });
  EXPECT_EQ(s.took(), "a:next 3");
}

TEST(supervision_test, AResumedActorEndsLaterAsStopped) {
  stage s(always(directive::resume));
  const auto boss = s.enter("boss", always(directive::escalate));
  const players kids = s.hire(boss, {"a"});
  s.fall(kids[0]);
  kids[0].stop();
  s.run();
  const actor_end end = kids[0].ended().get();
  EXPECT_EQ(end.why, end_reason::stopped);
  EXPECT_EQ(end.error, nullptr);
}

TEST(supervision_test, FailuresThatQueueUpDuringAnEscalationAreEachDecided) {
  stage s(always(directive::resume));
  const auto boss = s.enter("boss", always(directive::escalate));
  const players kids = s.hire(boss, {"a", "b", "c"});
  for (const auto& k : kids) ASSERT_TRUE(k.send(act{&falls}));
  s.run();
  EXPECT_EQ(s.system.stats().failures, 6U);  // each child, and the boss for each
  for (const auto& k : kids) s.tell(k, [](player& me) { me.note("on"); });
  EXPECT_EQ(s.took(), "+boss +a +b +c on on on");
}

// ---- how often

TEST(supervision_test, TooManyRestartsWithinTheWindowEscalate) {
  for (const strategy kind :
       {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    stage s(always(directive::stop));
    supervision few;
    few.strategy = kind;
    few.restarts_max = 2;
    few.within = 5s;
    const auto boss = s.enter("boss", few);
    const players kids = s.hire(boss, {"a", "b", "c"});
    s.fall(kids[1]);
    s.fall(kids[1]);
    EXPECT_EQ(s.failures(), "b:restart b:restart");
    s.fall(kids[1]);
    EXPECT_EQ(s.failures(), "b:escalate boss:stop");
    EXPECT_TRUE(boss.is_terminated());
    for (const auto& kid : kids) EXPECT_TRUE(kid.is_terminated());
  }
}

TEST(supervision_test, RestartsOutsideOfTheWindowDoNotCount) {
  stage s(always(directive::stop));
  supervision few;
  few.restarts_max = 1;
  few.within = 5s;
  const auto boss = s.enter("boss", few);
  const players kids = s.hire(boss, {"a"});
  for (int i = 0; i < 10; ++i) {
    s.fall(kids[0]);
    s.advance(5s + 1ns);
  }
  EXPECT_EQ(s.system.stats().restarts, 10U);
  s.fall(kids[0]);
  s.advance(5s);
  s.fall(kids[0]);  // still inside
  EXPECT_TRUE(boss.is_terminated());
}

TEST(supervision_test, NoRestartsAtAllMeansTheFirstFailureEscalates) {
  supervision none;
  none.restarts_max = 0;
  stage s(none);
  const auto a = s.enter("a");
  s.fall(a);
  EXPECT_TRUE(a.is_terminated());
  EXPECT_EQ(s.system.stats().restarts, 0U);
}

TEST(supervision_test, ARestartOfASupervisorResetsItsCount) {
  stage s;
  supervision few;
  few.restarts_max = 1;
  ref<player> kid;
  part boss{.name = "boss", .at_start = [&](player& me) { kid = me.hire("kid"); }};
  (void)s.enter(boss, few);
  s.fall(kid);
  s.fall(kid);
  EXPECT_EQ(s.failures(), "kid:restart kid:escalate boss:restart");
  s.fall(kid);  // the new child of the restarted boss
  EXPECT_EQ(s.failures(), "kid:restart");
}

// ---- backoff

supervision backing_off() {
  supervision slow;
  slow.backoff_first = 1s;
  slow.backoff_max = 4s;
  slow.within = 60s;
  slow.restarts_max = 100;
  return slow;
}

TEST(supervision_test, ABackoffDoublesUpToItsMaximum) {
  stage s(backing_off());
  const auto a = s.enter("a");
  s.took();
  for (const auto wait : {1s, 2s, 4s, 4s, 4s}) {
    s.fall(a);
    EXPECT_EQ(s.took(), "a! -a");
    s.advance(wait - 1ns);
    EXPECT_EQ(s.took(), "");
    s.advance(1ns);
    EXPECT_EQ(s.took(), "+a");
  }
}

TEST(supervision_test, ABackoffIsResetAfterAWindowWithoutAFailure) {
  stage s(backing_off());
  const auto a = s.enter("a");
  s.fall(a);
  s.advance(1s);
  s.fall(a);
  s.advance(2s);
  s.took();
  s.advance(60s + 1ns);
  s.fall(a);
  s.advance(1s);
  EXPECT_EQ(s.took(), "a! -a +a");
}

TEST(supervision_test, MessagesGatherDuringABackoff) {
  stage s(backing_off());
  const auto a = s.enter("a");
  s.fall(a);
  s.took();
  ASSERT_TRUE(a.send(say{"late"}));
  s.run();
  EXPECT_EQ(s.took(), "");
  EXPECT_EQ(a.queued(), 1U);
  s.advance(1s);
  EXPECT_EQ(s.took(), "+a a:late");
}

TEST(supervision_test, ABackoffOfOneChildDoesNotDelayTheOthers) {
  stage s;
  const auto boss = s.enter("boss", backing_off());
  const players kids = s.hire(boss, {"a", "b"});
  s.fall(kids[0]);
  s.advance(500ms);
  s.fall(kids[1]);
  s.took();
  s.advance(500ms);
  EXPECT_EQ(s.took(), "+a");
  s.advance(500ms);
  EXPECT_EQ(s.took(), "+b");
}

TEST(supervision_test, AGroupBacksOffTogether) {
  stage s;
  supervision slow = backing_off();
  slow.strategy = strategy::one_for_all;
  const auto boss = s.enter("boss", slow);
  const players kids = s.hire(boss, {"a", "b"});
  s.took();
  s.fall(kids[1]);
  EXPECT_EQ(s.took(), "b! -b a! -a");
  s.advance(1s);
  EXPECT_EQ(s.took(), "+a +b");
}

TEST(supervision_test, AnActorInItsBackoffCanBeStopped) {
  stage s(backing_off());
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(act{&falls}));
  ASSERT_TRUE(a.send(say{"never"}));
  s.run();
  a.stop();
  s.run();
  EXPECT_TRUE(a.is_terminated());
  EXPECT_EQ(s.dead_letters(), "say");
  s.took();
  s.advance(10s);
  EXPECT_EQ(s.took(), "");
}

TEST(supervision_test, AGroupInItsBackoffEndsWhenAllItsMembersAreStopped) {
  stage s;
  supervision slow = backing_off();
  slow.strategy = strategy::one_for_all;
  const auto boss = s.enter("boss", slow);
  const players kids = s.hire(boss, {"a", "b"});
  s.fall(kids[0]);
  kids[0].stop();
  kids[1].stop();
  s.run();
  EXPECT_TRUE(kids[1].is_terminated());
  const players later = s.hire(boss, {"c"});
  s.took();
  s.fall(later[0]);
  s.advance(999ms);
  EXPECT_EQ(s.took(), "c! -c");
  s.advance(1ms);
  EXPECT_EQ(s.took(), "+c");
}

TEST(supervision_test, AHugeMaximumBackoffDoesNotOverflow) {
  supervision slow = backing_off();
  slow.backoff_first = std::chrono::hours(24 * 365);
  slow.backoff_max = std::chrono::nanoseconds::max();
  slow.within = std::chrono::nanoseconds::max();
  stage s(slow);
  const auto a = s.enter("a");
  for (int i = 0; i < 4; ++i) {
    s.fall(a);
    s.took();
    s.advance(std::chrono::hours(24 * 365) * (1 << i) - 1ns);
    EXPECT_EQ(s.took(), "");
    s.advance(1ns);
    EXPECT_EQ(s.took(), "+a");
  }
  supervision never = slow;
  never.backoff_first = std::chrono::nanoseconds::max();
  const auto boss = s.enter("boss", never);
  const players kids = s.hire(boss, {"kid"});
  s.fall(kids[0]);
  s.took();
  s.advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(s.took(), "");
  kids[0].stop();
  s.run();
  EXPECT_TRUE(kids[0].is_terminated());
}

}  // namespace
}  // namespace sluice::supervision_test
