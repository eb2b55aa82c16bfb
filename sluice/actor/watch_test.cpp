// Death watches and links.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::watch_test {
namespace {

using testing::act;
using testing::falls;
using testing::journal;
using testing::named;
using testing::part;
using testing::player;
using testing::say;
using testing::stage;

using players = std::vector<ref<player>>;

supervision always(directive action) {
  supervision s;
  s.action = action;
  return s;
}

// ---- watch

TEST(watch_test, AWatcherIsNotifiedOfTheActorAndTheReason) {
  stage s(always(directive::stop));
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.tell(w, [&](player& me) {
    me.notes_end_of(a);
    me.notes_end_of(b);
  });
  s.took();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a w:a-stopped");
  s.fall(b);
  EXPECT_EQ(s.took(), "b! -b w:b-failed");
}

// An ending actor takes control calls until it is terminated, and notifies their watchers after
// that.
TEST(watch_test, AWatchThatBeginsDuringTheEndIsNotifiedOnce) {
  stage s;
  manual_executor aside;
  const auto boss = s.enter("boss");
  const auto w = s.enter("w");
  ref<player> a;
  const auto watch_it = [&] {
    for (const auto& who : {w, boss}) s.tell(who, [&](player& me) { me.notes_end_of(a); });
  };
  s.tell(boss, [&](player& me) {
    a = me.hire(part{.name = "a", .at_stop = [&](player&) { watch_it(); }}, {.on = &aside});
  });
  s.took();
  a.stop();
  aside.run_all();
  s.run();
  EXPECT_EQ(s.took(), "a! -a w:a-stopped boss:a-stopped");
  EXPECT_EQ(boss.child_count(), 0U);
}

TEST(watch_test, WatchesAndPipesAreAdmittedToAFullMailbox) {
  for (const overflow when_full : {overflow::reject, overflow::drop_newest, overflow::drop_oldest,
                                   overflow::latest, overflow::block}) {
    stage s;
    manual_executor aside;
    actor_options small = named("a");
    small.mailbox = {.capacity = 1, .overflow = when_full};
    small.on = &aside;
    const auto a = s.system.spawn_with<player>(small, part{.name = "a", .log = &s.log});
    const auto b = s.enter("b");
    promise<std::string> p;
    ASSERT_TRUE(a.send(act{[&](player& me) {
      me.notes_end_of(b);
      me.pipe(p.get_future(), [](const std::string& text) { return say{text}; });
    }}));
    aside.run_all();
    s.took();
    ASSERT_TRUE(a.send(say{"first"}));
    b.stop();
    s.run();
    p.set_value("piped");
    EXPECT_EQ(a.queued(), 1U) << "they do not count";
    // The turn takes control calls first, and then handles messages in the order of their arrival.
    aside.run_all();
    EXPECT_EQ(s.took(), "b! -b a:first a:b-stopped a:piped") << to_string(when_full);
    EXPECT_EQ(s.dead_letters(), "") << to_string(when_full);
    a.stop();
    aside.run_all();
  }
}

TEST(watch_test, AWatchOfATerminatedActorNotifiesAtOnce) {
  stage s;
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  a.stop();
  s.run();
  s.took();
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  EXPECT_EQ(s.took(), "w:a-stopped");
}

TEST(watch_test, ARestartIsNoEnd) {
  stage s;
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  s.took();
  s.fall(a);
  EXPECT_EQ(s.took(), "a! -a +a");
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a w:a-stopped");
}

TEST(watch_test, AParentMayWatchItsChild) {
  stage s;
  const auto boss = s.enter("boss");
  s.tell(boss, [](player& me) {
    const auto kid = me.hire("kid");
    me.notes_end_of(kid);
    kid.stop();
  });
  EXPECT_EQ(s.took(), "+boss +kid kid! -kid boss:kid-stopped");
}

TEST(watch_test, AParentMayEndWithItsLastChild) {
  stage s;
  const auto boss = s.enter("boss");
  const auto hired = s.hire(boss, {"anna", "bob"});
  s.tell(boss, [&](player& me) {
    for (const auto& each : hired) {
      me.watch(each, [](const actor_end&) {
        return act{[](player& p) {
          if (p.child_count() == 0) p.stop_self();
        }};
      });
    }
  });
  hired[0].stop();
  s.run();
  EXPECT_FALSE(boss.is_terminated());
  hired[1].stop();
  s.run();
  EXPECT_TRUE(boss.is_terminated());
}

TEST(watch_test, ManyWatchersOfOneEndAndOneWatcherOfManyEnds) {
  stage s;
  const auto a = s.enter("a");
  const auto all = s.enter("all");
  players watchers;
  for (int i = 0; i < 100; ++i) {
    watchers.push_back(s.enter("w"));
    s.tell(watchers.back(), [&](player& me) { me.notes_end_of(a); });
    s.tell(all, [&](player& me) { me.notes_end_of(watchers.back()); });
  }
  s.took();
  a.stop();
  s.run();
  std::string events = s.took();
  std::string expected = "a! -a";
  for (int i = 0; i < 100; ++i) expected += " w:a-stopped";
  EXPECT_EQ(events, expected);
  for (const auto& w : watchers) w.stop();
  s.run();
  events = s.took();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = events.find("all:w-stopped", at)) != std::string::npos; ++at) {
    ++count;
  }
  EXPECT_EQ(count, 100U);
}

TEST(watch_test, ARestartedWatcherIsNotifiedOnceOfItsNewWatch) {
  stage s;
  const auto a = s.enter("a");
  const auto w = s.enter(part{.name = "w", .at_start = [&a](player& me) { me.notes_end_of(a); }});
  for (int i = 0; i < 8; ++i) s.fall(w);
  s.took();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a w:a-stopped");
}

TEST(watch_test, ARestartRemovesTheWatchesOfTheOldState) {
  stage s;
  const auto a = s.enter("a");
  const auto w = s.enter("w");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  s.fall(w);
  s.took();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a");
}

TEST(watch_test, TheConversionRunsInTheWatchersTurnAndMayThrow) {
  stage s;
  const auto a = s.enter("a");
  const auto w = s.enter("w");
  s.tell(w, [&](player& me) {
    me.watch(a, [&me](const actor_end&) -> say {
      me.note(detail::cell::current() == &me.self().cell_of() ? "mine" : "another's");
      falls(me);
    });
  });
  s.took();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a mine w! -w +w");
  EXPECT_EQ(s.failures(), "w:restart");
}

TEST(watch_test, ATerminatedWatcherIsNotNotifiedAndNothingIsLost) {
  stage s;
  const auto a = s.enter("a");
  const auto w = s.enter("w");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  w.stop();
  s.run();
  a.stop();
  s.run();
  EXPECT_EQ(s.dead_letters(), "");
}

TEST(watch_test, TheEndOfAWatcherDoesNotAffectTheWatched) {
  stage s(always(directive::stop));
  const auto a = s.enter("a");
  const auto w = s.enter("w");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  s.fall(w);
  EXPECT_TRUE(w.is_terminated());
  EXPECT_FALSE(a.is_terminated());
}

TEST(watch_test, EndedIsReadyAlsoAfterTheEnd) {
  stage s;
  const auto a = s.enter("a");
  auto early = a.ended();
  s.run();
  EXPECT_FALSE(early.is_ready());
  a.stop();
  s.run();
  EXPECT_EQ(early.get().id, a.id());
  EXPECT_EQ(a.ended().get().name, "a");
}

TEST(watch_test, AnActorWhoseConstructorThrewIsTerminatedForItsRefs) {
  stage s;
  ref<player> itself;
  try {
    (void)s.enter(part{.name = "a", .at_start = [&](player& me) {
                         itself = me.self();
                         falls(me);
                       }});
    FAIL();
  } catch (const std::runtime_error&) {
  }
  ASSERT_TRUE(itself.send(say{"left"}));  // it is not terminated before its turn
  s.run();
  EXPECT_EQ(itself.ended().get().why, end_reason::failed);
  EXPECT_EQ(s.dead_letters(), "say");
}

// ---- links

TEST(watch_test, ALinkWorksBothWays) {
  for (const bool first_falls : {true, false}) {
    stage s(always(directive::stop));
    const auto a = s.enter("a");
    const auto b = s.enter("b");
    s.tell(a, [&](player& me) { me.link(b); });
    s.fall(first_falls ? a : b);
    EXPECT_TRUE(a.is_terminated());
    EXPECT_TRUE(b.is_terminated());
    const actor_end end = (first_falls ? b : a).ended().get();
    EXPECT_EQ(end.why, end_reason::failed);
    try {
      std::rethrow_exception(end.error);
    } catch (const actor_error& e) {
      EXPECT_EQ(e.why(), actor_error::linked);
    }
  }
}

TEST(watch_test, ALinkIgnoresAnEndWithoutAFailure) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.tell(a, [&](player& me) { me.link(b); });
  b.stop();
  s.run();
  EXPECT_TRUE(b.is_terminated());
  EXPECT_FALSE(a.is_terminated());
  EXPECT_EQ(s.failures(), "");
}

TEST(watch_test, ALinkToAFailedActorFailsAtOnce) {
  stage s(always(directive::stop));
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.fall(b);
  s.tell(a, [&](player& me) { me.link(b); });
  EXPECT_TRUE(a.is_terminated());
}

TEST(watch_test, AChainOfLinksFailsAsAWhole) {
  stage s(always(directive::stop));
  players chain;
  for (int i = 0; i < 50; ++i) chain.push_back(s.enter(std::to_string(i)));
  for (std::size_t i = 1; i < chain.size(); ++i) {
    s.tell(chain[i], [&](player& me) { me.link(chain[i - 1]); });
  }
  s.fall(chain[25]);
  for (const auto& c : chain) EXPECT_TRUE(c.is_terminated());
  EXPECT_EQ(s.system.stats().failures, 50U);
}

TEST(watch_test, ALinkMadeAgainAfterEachRestartFailsItOnlyOnce) {
  supervision top;
  top.decide = [](const std::exception_ptr& e) {
    try {
      std::rethrow_exception(e);
    } catch (const std::logic_error&) {
      return directive::stop;
    } catch (...) {
      return directive::restart;
    }
  };
  stage s(top);
  const auto other = s.enter("other");
  const auto a = s.enter(part{.name = "a", .at_start = [&other](player& me) {
                                if (!other.is_terminated()) me.link(other);
                              }});
  for (int i = 0; i < 3; ++i) s.fall(a);
  s.failures();
  s.tell(other, [](player&) { throw std::logic_error("for good"); });
  EXPECT_EQ(s.failures(), "other:stop a:restart");
}

// Returns the number of watchers and links that an actor keeps. The actor is in no turn.
std::size_t kept_by(const ref<player>& who) {
  const detail::cell_extra& x = *who.cell_of().extra_if_any();
  return x.watchers.size() + x.watched.size();
}

TEST(watch_test, LinksAndWatchesOfEndedActorsAreNotKept) {
  stage s;
  const auto boss = s.enter("boss");
  std::size_t most = 0;
  std::vector<ref<player>> here;
  for (int i = 0; i < 10'000; ++i) {
    s.tell(boss, [&](player& me) {
      here.push_back(me.hire("kid"));
      me.link(here.back());
      me.notes_end_of(here.back());
    });
    if (here.size() < 10) continue;
    for (const auto& kid : here) kid.stop();
    s.run();
    here.clear();
    most = std::max(most, kept_by(boss));
    s.took();
  }
  EXPECT_EQ(kept_by(boss), 0U);
  EXPECT_EQ(most, 0U);
}

TEST(watch_test, CancelledEndFuturesAreRemoved) {
  stage s;
  const auto a = s.enter("a");
  for (int i = 0; i < 1000; ++i) {
    auto end = a.ended();
    s.run();
    end.cancel();
  }
  EXPECT_LT(kept_by(a), 20U);
  auto wanted = a.ended();
  a.stop();
  s.run();
  EXPECT_EQ(wanted.get().why, end_reason::stopped);
}

TEST(watch_test, ARemovedWatchIsNotNotified) {
  stage s;
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  s.tell(w, [&](player& me) {
    me.notes_end_of(a);
    EXPECT_TRUE(me.unwatch(a));
    EXPECT_FALSE(me.unwatch(a));
  });
  EXPECT_EQ(kept_by(a), 0U) << "nor kept";
  s.took();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a");
}

TEST(watch_test, AWatchCanBeRemovedWhileTheEndIsInFlight) {
  stage s;
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  s.took();
  ASSERT_TRUE(w.send(act{[&](player& me) {
    s.run();  // the other actor ends, and has notified this one
    ASSERT_TRUE(a.is_terminated());
    EXPECT_TRUE(me.unwatch(a));
  }}));
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "a! -a");
}

TEST(watch_test, ANotifiedWatchIsRemoved) {
  stage s;
  const auto w = s.enter("w");
  const auto a = s.enter("a");
  s.tell(w, [&](player& me) { me.notes_end_of(a); });
  a.stop();
  s.run();
  s.tell(w, [&](player& me) {
    EXPECT_FALSE(me.unwatch(a));
    me.notes_end_of(a);  // again: at once
  });
  EXPECT_EQ(s.took(), "+w +a a! -a w:a-stopped w:a-stopped");
}

TEST(watch_test, OnlyTheLinkSinceTheLastRestartIsKept) {
  supervision patient;
  patient.restarts_max = 1000;
  stage s(patient);
  const auto other = s.enter("other");
  const auto subject =
      s.enter(part{.name = "mine", .at_start = [&](player& me) { me.link(other); }});
  s.tell(other, [&](player& me) { me.link(subject); });
  for (int i = 0; i < 100; ++i) s.fall(subject);
  EXPECT_EQ(kept_by(other), 2U) << "its own, and the link of the other";
  EXPECT_EQ(kept_by(subject), 2U);
  s.tell(subject, [&](player& me) { EXPECT_TRUE(me.unlink(other)); });
  EXPECT_EQ(kept_by(other) + kept_by(subject), 0U);
}

TEST(watch_test, ALinkIsKeptWhileManyOthersEnd) {
  stage s(always(directive::stop));
  const auto other = s.enter("other");
  const auto subject = s.enter("mine");
  s.tell(subject, [&](player& me) { me.link(other); });
  ASSERT_TRUE(subject.send(act{&falls}));
  while (!subject.is_terminated()) {
    // Between any two of its steps, other actors are watched, and ended ones removed.
    for (int i = 0; i < 20; ++i) other.ended().cancel();
    ASSERT_TRUE(s.executor.run_one());
  }
  for (int i = 0; i < 20; ++i) other.ended().cancel();
  s.run();
  EXPECT_TRUE(other.is_terminated());
  EXPECT_EQ(s.failures(), "mine:stop other:stop");
}

TEST(watch_test, EitherActorMayRemoveTheLink) {
  for (const bool is_the_first : {true, false}) {
    stage s(always(directive::stop));
    const auto a = s.enter("a");
    const auto b = s.enter("b");
    s.tell(a, [&](player& me) {
      EXPECT_FALSE(me.unlink(b));
      me.link(b);
    });
    const ref<player>& who = is_the_first ? a : b;
    const ref<player>& other = is_the_first ? b : a;
    s.tell(who, [&](player& me) {
      EXPECT_TRUE(me.unlink(other));
      EXPECT_FALSE(me.unlink(other));
    });
    EXPECT_EQ(kept_by(a) + kept_by(b), 0U);
    s.fall(a);
    EXPECT_FALSE(b.is_terminated());
    s.fall(b);
    EXPECT_EQ(s.failures(), "a:stop b:stop");
  }
}

TEST(watch_test, AnUnlinkedActorDoesNotFailByAnEndInFlight) {
  stage s(always(directive::stop));
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.tell(a, [&](player& me) { me.link(b); });
  ASSERT_TRUE(a.send(act{[&](player& me) {
    s.run();  // the other actor fails for good, and has notified this one
    ASSERT_TRUE(b.is_terminated());
    EXPECT_FALSE(me.unlink(b));
  }}));
  ASSERT_TRUE(b.send(act{&falls}));
  s.run();
  EXPECT_FALSE(a.is_terminated());
  EXPECT_EQ(s.failures(), "b:stop");
}

TEST(watch_test, ALinkHoldsWhileTheOtherIsRestarted) {
  supervision slow;
  slow.backoff_first = slow.backoff_max = std::chrono::seconds(10);
  stage s;
  const auto patient = s.enter("patient", slow);
  const auto strict = s.enter("strict", always(directive::stop));
  const ref<player> other = s.hire(patient, {"other"})[0];
  const ref<player> subject = s.hire(strict, {"mine"})[0];
  s.tell(subject, [&](player& me) { me.link(other); });
  s.fall(other);
  EXPECT_EQ(s.failures(), "other:restart");
  s.took();
  s.fall(subject);  // for good, while the other has no state
  EXPECT_EQ(s.failures(), "mine:stop") << "an actor without a state does not fail";
  EXPECT_EQ(s.took(), "mine! -mine");
  s.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.failures(), "other:restart") << "it fails after its restart";
  EXPECT_EQ(s.took(), "+other other! -other");
  s.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.took(), "+other");
  EXPECT_EQ(s.failures(), "") << "and only once";
  EXPECT_EQ(s.system.stats().restarts, 2U);
}

// ---- with threads

TEST(watch_test, EveryWatcherIsNotifiedExactlyOnceWhileTheWatchedEnds) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  for (int round = 0; round < 200; ++round) {
    actor_system system(pool);
    const auto a = system.spawn_with<player>(named("a"), part{.name = "a", .log = &log});
    std::atomic<int> notified{0};
    players watchers;
    std::vector<future<actor_end>> ends;
    for (int i = 0; i < 8; ++i) {
      watchers.push_back(system.spawn_with<player>(named("w"), part{.name = "w", .log = &log}));
      ASSERT_TRUE(watchers.back().send(act{[&](player& me) {
        me.watch(a, [&me, &notified](const actor_end&) {
          ++notified;
          me.close_self();
          return say{"it ended"};
        });
      }}));
      if (i == round % 8) a.stop();
      ends.push_back(watchers.back().ended());
    }
    for (auto& e : ends) (void)e.get();
    EXPECT_EQ(notified, 8);
  }
}

}  // namespace
}  // namespace sluice::watch_test
