// Restarts with further failures: constructors that throw, siblings and supervisors that fail or
// are stopped meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::restart_test {
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
using testing::urgent_say;

using players = std::vector<ref<player>>;

supervision as(strategy kind, directive action = directive::restart) {
  supervision s;
  s.strategy = kind;
  s.action = action;
  return s;
}

// A part whose constructor throws `times` times, from its second call on.
part reluctant(const std::string& name, int times, int& made) {
  return part{.name = name, .at_start = [&made, times](player& me) {
                if (++made > 1 && made <= 1 + times) falls(me);
              }};
}

// ---- constructors that throw

TEST(restart_test, AConstructorThatThrowsAtSpawnThrowsThereAndItsChildrenEnd) {
  stage s;
  ref<player> kid;
  EXPECT_THROW((void)s.enter(part{.name = "a",
                                  .at_start =
                                      [&](player& me) {
                                        kid = me.hire("kid");
                                        falls(me);
                                      }}),
               std::runtime_error);
  s.run();
  EXPECT_EQ(s.took(), "+a +kid kid! -kid");
  EXPECT_EQ(s.failures(), "");  // the spawner got the exception
  EXPECT_TRUE(kid.is_terminated());
  EXPECT_EQ(s.system.stats().live, 0U);
}

TEST(restart_test, AChildThatThrowsAtSpawnFailsTheParentThatDoesNotCatch) {
  stage s;
  const auto boss = s.enter("boss");
  s.tell(boss, [](player& me) { (void)me.hire(part{.name = "kid", .at_start = &falls}); });
  EXPECT_EQ(s.failures(), "boss:restart");
  EXPECT_EQ(s.took(), "+boss +kid boss! -boss +boss");
  EXPECT_EQ(s.system.stats().live, 1U);
}

TEST(restart_test, AConstructorThatThrowsAtARestartIsAFailureThatCounts) {
  supervision few;
  few.restarts_max = 3;
  stage s(few);
  int made = 0;
  const auto a = s.enter(reluctant("a", 2, made));
  s.fall(a);
  EXPECT_EQ(s.failures(), "a:restart a:restart a:restart");
  EXPECT_EQ(made, 4);
  EXPECT_EQ(s.system.stats().restarts, 1U);
  EXPECT_FALSE(a.is_terminated());
  s.fall(a);  // one more than allowed
  EXPECT_TRUE(a.is_terminated());
}

TEST(restart_test, AnActorThatCannotBeConstructedEndsAfterAllItsRestarts) {
  supervision few;
  few.restarts_max = 5;
  stage s(few);
  int made = 0;
  const auto a = s.enter(reluctant("a", 1000, made));
  ASSERT_TRUE(a.send(act{&falls}));
  ASSERT_TRUE(a.send(say{"never"}));
  s.run();
  EXPECT_EQ(made, 6);
  EXPECT_TRUE(a.is_terminated());
  EXPECT_EQ(a.ended().get().why, end_reason::failed);
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(restart_test, ChildrenOfAConstructorThatThrewEndBeforeTheNextTry) {
  stage s;
  int made = 0;
  const auto a = s.enter(part{.name = "a", .at_start = [&](player& me) {
                                (void)me.hire("kid");
                                if (++made == 2) falls(me);
                              }});
  s.took();
  s.fall(a);
  EXPECT_EQ(s.took(), "kid! -kid a! -a +a +kid kid! -kid +a +kid");
  EXPECT_EQ(s.system.stats().live, 2U);
}

TEST(restart_test, ResumeEndsAnActorWithoutAState) {
  stage s;
  supervision odd;
  int failures = 0;
  odd.decide = [&](const std::exception_ptr&) {
    return ++failures == 1 ? directive::restart : directive::resume;
  };
  const auto boss = s.enter("boss", odd);
  int made = 0;
  ref<player> kid;
  s.tell(boss, [&](player& me) { kid = me.hire(reluctant("kid", 1, made)); });
  ASSERT_TRUE(kid.send(act{&falls}));
  ASSERT_TRUE(kid.send(say{"never"}));
  s.run();
  EXPECT_EQ(s.failures(), "kid:restart kid:stop");
  EXPECT_TRUE(kid.is_terminated());
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(restart_test, ResumeOfASupervisorEndsTheChildWithoutAState) {
  supervision odd;
  stage s(as(strategy::one_for_one, directive::resume));
  supervision once;
  once.restarts_max = 1;
  const auto boss = s.enter("boss", once);
  int made = 0;
  ref<player> kid;
  s.tell(boss, [&](player& me) { kid = me.hire(reluctant("kid", 1, made)); });
  ASSERT_TRUE(kid.send(act{&falls}));
  ASSERT_TRUE(kid.send(say{"never"}));
  s.run();
  EXPECT_EQ(s.failures(), "kid:restart kid:escalate boss:resume");
  EXPECT_TRUE(kid.is_terminated());
  EXPECT_FALSE(boss.is_terminated());
}

// ---- siblings

TEST(restart_test, AnotherChildThatCannotBeConstructedInARoundStartsTheNextRound) {
  for (const strategy kind : {strategy::one_for_all, strategy::rest_for_one}) {
    stage s;
    const auto boss = s.enter("boss", as(kind));
    int made = 0;
    ref<player> a;
    s.tell(boss, [&](player& me) {
      a = me.hire("a");
      (void)me.hire(reluctant("b", 1, made));
      (void)me.hire("c");
    });
    s.took();
    s.fall(a);
    const std::string first = "c! -c b! -b a! -a +a +b +c";
    const std::string second =
        kind == strategy::one_for_all ? "c! -c a! -a +a +b +c" : "c! -c +b +c";
    EXPECT_EQ(s.took(), first + " " + second);
    EXPECT_EQ(s.failures(), "a:restart b:restart");
    EXPECT_EQ(s.system.stats().live, 4U);
  }
}

TEST(restart_test, ASiblingThatFailsBeforeARoundStopsItIsStopped) {
  stage s;
  const auto boss = s.enter("boss", as(strategy::one_for_all));
  const players kids = s.hire(boss, {"a", "b", "c"});
  s.took();
  for (const auto& k : kids) ASSERT_TRUE(k.send(act{&falls}));
  s.run();
  EXPECT_EQ(s.took(), "c! -c b! -b a! -a +a +b +c");
  for (const auto& k : kids) s.tell(k, [](player& me) { me.note("on"); });
  EXPECT_EQ(s.took(), "on on on");
}

TEST(restart_test, TwoChildrenThatFailToConstructInOneRoundAreConstructedInTheNext) {
  stage s;
  const auto boss = s.enter("boss", as(strategy::one_for_all));
  int made_a = 0;
  int made_b = 0;
  ref<player> a;
  ref<player> b;
  s.tell(boss, [&](player& me) {
    a = me.hire(reluctant("a", 1, made_a));
    b = me.hire(reluctant("b", 1, made_b));
  });
  s.took();
  s.fall(a);
  EXPECT_EQ(s.took(), "b! -b a! -a +a +b +a +b");
  EXPECT_EQ(s.failures(), "a:restart a:restart b:restart");
  for (const auto& k : {a, b}) s.tell(k, [](player& me) { me.note("on"); });
  EXPECT_EQ(s.took(), "on on");
}

TEST(restart_test, EveryOrderOfFailuresAndRoundsEndsWithAllChildrenRunning) {
  // The executor has only a few actors queued. The bits of n decide which one fails when.
  for (unsigned n = 0; n < 4096; ++n) {
    stage s;
    supervision all = as(strategy::one_for_all);
    all.restarts_max = 1000;
    const auto boss = s.enter("boss", all);
    const players kids = s.hire(boss, {"a", "b", "c"});
    for (unsigned bits = n; bits != 0; bits >>= 2) {
      if (const unsigned chosen = bits & 3; chosen > 0) {
        ASSERT_TRUE(kids[chosen - 1].send(act{&falls}));
      }
      (void)s.executor.run_one();
    }
    s.run();
    s.took();
    for (const auto& k : kids) s.tell(k, [](player& me) { me.note("on"); });
    ASSERT_EQ(s.took(), "on on on") << n;
  }
}

TEST(restart_test, ASiblingThatIsStoppedDuringARoundIsLeftOut) {
  for (std::size_t which = 0; which < 3; ++which) {
    for (int steps = 0; steps < 24; ++steps) {
      stage s;
      const auto boss = s.enter("boss", as(strategy::one_for_all));
      const players kids = s.hire(boss, {"a", "b", "c"});
      ASSERT_TRUE(kids[1].send(act{&falls}));
      for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
      kids[which].stop();
      s.run();
      EXPECT_TRUE(kids[which].is_terminated());
      for (std::size_t i = 0; i < 3; ++i) {
        if (i == which) continue;
        s.took();
        s.tell(kids[i], [](player& me) { me.note("on"); });
        ASSERT_EQ(s.took(), "on") << which << " after " << steps;
      }
      s.fall(kids[which == 0 ? 1 : 0]);  // the next round ends as well
      EXPECT_EQ(s.system.stats().live, 3U);
    }
  }
}

TEST(restart_test, AStopOfAFailedChildTakesEffectWithEveryDecision) {
  for (const directive action : {directive::resume, directive::restart, directive::stop}) {
    for (int steps = 0; steps < 12; ++steps) {
      stage s(as(strategy::one_for_one, action));
      const auto a = s.enter("a");
      ASSERT_TRUE(a.send(act{&falls}));
      for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
      a.stop();
      s.run();
      ASSERT_TRUE(a.is_terminated()) << to_string(action) << " after " << steps;
      EXPECT_EQ(s.system.stats().live, 0U);
    }
  }
}

TEST(restart_test, ACloseOfAFailedChildHandlesItsQueuedMessages) {
  for (int steps = 0; steps < 12; ++steps) {
    stage s;
    const auto a = s.enter("a");
    ASSERT_TRUE(a.send(act{&falls}));
    ASSERT_TRUE(a.send(say{"last"}));
    for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
    a.close();
    s.run();
    EXPECT_TRUE(a.is_terminated());
    const std::string all = s.took();
    EXPECT_NE(all.find("a:last"), std::string::npos) << all;
    EXPECT_EQ(s.dead_letters(), "");
  }
}

// ---- supervisors

TEST(restart_test, ASupervisorThatFailsDuringARoundAndIsResumedFinishesTheRound) {
  for (const strategy kind : {strategy::one_for_one, strategy::one_for_all}) {
    for (int steps = 0; steps < 24; ++steps) {
      stage s(as(strategy::one_for_one, directive::resume));
      const auto boss = s.enter("boss", as(kind));
      const players kids = s.hire(boss, {"a", "b"});
      ASSERT_TRUE(kids[0].send(act{&falls}));
      for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
      s.fall(boss);
      s.took();
      for (const auto& k : kids) s.tell(k, [](player& me) { me.note("on"); });
      ASSERT_EQ(s.took(), "on on") << "after " << steps;
      EXPECT_EQ(s.system.stats().restarts, kind == strategy::one_for_one ? 1U : 2U);
    }
  }
}

TEST(restart_test, ASupervisorThatIsRestartedDuringARoundEndsItsChildren) {
  for (int steps = 0; steps < 24; ++steps) {
    stage s;
    const auto boss = s.enter("boss", as(strategy::one_for_all));
    const players kids = s.hire(boss, {"a", "b"});
    ASSERT_TRUE(kids[0].send(act{&falls}));
    for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
    s.fall(boss);
    EXPECT_TRUE(kids[0].is_terminated());
    EXPECT_TRUE(kids[1].is_terminated());
    EXPECT_FALSE(boss.is_terminated());
    EXPECT_EQ(s.system.stats().live, 1U);
  }
}

TEST(restart_test, AStopOrCloseDuringARoundEndsAllActors) {
  for (const bool closes : {false, true}) {
    for (const auto backoff : {0s, 1s}) {
      for (int steps = 0; steps < 24; ++steps) {
        stage s;
        supervision all = as(strategy::one_for_all);
        all.backoff_first = backoff;
        const auto boss = s.enter("boss", all);
        const players kids = s.hire(boss, {"a", "b"});
        ASSERT_TRUE(kids[0].send(act{&falls}));
        for (int i = 0; i < steps; ++i) (void)s.executor.run_one();
        if (closes) {
          boss.close();
        } else {
          boss.stop();
        }
        s.run();
        ASSERT_TRUE(boss.is_terminated()) << "after " << steps;
        EXPECT_EQ(s.system.stats().live, 0U);
      }
    }
  }
}

TEST(restart_test, ASupervisorRepliesWhileItsChildCannotBeConstructed) {
  for (const strategy kind :
       {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    stage s;
    supervision patient = as(kind);
    patient.restarts_max = 1'000'000;
    const auto boss = s.enter("boss", patient);
    int made = 0;
    ref<player> kid;
    s.tell(boss, [&](player& me) { kid = me.hire(reluctant("kid", 1'000'000, made)); });
    ASSERT_TRUE(kid.send(act{&falls}));
    s.executor.run_some(1000);
    EXPECT_GT(made, 50);
    auto asked = boss.ask(question{});
    s.executor.run_some(20);
    ASSERT_TRUE(asked.is_ready());
    boss.stop();
    s.run();
    EXPECT_TRUE(kid.is_terminated());
  }
}

TEST(restart_test, ASupervisorInItsBackoffHasStoppedItsChildren) {
  supervision slow;
  slow.backoff_first = 5s;
  stage s(slow);
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a"});
  s.took();
  s.fall(boss);
  EXPECT_EQ(s.took(), "a! -a boss! -boss");
  EXPECT_TRUE(kids[0].is_terminated());
  s.advance(5s);
  EXPECT_EQ(s.took(), "+boss");
}

TEST(restart_test, AnUrgentMessageOfTheConstructorIsFirstAfterEachRestart) {
  stage s;
  const auto anna = s.enter(part{.name = "anna", .at_start = [](player& me) {
                                   EXPECT_TRUE(me.self().send(urgent_say{"continue"}));
                                 }});
  ASSERT_TRUE(anna.send(act{&falls}));
  ASSERT_TRUE(anna.send(say{"waited"}));
  s.run();
  EXPECT_EQ(s.took(), "+anna anna!!continue anna! -anna +anna anna!!continue anna:waited");
}

TEST(restart_test, AFailureInStoppingIsReportedAndTheRestartContinues) {
  stage s;
  const auto a = s.enter(part{.name = "a", .at_stop = &falls});
  s.fall(a);
  EXPECT_EQ(s.took(), "+a a! -a +a");
  EXPECT_EQ(s.failures(), "a:restart a:restart");
  EXPECT_FALSE(a.is_terminated());
}

TEST(restart_test, AChildSpawnedInStoppingIsNeverStarted) {
  stage s;
  std::vector<ref<player>> late;
  const auto a =
      s.enter(part{.name = "a", .at_stop = [&](player& me) { late.push_back(me.hire("late")); }});
  s.fall(a);
  a.stop();
  s.run();
  ASSERT_EQ(late.size(), 2U);
  for (const auto& l : late) {
    EXPECT_TRUE(l.is_terminated());
    EXPECT_EQ(l.send(say{"hello"}), status::closed);
    EXPECT_EQ(l.ended().get().why, end_reason::stopped);
  }
  EXPECT_EQ(s.system.stats().live, 0U);
  EXPECT_EQ(s.took(), "+a a! -a +a a! -a");
}

// ---- with threads

TEST(restart_test, RoundsEndWhileAllChildrenFailFromSeveralThreads) {
  work_stealing_pool pool({.threads = 2});
  actor_system_options o;
  o.on_failure = [](const actor_failure&) {};
  testing::journal log;
  for (const strategy kind :
       {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    actor_system system(pool, o);
    supervision all = as(kind);
    all.restarts_max = 1'000'000;
    const auto boss =
        system.spawn_with<player>(named("boss", all), part{.name = "boss", .log = &log});
    players kids;
    ASSERT_TRUE(boss.ask(question{}).get() == "boss");
    std::atomic<int> hired{0};
    ASSERT_TRUE(boss.send(act{[&](player& me) {
      for (int i = 0; i < 8; ++i) kids.push_back(me.hire(std::to_string(i)));
      ++hired;
    }}));
    testing::eventually([&] { return hired == 1; });
    std::vector<std::jthread> throwers;
    for (unsigned t = 0; t < 2; ++t) {
      throwers.emplace_back([&kids, t] {
        for (unsigned i = 0; i < 2000; ++i) {
          EXPECT_TRUE(kids[(i * 3 + t) % 8].send(act{&falls}));
          if (i % 16 == 0) {
            EXPECT_EQ(kids[i % 8].ask(question{}).get(), std::to_string(i % 8));
          }
        }
      });
    }
    throwers.clear();
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(kids[i].ask(question{}).get(), std::to_string(i));
    }
    EXPECT_GE(system.stats().failures, 4000U);
    log.take();
  }
}

}  // namespace
}  // namespace sluice::restart_test
