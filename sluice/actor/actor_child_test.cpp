#include "sluice/actor/actor_child.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::testing::actor_child_test {
namespace {

using namespace std::chrono_literals;

// As in "anna:running bob:restarting(1)".
std::string text_of(const std::vector<actor_child>& all) {
  std::string text;
  for (const actor_child& c : all) {
    if (!text.empty()) text += " ";
    text += c.name + ":" + std::string(to_string(c.state));
    if (c.restarts > 0) text += "(" + std::to_string(c.restarts) + ")";
  }
  return text;
}

class actor_child_test : public ::testing::Test {
 protected:
  std::string below(const ref<player>& who) { return text_of(who.children()); }

  stage s;
};

TEST_F(actor_child_test, ChildrenAreListedInTheOrderOfSpawning) {
  const auto boss = s.enter("boss");
  EXPECT_TRUE(boss.children().empty());
  EXPECT_EQ(boss.child_count(), 0U);
  const auto hired = s.hire(boss, {"anna", "bob", "cleo"});
  EXPECT_EQ(below(boss), "anna:running bob:running cleo:running");
  EXPECT_EQ(boss.child_count(), 3U);
  const auto all = boss.children();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].id, hired[i].id());
    EXPECT_EQ(all[i].actor, any_ref(hired[i]));
    EXPECT_NE(all[i].type.find("player"), std::string_view::npos);
    EXPECT_EQ(all[i].children, 0U);
  }
}

TEST_F(actor_child_test, ItsChildrenAreTheActorsThatItSpawned) {
  const auto boss = s.enter("boss");
  const auto hired = s.hire(boss, {"anna", "bob"});
  (void)s.hire(hired[0], {"assistant"});
  EXPECT_EQ(below(boss), "anna:running bob:running");
  EXPECT_EQ(boss.children()[0].children, 1U);
  EXPECT_EQ(below(hired[0]), "assistant:running");
  EXPECT_EQ(text_of(s.system.children()), "boss:running");
  EXPECT_EQ(s.system.child_count(), 1U);
}

TEST_F(actor_child_test, AnActorListsItsChildrenInAHandler) {
  const auto boss = s.enter("boss");
  (void)s.hire(boss, {"anna", "bob"});
  std::string seen;
  s.tell(boss, [&](player& me) {
    me.hire("cleo");
    seen = text_of(me.children()) + " " + std::to_string(me.child_count());
  });
  EXPECT_EQ(seen, "anna:running bob:running cleo:running 3");
}

TEST_F(actor_child_test, TheListHasAtMostTheLimit) {
  const auto boss = s.enter("boss");
  (void)s.hire(boss, {"anna", "bob", "cleo"});
  EXPECT_EQ(text_of(boss.children(2)), "anna:running bob:running");
  EXPECT_TRUE(boss.children(0).empty());
  EXPECT_EQ(boss.child_count(), 3U);
}

TEST_F(actor_child_test, AnEndedActorIsNotListed) {
  const auto boss = s.enter("boss");
  const auto hired = s.hire(boss, {"anna", "bob"});
  hired[0].stop();
  s.run();
  EXPECT_EQ(below(boss), "bob:running");
  EXPECT_EQ(boss.child_count(), 1U);
  EXPECT_EQ(hired[0].state(), actor_state::terminated);
  EXPECT_TRUE(hired[0].children().empty());
}

TEST_F(actor_child_test, AParentIsNotifiedOfAnEndAfterTheChildLeftTheList) {
  manual_executor aside;
  const auto boss = s.enter("boss");
  ref<player> anna;
  std::vector<std::size_t> left;
  s.tell(boss, [&](player& me) {
    anna = me.hire("anna", {.on = &aside});
    me.watch(anna, [&](const actor_end&) {
      return act{[&](player& p) { left.push_back(p.child_count()); }};
    });
  });
  aside.run_all();
  // Other watchers are notified during the end: one of them has the parent take a turn just then.
  auto notified = anna.ended().then([&](const actor_end&) { s.run(); });
  anna.stop();
  aside.run_all();
  EXPECT_TRUE(notified.is_ready());
  s.run();
  EXPECT_EQ(left, std::vector<std::size_t>{0});
}

TEST_F(actor_child_test, AWatchOfATerminatedChildNotifiesAfterItLeftTheList) {
  manual_executor aside;
  const auto boss = s.enter("boss");
  ref<player> anna;
  std::vector<std::size_t> left;
  s.tell(boss, [&](player& me) { anna = me.hire("anna", {.on = &aside}); });
  aside.run_all();
  // An earlier watcher has the parent watch it just then: it is terminated, and still listed.
  auto notified = anna.ended().then([&](const actor_end&) {
    EXPECT_TRUE(anna.is_terminated());
    s.tell(boss, [&](player& me) {
      EXPECT_EQ(me.child_count(), 1U);
      me.watch(anna, [&](const actor_end& e) {
        return act{[&left, name = e.name](player& p) {
          EXPECT_EQ(name, "anna");
          left.push_back(p.child_count());
        }};
      });
    });
    EXPECT_TRUE(left.empty());
  });
  anna.stop();
  aside.run_all();
  EXPECT_TRUE(notified.is_ready());
  s.run();
  EXPECT_EQ(left, std::vector<std::size_t>{0});
}

TEST_F(actor_child_test, AWatchOfATerminatedChildIsRemovedAlsoWhileItIsListed) {
  manual_executor aside;
  const auto boss = s.enter("boss");
  ref<player> anna;
  s.tell(boss, [&](player& me) { anna = me.hire("anna", {.on = &aside}); });
  aside.run_all();
  auto notified = anna.ended().then([&](const actor_end&) {
    s.tell(boss, [&](player& me) { me.notes_end_of(anna); });
    s.tell(boss, [&](player& me) { EXPECT_TRUE(me.unwatch(anna)); });
  });
  anna.stop();
  aside.run_all();
  s.run();
  EXPECT_EQ(s.took(), "+boss +anna anna! -anna");
  EXPECT_EQ(below(boss), "");
}

TEST_F(actor_child_test, ClosingAndStoppingAreStates) {
  manual_executor aside;
  const auto boss = s.enter("boss");
  ref<player> anna;
  ref<player> bob;
  s.tell(boss, [&](player& me) {
    anna = me.hire("anna", {.on = &aside});
    bob = me.hire("bob");
  });
  ASSERT_TRUE(bob.send(perform{[&](player&) -> task<> {
    auto waiting = reentrant(after(1h, s.clock));
    co_await std::move(waiting);
  }}));
  bob.close();
  s.run();
  EXPECT_EQ(below(boss), "anna:running bob:closing") << "it ends after the messages it has begun";
  bob.stop();
  // A child that gets no turn keeps its parent from ending.
  boss.stop();
  s.run();
  EXPECT_EQ(boss.state(), actor_state::stopping);
  EXPECT_EQ(below(boss), "anna:running");
  aside.run_all();
  s.run();
  EXPECT_EQ(boss.state(), actor_state::terminated);
}

TEST_F(actor_child_test, RestartsAreCountedAndAreAState) {
  const auto boss = s.enter("boss", {.backoff_first = 1s});
  const auto anna = s.hire(boss, {"anna", "bob"})[0];
  s.fall(anna);
  EXPECT_EQ(below(boss), "anna:restarting bob:running");
  s.advance(1s);
  EXPECT_EQ(below(boss), "anna:running(1) bob:running");
  s.fall(anna);
  EXPECT_EQ(below(boss), "anna:restarting(1) bob:running");
  s.advance(2s);
  EXPECT_EQ(below(boss), "anna:running(2) bob:running");
  EXPECT_EQ(s.system.stats().restarts, 2U);
}

TEST_F(actor_child_test, AnActorInItsRestartIsNotRunning) {
  std::vector<actor_state> seen;
  const auto boss = s.enter("boss");
  ref<player> anna;
  s.tell(boss, [&](player& me) {
    anna = me.hire(part{.name = "anna", .at_start = [&](player& p) {
                          seen.push_back(p.self().state());
                          if (seen.size() == 2) falls(p);
                        }});
  });
  s.fall(anna);
  using enum actor_state;
  EXPECT_EQ(seen, (std::vector{running, restarting, restarting}));
  EXPECT_EQ(below(boss), "anna:running(1)");
}

TEST_F(actor_child_test, SiblingsThatAreRestartedAlongCountTheirRestarts) {
  const auto boss = s.enter("boss", {.strategy = strategy::one_for_all});
  const auto anna = s.hire(boss, {"anna", "bob"})[0];
  s.fall(anna);
  EXPECT_EQ(below(boss), "anna:running(1) bob:running(1)");
}

TEST_F(actor_child_test, AFailedAttemptIsNoRestart) {
  int lives = 0;
  const auto boss = s.enter("boss", {.backoff_first = 1s});
  ref<player> anna;
  s.tell(boss, [&](player& me) {
    anna = me.hire(part{.name = "anna", .at_start = [&](player& p) {
                          if (++lives == 2) falls(p);
                        }});
  });
  s.fall(anna);
  s.advance(1s);
  EXPECT_EQ(below(boss), "anna:restarting");
  s.advance(2s);
  EXPECT_EQ(below(boss), "anna:running(1)");
}

TEST_F(actor_child_test, AListedChildCanBeWatchedAndEnded) {
  const auto boss = s.enter("boss");
  (void)s.hire(boss, {"anna", "bob"});
  const any_ref anna = boss.children()[0].actor;
  s.tell(boss, [&](player& me) { me.notes_end_of(anna); });
  (void)s.took();
  anna.stop();
  s.run();
  EXPECT_EQ(s.took(), "anna! -anna boss:anna-stopped");
  EXPECT_TRUE(anna.is_terminated());
}

TEST_F(actor_child_test, AnyRefsOfOneActorAreEqualFromARefOrRecipient) {
  const auto anna = s.enter("anna");
  const auto bob = s.enter("bob");
  const any_ref by_ref = anna;
  const any_ref by_recipient = recipient<say>(anna);
  EXPECT_EQ(by_ref, by_recipient);
  EXPECT_NE(by_ref, any_ref(bob));
  EXPECT_FALSE(any_ref());
  const std::unordered_set<any_ref> some{by_ref, by_recipient, any_ref(bob)};
  EXPECT_EQ(some.size(), 2U);
}

struct come_and_go {};
struct brief {};
class guest : public actor<guest, brief> {
 public:
  void on(brief) { stop_self(); }
};
class host : public actor<host, come_and_go> {
 public:
  void on(come_and_go) { (void)spawn<guest>().send(brief{}); }
};

TEST(actor_child_stress_test, AnyThreadListsChildrenThatStartAndEnd) {
  constexpr int guests = 5000;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto h = system.spawn<host>();
  atomic<bool> done{false};
  seam::thread looks([&] {
    while (!done.load()) {
      for (const actor_child& c : h.children(100)) {
        EXPECT_FALSE(c.name.empty());
        EXPECT_EQ(c.restarts, 0U);
      }
    }
  });
  for (int i = 0; i < guests; ++i) ASSERT_TRUE(h.send(come_and_go{}));
  h.close();
  (void)h.ended().get();
  done.store(true);
  looks.join();
  EXPECT_EQ(h.child_count(), 0U);
  EXPECT_EQ(system.stats().spawned, guests + 1U);
}

struct guest_left {};
struct invite {
  using reply = std::size_t;
};
// Replies, when its guest has ended, with the listed children.
class careful_host : public actor<careful_host, invite, guest_left> {
 public:
  void on(invite, responder<std::size_t> asker) {
    asker_ = std::move(asker);
    const auto g = spawn<guest>();
    watch(g, [](const actor_end&) { return guest_left{}; });
    (void)g.send(brief{});
  }
  void on(guest_left) { asker_.reply(child_count()); }

 private:
  responder<std::size_t> asker_;
};

TEST(actor_child_stress_test, AParentThatIsNotifiedOfAnEndDoesNotListTheChild) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto h = system.spawn<careful_host>();
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(h.ask(invite{}).get(), 0U);
}

// The same, but lists its children only when the child is terminated.
class late_host : public actor<late_host, invite, guest_left> {
 public:
  void on(invite, responder<std::size_t> asker) {
    asker_ = std::move(asker);
    const auto g = spawn<guest>();
    (void)g.send(brief{});
    eventually([&] { return g.is_terminated(); });
    watch(g, [](const actor_end&) { return guest_left{}; });
  }
  void on(guest_left) { asker_.reply(child_count()); }

 private:
  responder<std::size_t> asker_;
};

TEST(actor_child_stress_test, AParentThatWatchesATerminatedChildDoesNotListItAfterwards) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto h = system.spawn<late_host>();
  const auto guests =
      effort(test_name(), "guests", {.ci = 2'000, .full = 5'000, .sanitized = 300});
  for (std::uint64_t i = 0; i < guests; ++i) ASSERT_EQ(h.ask(invite{}).get(), 0U);
}

TEST(actor_child_stress_test, AStuckChildIsListed) {
  work_stealing_pool pool({.threads = 2});
  event released;
  event is_stuck;
  journal log;
  actor_system system(pool);
  const auto boss = system.spawn_with<player>(named("boss"), part{.name = "boss", .log = &log});
  ASSERT_TRUE(boss.send(act{[&](player& me) {
    me.hire("anna");
    is_stuck.set();
    released.wait();
  }}));
  is_stuck.wait();
  EXPECT_EQ(text_of(boss.children()), "anna:running");
  released.set();
}

}  // namespace
}  // namespace sluice::testing::actor_child_test
