// Shutdowns with a limit: of a system, and of one actor and the actors below it.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::shutdown_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::journal;
using testing::named;
using testing::part;
using testing::perform;
using testing::player;
using testing::say;
using testing::stage;

// Real threads; one of the actors may be stuck in its handler until the test ends.
class shutdown_test : public ::testing::Test {
 protected:
  void TearDown() override { released.set(); }
  ref<player> enter(const std::string& name) {
    return system.spawn_with<player>(named(name), part{.name = name, .log = &log});
  }
  void get_stuck(const ref<player>& who) {
    ASSERT_TRUE(who.send(act{[this](player&) {
      is_stuck.set();
      released.wait();
    }}));
    is_stuck.wait();
  }

  journal log;
  event is_stuck;
  event released;
  thread_pool pool{{.core = 2}};
  actor_system system{pool};
};

TEST_F(shutdown_test, OfASystemReturnsAtItsLimitAlsoWhenAHandlerIsStuck) {
  get_stuck(enter("a"));
  EXPECT_EQ(system.shutdown(1ms), status::timed_out);
  EXPECT_EQ(system.join(deadline::after(0s)), status::timed_out) << "it has not ended";
  released.set();
  EXPECT_TRUE(system.join(deadline::after(1min)));
}

TEST_F(shutdown_test, OfASystemEndsAtAStopAlsoWhenAHandlerIsStuck) {
  get_stuck(enter("a"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(system.shutdown(stop.get_token()), status::stopped);
}

TEST_F(shutdown_test, OfOneActorReturnsAtItsLimitAlsoWhenAHandlerIsStuck) {
  const auto a = enter("a");
  get_stuck(a);
  ASSERT_TRUE(a.send(say{"never"}));
  EXPECT_EQ(a.shutdown(1ms), status::timed_out);
  EXPECT_FALSE(a.is_terminated());
  released.set();
  EXPECT_EQ(a.ended().get().why, end_reason::stopped);
  EXPECT_EQ(log.take(), "+a a! -a") << "it was stopped";
}

TEST_F(shutdown_test, OfOneActorEndsTheActorsBelowItAndNoOther) {
  const auto a = enter("a");
  const auto b = enter("b");
  ASSERT_TRUE(a.send(act{[](player& me) { (void)me.hire("kid").send(say{"hello"}); }}));
  ASSERT_TRUE(a.send(say{"last"}));
  EXPECT_EQ(a.shutdown(1min), status::ok);
  EXPECT_TRUE(a.is_terminated());
  EXPECT_FALSE(b.is_terminated());
  EXPECT_EQ(a.shutdown({}), status::ok) << "of a terminated actor";
  const std::string all = log.take();
  EXPECT_NE(all.find("kid:hello"), std::string::npos);
  EXPECT_NE(all.find("a:last"), std::string::npos);
  EXPECT_NE(all.find("kid! -kid a! -a"), std::string::npos);
}

TEST(shutdown_by_hand_test, ACoroutineMayShutDownAnotherActor) {
  stage s;
  const auto boss = s.enter("boss");
  const ref<player> kid = s.hire(boss, {"kid"})[0];
  ASSERT_TRUE(kid.send(perform{[&s](player& me) -> task<> {
    const status slept = co_await sleep_for(1h, s.clock);
    me.note(slept == status::stopped ? "stopped" : "slept");
  }}));
  ASSERT_TRUE(boss.send(perform{[&](player& me) -> task<> {
    auto ending = kid.async_shutdown(deadline::after(1s, s.clock));
    const status outcome = co_await std::move(ending);
    me.note(std::string(to_string(outcome)));
  }}));
  s.run();
  s.took();
  s.advance(1s);
  EXPECT_EQ(s.took(), "timed out stopped kid! -kid");
}

}  // namespace
}  // namespace sluice::shutdown_test
