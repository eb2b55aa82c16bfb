// Kinds of children: permanent, transient and temporary, and what each is restarted after.
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::child_kind_test {
namespace {

using namespace std::chrono_literals;
using testing::player;
using testing::say;
using testing::stage;

class child_kind_test : public ::testing::Test {
 protected:
  ref<player> hire(const ref<player>& by, const std::string& name, child_kind kind) {
    ref<player> hired;
    s.tell(by, [&](player& me) { hired = me.hire(name, {.kind = kind}); });
    return hired;
  }
  // A boss with one of each kind, in this order.
  void open(strategy scope) {
    boss = s.enter("boss", {.strategy = scope});
    p = hire(boss, "p", child_kind::permanent);
    x = hire(boss, "x", child_kind::temporary);
    t = hire(boss, "t", child_kind::transient);
    (void)s.took();
  }
  std::string below(const ref<player>& who) {
    std::string names;
    for (const actor_child& c : who.children()) names += c.name;
    return names;
  }

  stage s;
  ref<player> boss;
  ref<player> p;
  ref<player> x;
  ref<player> t;
};

// ---- one at a time

TEST_F(child_kind_test, AFailureRestartsAllKindsButTheTemporary) {
  open(strategy::one_for_one);
  s.fall(p);
  s.fall(t);
  s.fall(x);
  EXPECT_EQ(s.took(), "p! -p +p t! -t +t x! -x");
  EXPECT_EQ(s.failures(), "p:restart t:restart x:stop");
  EXPECT_EQ(below(boss), "pt");
  EXPECT_EQ(x.ended().get().why, end_reason::failed);
}

TEST_F(child_kind_test, AnEndByItselfRestartsOnlyThePermanent) {
  open(strategy::one_for_one);
  for (const auto& each : {p, t, x}) s.tell(each, [](player& me) { me.stop_self(); });
  EXPECT_EQ(s.took(), "p! -p +p t! -t x! -x");
  EXPECT_EQ(s.failures(), "p:restart");
  s.tell(p, [](player& me) { me.close_self(); });
  EXPECT_EQ(s.took(), "p! -p +p");
  EXPECT_EQ(below(boss), "p");
}

TEST_F(child_kind_test, APermanentChildEndedByAnotherPartyIsRestartedWithItsMailbox) {
  open(strategy::one_for_one);
  ASSERT_TRUE(p.send(say{"one"}));
  p.stop();
  ASSERT_TRUE(p.send(say{"two"}));
  s.run();
  EXPECT_EQ(s.took(), "p! -p +p p:one p:two");
  p.close();
  ASSERT_TRUE(p.send(say{"three"})) << "it is not closed";
  s.run();
  EXPECT_EQ(s.took(), "p! -p +p p:three");
  s.tell(t, [&](player&) { p.stop(); });
  EXPECT_EQ(s.took(), "p! -p +p");
}

TEST_F(child_kind_test, APermanentChildEndsWithItsParentAndWhenItsParentEndsIt) {
  open(strategy::one_for_one);
  const auto second = hire(boss, "q", child_kind::permanent);
  (void)s.took();
  s.tell(boss, [&](player&) { p.stop(); });
  EXPECT_EQ(s.took(), "p! -p");
  EXPECT_TRUE(p.is_terminated());
  boss.close();
  s.run();
  EXPECT_EQ(s.took(), "q! -q t! -t x! -x boss! -boss");
  EXPECT_TRUE(second.is_terminated());
  EXPECT_EQ(s.failures(), "");
}

TEST_F(child_kind_test, APermanentActorOfTheSystemIsEndedFromOutside) {
  const auto top = s.system.spawn_with<player>({.name = "top", .kind = child_kind::permanent},
                                               testing::part{.name = "top", .log = &s.log});
  s.tell(top, [](player& me) { me.stop_self(); });
  EXPECT_EQ(s.took(), "+top top! -top +top");
  top.stop();
  s.run();
  EXPECT_EQ(s.took(), "top! -top");
  EXPECT_TRUE(top.is_terminated());
}

TEST_F(child_kind_test, TheEndOfAPermanentChildIsAFailureWithItsReason) {
  bool was_notified = false;
  supervision rules;
  rules.decide = [&](const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const actor_error& e) {
      was_notified = e.why() == actor_error::unexpected_end;
    }
    return directive::stop;
  };
  boss = s.enter("boss", rules);
  p = hire(boss, "p", child_kind::permanent);
  p.stop();
  s.run();
  EXPECT_TRUE(was_notified);
  EXPECT_EQ(s.took(), "+boss +p p! -p");
  EXPECT_EQ(p.ended().get().why, end_reason::failed);
}

TEST_F(child_kind_test, APermanentChildThatEndsTooOftenEscalates) {
  boss = s.enter("boss", {.restarts_max = 2, .within = 1h});
  p = hire(boss, "p", child_kind::permanent);
  for (int i = 0; i < 3; ++i) {
    p.stop();
    s.run();
  }
  EXPECT_EQ(s.failures(), "p:restart p:restart p:escalate boss:restart");
  EXPECT_TRUE(p.is_terminated());
}

TEST_F(child_kind_test, FailuresOfATemporaryChildAreNoRestarts) {
  boss = s.enter("boss", {.restarts_max = 1, .within = 1h});
  for (int i = 0; i < 5; ++i) s.fall(hire(boss, "x", child_kind::temporary));
  EXPECT_EQ(s.system.stats().restarts, 0U);
  t = hire(boss, "t", child_kind::transient);
  (void)s.failures();
  s.fall(t);
  EXPECT_EQ(s.failures(), "t:restart");
}

TEST_F(child_kind_test, ATemporaryChildIsResumedAndEscalatesAsAnyOther) {
  boss = s.enter("boss", {.action = directive::resume});
  x = hire(boss, "x", child_kind::temporary);
  (void)s.took();
  s.fall(x);
  s.tell(x, [](player& me) { me.note("goes on"); });
  EXPECT_EQ(s.took(), "goes on");
  const auto strict = s.enter("strict", {.action = directive::escalate});
  const auto y = hire(strict, "y", child_kind::temporary);
  (void)s.failures();
  s.fall(y);
  EXPECT_EQ(s.failures(), "y:escalate strict:restart");
}

// ---- in a round with siblings

TEST_F(child_kind_test, ARoundEndsItsTemporaryChildren) {
  open(strategy::one_for_all);
  s.fall(p);
  EXPECT_EQ(s.took(), "t! -t x! -x p! -p +p +t");
  EXPECT_EQ(below(boss), "pt");
  EXPECT_EQ(x.ended().get().why, end_reason::stopped);
  s.fall(t);
  EXPECT_EQ(s.took(), "t! -t p! -p +p +t");
}

TEST_F(child_kind_test, ARoundLeavesAnOlderTemporaryChild) {
  open(strategy::rest_for_one);
  s.fall(t);
  EXPECT_EQ(s.took(), "t! -t +t");
  EXPECT_EQ(below(boss), "pxt");
  p.stop();
  s.run();
  EXPECT_EQ(s.took(), "t! -t x! -x p! -p +p +t");
}

TEST_F(child_kind_test, AFailingTemporaryChildStartsNoRound) {
  open(strategy::one_for_all);
  s.fall(x);
  EXPECT_EQ(s.took(), "x! -x");
  EXPECT_EQ(below(boss), "pt");
}

TEST_F(child_kind_test, ATemporaryChildThatFailsDuringARoundEndsInIt) {
  manual_executor aside;
  boss = s.enter("boss", {.strategy = strategy::one_for_all});
  p = hire(boss, "p", child_kind::permanent);
  x = hire(boss, "x", child_kind::temporary);
  s.tell(boss, [&](player& me) { t = me.hire("t", {.on = &aside}); });
  (void)s.took();
  s.fall(p);  // the round waits for t, which gets no turn
  s.fall(x);
  EXPECT_EQ(s.failures(), "p:restart x:stop");
  aside.run_all();
  s.run();
  aside.run_all();
  s.run();
  EXPECT_EQ(s.took(), "t! -t x! -x p! -p +p +t");
  EXPECT_EQ(x.ended().get().why, end_reason::failed);
  EXPECT_EQ(below(boss), "pt");
  boss.stop();
  s.run();
  aside.run_all();
  s.run();
}

TEST_F(child_kind_test, ARoundOfOnlyTemporaryChildrenEndsAtOnce) {
  boss = s.enter("boss", {.strategy = strategy::rest_for_one, .backoff_first = 1s});
  t = hire(boss, "t", child_kind::transient);
  x = hire(boss, "x", child_kind::temporary);
  (void)s.took();
  s.fall(t);
  s.tell(boss, [&](player&) { t.stop(); });
  EXPECT_EQ(s.took(), "x! -x t! -t");
  EXPECT_EQ(below(boss), "");
  const auto next = hire(boss, "n", child_kind::transient);
  s.fall(next);
  s.advance(1s);
  EXPECT_EQ(s.took(), "+n n! -n +n") << "the supervisor handles messages";
}

// ---- many threads

TEST(child_kind_stress_test, EndsAndFailuresFromManyThreadsLeaveNoActorBehind) {
  constexpr int rounds = 300;
  for (const strategy scope : {strategy::one_for_one, strategy::one_for_all}) {
    work_stealing_pool pool({.threads = 2});
    actor_system_options o;
    o.on_failure = [](const actor_failure&) {};
    actor_system system(pool, o);
    testing::journal log;
    const auto boss = system.spawn_with<player>(
        testing::named("boss", {.strategy = scope, .restarts_max = 1'000'000}),
        testing::part{.name = "boss", .log = &log});
    std::vector<ref<player>> all;
    latch hired(1);
    ASSERT_TRUE(boss.send(testing::act{[&](player& me) {
      for (const child_kind kind :
           {child_kind::permanent, child_kind::temporary, child_kind::transient}) {
        all.push_back(me.hire("c", {.kind = kind}));
      }
      hired.count_down();
    }}));
    hired.wait();
    {
      const auto trouble = [&] {
        for (int i = 0; i < rounds; ++i) {
          all[0].stop();
          all[0].close();
          (void)all[2].try_send(testing::act{&testing::falls});
          if (i == rounds / 2) (void)all[1].try_send(testing::act{&testing::falls});
        }
      };
      const std::jthread one(trouble);
      const std::jthread other(trouble);
    }
    EXPECT_FALSE(all[0].is_terminated()) << "it is permanent";
    EXPECT_FALSE(all[2].is_terminated()) << "it is restarted";
    EXPECT_TRUE(all[0].ask(testing::question{}).get() == "c");
    boss.stop();
    (void)boss.ended().get();
    for (const auto& each : all) EXPECT_TRUE(each.is_terminated());
  }
}

}  // namespace
}  // namespace sluice::child_kind_test
