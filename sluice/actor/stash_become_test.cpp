// Stashed messages, and handlers that replace others.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::stash_become_test {

// Not in the unnamed namespace: g++ 12 warns about the frame of a coroutine that refers to an
// entity in it.
struct slow_handler {
  testing::player& me;
  clock& on;
  std::string kept;
  task<> operator()(testing::say) {
    me.unbecome();
    co_await reentrant(a_second(on));
    me.note(std::to_string(kept.size()));
  }
  static task<> a_second(clock& on) { (void)co_await sleep_for(std::chrono::seconds(1), on); }
};

namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::falls;
using testing::named;
using testing::part;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;
using testing::stage;
using testing::urgent_say;

// Stashes each `say`.
void puts_aside(player& me) {
  me.become([&me](say s) {
    if (me.stash(std::move(s)) == status::full) me.note("full");
  });
}

// ---- stash

TEST(stash_become_test, StashedMessagesAreHandledInOrderBeforeTheOthers) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, &puts_aside);
  for (const char* w : {"1", "2", "3"}) ASSERT_TRUE(a.send(say{w}));
  ASSERT_TRUE(a.send(act{[](player& me) {
    me.unbecome();
    me.unstash_all();
  }}));
  for (const char* w : {"4", "5"}) ASSERT_TRUE(a.send(say{w}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:1 a:2 a:3 a:4 a:5");
}

TEST(stash_become_test, StashedAgainTheyKeepTheirOrder) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, &puts_aside);
  for (const char* w : {"1", "2", "3"}) ASSERT_TRUE(a.send(say{w}));
  s.run();
  s.tell(a, [](player& me) { me.unstash_all(); });  // and it still stashes them
  ASSERT_TRUE(a.send(say{"4"}));
  s.run();
  s.tell(a, [](player& me) {
    me.unbecome();
    me.unstash_all();
  });
  EXPECT_EQ(s.took(), "+a a:1 a:2 a:3 a:4");
}

TEST(stash_become_test, TheStashIsBounded) {
  stage s;
  actor_options o = named("a");
  o.mailbox.stash_capacity = 2;
  const auto a = s.system.spawn_with<player>(o, part{.name = "a", .log = &s.log});
  s.tell(a, &puts_aside);
  for (const char* w : {"1", "2", "3"}) ASSERT_TRUE(a.send(say{w}));
  s.run();
  EXPECT_EQ(s.took(), "+a full");
  s.tell(a, [](player& me) {
    me.unbecome();
    me.unstash_all();
  });
  EXPECT_EQ(s.took(), "a:1 a:2");
}

TEST(stash_become_test, AStashedRequestIsAnsweredLater) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.become([&me](question q, responder<std::string> asker) {
      EXPECT_TRUE(me.stash(q, std::move(asker)));
    });
  });
  auto asked = a.ask(question{});
  s.run();
  EXPECT_FALSE(asked.is_ready());
  s.tell(a, [](player& me) {
    me.unbecome();
    me.unstash_all();
  });
  EXPECT_EQ(asked.get(), "a");
}

TEST(stash_become_test, StashedMessagesOutliveTheState) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, &puts_aside);
  for (const char* w : {"1", "2"}) ASSERT_TRUE(a.send(say{w}));
  ASSERT_TRUE(a.send(act{&falls}));
  ASSERT_TRUE(a.send(say{"3"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a +a a:1 a:2 a:3");
}

TEST(stash_become_test, UnstashOfAnEmptyStashHasNoEffect) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.unstash_all(); });
  EXPECT_EQ(s.took(), "+a");
}

// ---- become

TEST(stash_become_test, ABehaviourTakesItsMessagesAndOnTakesTheOthers) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.become([&me](say m) { me.note("other:" + m.text); }); });
  ASSERT_TRUE(a.send(say{"x"}));
  ASSERT_TRUE(a.send(urgent_say{"y"}));
  auto asked = a.ask(question{});
  s.run();
  EXPECT_EQ(s.took(), "+a a!!y other:x");
  EXPECT_EQ(asked.get(), "a");
}

TEST(stash_become_test, StackedBehavioursAreRemovedOneByOne) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.become_stacked([&me](say) { me.note("one"); });
    me.become_stacked([&me](say) { me.note("two"); });
  });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.send(say{"own"}));
    ASSERT_TRUE(a.send(act{[](player& me) { me.unbecome(); }}));
  }
  ASSERT_TRUE(a.send(say{"own"}));
  s.run();
  EXPECT_EQ(s.took(), "+a two one a:own a:own");
}

TEST(stash_become_test, BecomeReplacesThePreviousBehaviour) {
  stage s;
  const auto a = s.enter("a");
  auto counted = std::make_shared<int>(0);
  s.tell(a, [&](player& me) {
    for (int i = 0; i < 1000; ++i) me.become([&me, counted](say) { me.note("last"); });
  });
  EXPECT_EQ(counted.use_count(), 2) << "one of a thousand exists";
  ASSERT_TRUE(a.send(say{"own"}));
  ASSERT_TRUE(a.send(act{[](player& me) { me.unbecome(); }}));
  ASSERT_TRUE(a.send(say{"own"}));
  s.run();
  EXPECT_EQ(s.took(), "+a last a:own");
}

TEST(stash_become_test, AReplacedBehaviourIsDestroyedWhileACoroutineOfItIsSuspended) {
  stage s;
  const auto a = s.enter("a");
  auto counted = std::make_shared<int>(0);
  // One behaviour with a long message, and many that are added and removed meanwhile.
  s.tell(a, [&s](player& me) { me.become(slow_handler{me, s.clock, std::string(100, 'k')}); });
  ASSERT_TRUE(a.send(say{}));
  s.run();
  for (int i = 0; i < 100; ++i) {
    s.tell(a, [&](player& me) { me.become([counted](question) { return std::string("x"); }); });
  }
  EXPECT_EQ(counted.use_count(), 2);
  s.advance(1s);
  EXPECT_EQ(s.took(), "+a 100");
}

TEST(stash_become_test, AtMostSixtyFourBehavioursAreStacked) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    for (int i = 0; i < 64; ++i) me.become_stacked([](say) {});
  });
  EXPECT_DEATH(s.tell(a, [](player& me) { me.become_stacked([](say) {}); }), "at most 64 stacked");
}

TEST(stash_become_test, AHandlerMayRemoveItsOwnBehaviourAndContinue) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.become([&me, kept = std::string(100, 'k')](say) {
      me.unbecome();
      me.become([&me](say) { me.note("next"); });
      me.note(std::to_string(kept.size()));  // captured by the running handler, which still exists
    });
  });
  ASSERT_TRUE(a.send(say{}));
  ASSERT_TRUE(a.send(say{}));
  s.run();
  EXPECT_EQ(s.took(), "+a 100 next");
}

TEST(stash_become_test, AHandlerThatIsACoroutineIsKeptUntilItEnds) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [&s](player& me) { me.become(slow_handler{me, s.clock, std::string(100, 'k')}); });
  ASSERT_TRUE(a.send(say{}));
  ASSERT_TRUE(a.send(say{"between"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:between");
  s.advance(1s);
  EXPECT_EQ(s.took(), "100");
}

TEST(stash_become_test, ABehaviourRepliesToRequests) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.become([](question) { return std::string("another"); }); });
  auto asked = a.ask(question{});
  s.run();
  EXPECT_EQ(asked.get(), "another");
}

TEST(stash_become_test, ARestartRemovesItsBehaviour) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.become([&me](say) { me.note("old"); }); });
  s.fall(a);
  ASSERT_TRUE(a.send(say{"own"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a +a a:own");
}

TEST(stash_become_test, ABehaviourThatThrowsFailsTheActor) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.become([&me](say) {
      me.unbecome();
      falls(me);
    });
  });
  ASSERT_TRUE(a.send(say{}));
  s.run();
  EXPECT_EQ(s.failures(), "a:restart");
}

TEST(stash_become_test, UnbecomeWithoutABehaviourHasNoEffect) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.unbecome(); });
  ASSERT_TRUE(a.send(say{"own"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:own");
}

}  // namespace
}  // namespace sluice::stash_become_test
