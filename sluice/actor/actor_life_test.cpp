// How actors end: by stop, close and shutdown, from inside and outside, with all their resources.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::actor_life_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::falls;
using testing::journal;
using testing::named;
using testing::part;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;
using testing::stage;

using players = std::vector<ref<player>>;

template <class T>
std::string error_of(future<T> f) {
  try {
    (void)f.get();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

// ---- stop and close

TEST(actor_life_test, StopEndsItAfterItsCurrentMessage) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(act{[](player& me) {
    me.stop_self();
    me.note("still");
  }}));
  ASSERT_TRUE(a.send(say{"never"}));
  auto asked = a.ask(question{});
  s.run();
  EXPECT_EQ(s.took(), "+a still a! -a");
  EXPECT_EQ(s.dead_letters(), "say question");
  EXPECT_NE(error_of(std::move(asked)).find("it has ended"), std::string::npos);
}

TEST(actor_life_test, CloseEndsItAfterItsQueuedMessages) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(act{[](player& me) { me.close_self(); }}));
  ASSERT_TRUE(a.send(say{"one"}));
  ASSERT_TRUE(a.send(say{"two"}));
  s.run();
  EXPECT_EQ(s.took(), "+a a:one a:two a! -a");
  EXPECT_EQ(s.dead_letters(), "");
  EXPECT_EQ(a.send(say{"late"}), status::closed);
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(actor_life_test, AClosedActorRejectsAtOnceAndHandlesItsQueuedMessages) {
  stage s;
  const auto a = s.enter("a");
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(a.send(say{std::to_string(i)}));
  a.close();
  ASSERT_TRUE(s.executor.run_one());
  EXPECT_FALSE(a.is_terminated());
  EXPECT_EQ(a.send(say{"late"}), status::closed);
  s.run();
  const std::string all = s.took();
  EXPECT_NE(all.find("a:199 a! -a"), std::string::npos);
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(actor_life_test, AStopOfAStoppedOrTerminatedActorHasNoEffect) {
  stage s;
  const auto a = s.enter("a");
  a.stop();
  a.stop();
  a.close();
  s.run();
  a.stop();
  a.close();
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(s.system.stats().live, 0U);
}

TEST(actor_life_test, CloseOfATreeDrainsTheYoungestFirst) {
  stage s;
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a", "b"});
  s.took();
  for (const auto& k : kids) ASSERT_TRUE(k.send(say{"last"}));
  ASSERT_TRUE(boss.send(say{"last"}));
  s.system.close();
  s.run();
  EXPECT_EQ(s.took(), "a:last b:last boss:last b! -b a! -a boss! -boss");
  EXPECT_EQ(s.dead_letters(), "");
  EXPECT_TRUE(s.system.join(deadline::after(0s)));
}

TEST(actor_life_test, AChildMayGetMessagesWhileItsParentDrains) {
  stage s;
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a"});
  s.took();
  ASSERT_TRUE(boss.send(act{[kid = kids[0]](player& me) {
    EXPECT_TRUE(kid.send(say{"from above"}));
    (void)me.hire("new");
  }}));
  boss.close();
  s.run();
  EXPECT_EQ(s.took(), "+new a:from above new! -new a! -a boss! -boss");
}

TEST(actor_life_test, AStopCutsACloseShortInTheSameOrder) {
  stage s;
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a", "b", "c"});
  // The youngest has a coroutine that waits: its close does not complete.
  event never;
  ASSERT_TRUE(
      kids[2].send(perform{[&never](player&) -> task<> { (void)co_await never.async_wait(); }}));
  for (const auto& k : kids) ASSERT_TRUE(k.send(say{"x"}));
  boss.close();
  s.run();
  EXPECT_EQ(s.took(), "+boss +a +b +c a:x b:x");
  EXPECT_FALSE(boss.is_terminated());
  boss.stop();
  s.run();
  EXPECT_EQ(s.took(), "c! -c b! -b a! -a boss! -boss");
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(actor_life_test, AHundredLevelsEndFromTheLowestUp) {
  stage s;
  std::vector<ref<player>> line{s.enter("0")};
  for (int i = 1; i < 100; ++i) {
    s.tell(line.back(), [&](player& me) { line.push_back(me.hire(std::to_string(i))); });
  }
  s.took();
  line[0].stop();
  s.run();
  std::string expected;
  for (int i = 99; i >= 0; --i) {
    const std::string n = std::to_string(i);
    expected += n + "! -" + n + (i > 0 ? " " : "");
  }
  EXPECT_EQ(s.took(), expected);
}

TEST(actor_life_test, TenThousandChildrenEndInOrder) {
  stage s;
  const auto boss = s.enter("boss");
  std::vector<ref<player>> kids;
  s.tell(boss, [&](player& me) {
    for (int i = 0; i < 10'000; ++i) kids.push_back(me.hire("k"));
  });
  boss.stop();
  s.run();
  EXPECT_EQ(s.system.stats().live, 0U);
  for (const auto& k : kids) EXPECT_TRUE(k.is_terminated());
}

TEST(actor_life_test, TenThousandChildrenThatStopThemselvesLeaveNothingBehind) {
  stage s;
  const auto boss = s.enter("boss");
  s.tell(boss, [&](player& me) {
    for (int i = 0; i < 10'000; ++i) (void)me.hire("k").send(act{[](player& k) { k.stop_self(); }});
  });
  EXPECT_EQ(s.system.stats().live, 1U);
  EXPECT_EQ(s.dead_letters(), "");
}

TEST(actor_life_test, SpawnAfterTheEndGivesARefToATerminatedActor) {
  stage s;
  s.end();
  const auto late = s.enter("late");
  EXPECT_TRUE(late.is_terminated());
  EXPECT_EQ(late.send(say{"hello"}), status::closed);
  EXPECT_EQ(s.took(), "");
  EXPECT_EQ(s.system.stats().live, 0U);
}

TEST(actor_life_test, AFailureInStoppingIsReportedAndItEnds) {
  stage s;
  const auto a = s.enter(part{.name = "a", .at_stop = &falls});
  a.stop();
  s.run();
  EXPECT_EQ(s.failures(), "a:stop");
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(a.ended().get().why, end_reason::stopped);
}

TEST(actor_life_test, AChildThatFailsWhileItsParentDrainsIsStopped) {
  stage s;
  const auto boss = s.enter("boss");
  const players kids = s.hire(boss, {"a", "b"});
  s.took();
  boss.close();
  ASSERT_TRUE(s.executor.run_one());  // it begins to end its children
  ASSERT_TRUE(kids[0].send(act{&falls}));
  s.run();
  EXPECT_EQ(s.failures(), "a:stop");
  EXPECT_EQ(s.took(), "b! -b a! -a boss! -boss");
  EXPECT_EQ(kids[0].ended().get().why, end_reason::failed);
}

// ---- the mailbox at the end

TEST(actor_life_test, QueuedAndStashedMessagesBecomeDeadLetters) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    EXPECT_TRUE(me.stash(say{"aside"}));
    EXPECT_TRUE(me.stash(say{"aside"}));
  });
  ASSERT_TRUE(a.send(say{"x"}));
  ASSERT_TRUE(a.send(testing::urgent_say{"x"}));
  auto asked = a.ask(question{});
  a.stop();
  s.run();
  EXPECT_EQ(s.dead_letters(), "say say urgent_say say question");
  EXPECT_EQ(s.system.stats().dead_letters, 5U);
  EXPECT_THROW((void)asked.get(), actor_error);
}

TEST(actor_life_test, SendersThatWaitForCapacityGetClosed) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system system(pool);
  actor_options small = named("a");
  small.mailbox.capacity = 1;
  const auto a = system.spawn_with<player>(small, part{.name = "a", .log = &log});
  latch begun(1);
  event go;
  ASSERT_TRUE(a.send(act{[&](player&) {
    begun.count_down();
    go.wait();
  }}));
  begun.wait();
  ASSERT_TRUE(a.send(say{"fills it"}));
  std::atomic<int> closed{0};
  std::vector<std::jthread> senders;
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back([&] { closed += a.send(say{"waits"}) == status::closed ? 1 : 0; });
  }
  testing::eventually([&] { return a.waiting() == 3; });
  a.stop();
  go.set();
  senders.clear();
  EXPECT_EQ(closed, 3);
  (void)a.ended().get();
  EXPECT_EQ(system.stats().dead_letters, 4U);
}

TEST(actor_life_test, AContinuationOfAReplyMaySendToTheEndingActor) {
  stage s;
  const auto a = s.enter("a");
  std::vector<status> statuses;
  auto asked = a.ask(question{}).recover([&](const std::exception_ptr&) {
    statuses.push_back(a.send(say{"again"}));
    return std::string("sent");
  });
  a.stop();
  s.run();
  EXPECT_EQ(asked.get(), "sent");
  ASSERT_EQ(statuses.size(), 1U);
  EXPECT_EQ(statuses[0], status::closed);
  EXPECT_EQ(s.dead_letters(), "question say");
}

// ---- coroutines

TEST(actor_life_test, CoroutinesAreStoppedAndTheStateOutlivesThem) {
  stage s;
  const auto a = s.enter("a");
  event never;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.send(perform{[&never](player& me) -> task<> {
      co_await reentrant([](event& e) -> task<> {
        (void)co_await e.async_wait({co_await this_task::stop_token()});
      }(never));
      me.note("stopped");
    }}));
  }
  s.run();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "+a stopped stopped stopped a! -a");
}

TEST(actor_life_test, ACoroutineWithTheExclusiveTurnIsStoppedToo) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
    const status slept = co_await sleep_for(1h, s.clock);
    me.note(slept == status::stopped ? "stopped" : "slept");
  }}));
  ASSERT_TRUE(a.send(say{"never"}));
  s.run();
  a.stop();
  s.run();
  EXPECT_EQ(s.took(), "+a stopped a! -a");
  EXPECT_EQ(s.dead_letters(), "say");
}

TEST(actor_life_test, CloseWaitsForACoroutine) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
    const status slept = co_await sleep_for(1h, s.clock);
    me.note(slept == status::stopped ? "stopped" : "slept");
  }}));
  ASSERT_TRUE(a.send(say{"after"}));
  a.close();
  s.run();
  EXPECT_EQ(s.took(), "+a");
  s.advance(1h);
  EXPECT_EQ(s.took(), "slept a:after a! -a");
}

TEST(actor_life_test, ARestartWaitsForTheCoroutinesOfTheOldState) {
  stage s;
  const auto a = s.enter("a");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
      co_await reentrant([](clock& on) -> task<> {
        (void)co_await sleep_for(1h, on, co_await this_task::stop_token());
      }(s.clock));
      me.note("gone");
    }}));
  }
  s.run();
  s.fall(a);
  EXPECT_EQ(s.took(), "+a gone gone a! -a +a");
}

TEST(actor_life_test, ACoroutineThatThrowsFailsItsActor) {
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&s](player& me) -> task<> {
    (void)co_await sleep_for(1s, s.clock);
    falls(me);
  }}));
  s.run();
  EXPECT_EQ(s.failures(), "");
  s.advance(1s);
  EXPECT_EQ(s.failures(), "a:restart");
  EXPECT_EQ(s.took(), "+a a! -a +a");
}

// ---- asks without a reply

TEST(actor_life_test, AnAskWithoutAReplyEndsAtItsDeadline) {
  event never;
  stage s;
  const auto a = s.enter("a");
  ASSERT_TRUE(a.send(perform{[&never](player&) -> task<> { (void)co_await never.async_wait(); }}));
  auto asked = a.ask(question{}, deadline::after(1s, s.clock));
  s.run();
  EXPECT_FALSE(asked.is_ready());
  s.advance(1s);
  ASSERT_TRUE(asked.is_ready());
  EXPECT_THROW((void)asked.get(), future_error);
}

TEST(actor_life_test, AnAskGetsTheExceptionOfTheHandler) {
  struct failing_question {
    using reply = int;
  };
  class thrower : public actor<thrower, failing_question> {
   public:
    int on(failing_question) { throw std::domain_error("not that"); }
  };
  stage s;
  const auto a = s.system.spawn<thrower>();
  auto asked = a.ask(failing_question{});
  s.run();
  EXPECT_THROW((void)asked.get(), std::domain_error);
  EXPECT_EQ(s.system.stats().restarts, 1U);
}

// ---- with threads

TEST(actor_life_test, ShutdownWithinItsLimitIsClean) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system system(pool);
  const auto a = system.spawn_with<player>(named("a"), part{.name = "a", .log = &log});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a.send(act{[](player& me) { ++me.life; }}));
  EXPECT_EQ(system.shutdown(60s), status::ok);
  EXPECT_EQ(system.stats().dead_letters, 0U);
}

TEST(actor_life_test, ShutdownStopsTheRemainingActorsAtItsLimit) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system system(pool);
  const auto a = system.spawn_with<player>(named("a"), part{.name = "a", .log = &log});
  event never;
  ASSERT_TRUE(a.send(perform{[&never](player&) -> task<> { (void)co_await never.async_wait(); }}));
  testing::eventually([&] { return never.waiting() == 1; });  // else it is a dead letter too
  ASSERT_TRUE(a.send(say{"never"}));
  EXPECT_EQ(system.shutdown(1ms), status::timed_out);
  EXPECT_TRUE(system.join());
  EXPECT_TRUE(a.is_terminated());
  EXPECT_EQ(system.stats().dead_letters, 1U);
}

TEST(actor_life_test, AnActorWithItsOwnThreadRunsThereAndTheThreadEndsWithIt) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system_options quiet;
  quiet.on_failure = [](const actor_failure&) {};
  actor_system system(pool, quiet);
  actor_options own = named("own");
  own.own_thread = true;
  std::vector<ref<player>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(system.spawn_with<player>(own, part{.name = "own", .log = &log}));
  }
  for (const auto& a : all) {
    std::atomic<std::thread::id> first{};
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(a.send(act{[&first](player&) {
        if (first.load() == std::thread::id()) first = std::this_thread::get_id();
        EXPECT_EQ(first.load(), std::this_thread::get_id());
      }}));
    }
    ASSERT_TRUE(a.send(act{&falls}));  // a restart keeps it on its thread
    ASSERT_TRUE(
        a.send(act{[&first](player&) { EXPECT_EQ(first.load(), std::this_thread::get_id()); }}));
    EXPECT_EQ(a.ask(question{}).get(), "own");
  }
  all[0].stop();
  EXPECT_EQ(all[0].ended().get().why, end_reason::stopped);
  all[1].close();
  (void)all[1].ended().get();
  system.stop();
  EXPECT_TRUE(system.join());
}

TEST(actor_life_test, AConstructorThatThrowsWithItsOwnThreadLeavesNothingBehind) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system system(pool);
  actor_options own = named("own");
  own.own_thread = true;
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(
        (void)system.spawn_with<player>(own, part{.name = "own", .log = &log, .at_start = &falls}),
        std::runtime_error);
  }
  system.stop();
  EXPECT_TRUE(system.join());
  EXPECT_EQ(system.stats().live, 0U);
}

TEST(actor_life_test, SystemsStartAndEndWhileThreadsSpawnAndSend) {
  work_stealing_pool pool({.threads = 2});
  journal log;
  for (int round = 0; round < 200; ++round) {
    auto system = std::make_unique<actor_system>(pool);
    std::vector<std::jthread> others;
    for (int t = 0; t < 2; ++t) {
      others.emplace_back([&system, &log] {
        for (int i = 0; i < 5; ++i) {
          const auto a = system->spawn_with<player>(named("a"), part{.name = "a", .log = &log});
          (void)a.send(act{[](player& me) { (void)me.hire("kid"); }});
          (void)a.send(say{"x"});
          if (i % 2 == 0) a.stop();
        }
      });
    }
    if (round % 2 == 0) system->stop();
    others.clear();
    system.reset();
    log.take();
  }
}

TEST(actor_life_test, AConstructorThatFillsItsOwnMailboxGetsFull) {
  stage s;
  actor_options small = named("a");
  small.mailbox.capacity = 2;
  std::string statuses;
  const auto a = s.system.spawn_with<player>(
      small, part{.name = "a", .log = &s.log, .at_start = [&](player& me) {
                    for (int i = 0; i < 3; ++i) {
                      statuses += me.self().send(say{"me"}) == status::full ? "full " : "ok ";
                    }
                  }});
  s.run();
  EXPECT_EQ(statuses, "ok ok full ");
  EXPECT_EQ(s.took(), "+a a:me a:me");
}

}  // namespace
}  // namespace sluice::actor_life_test
