// Messages from timers and from futures.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/actor/testing/stage.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::timer_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::falls;
using testing::journal;
using testing::named;
using testing::part;
using testing::player;
using testing::say;
using testing::stage;

// ---- once

TEST(timer_test, AMessageArrivesWhenItIsDue) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.send_after(2s, say{"two"});
    me.send_after(1s, say{"one"});
    me.send_after(0s, say{"now"});
  });
  EXPECT_EQ(s.took(), "+a a:now");
  s.advance(1s - 1ns);
  EXPECT_EQ(s.took(), "");
  s.advance(1ns);
  EXPECT_EQ(s.took(), "a:one");
  s.advance(10s);
  EXPECT_EQ(s.took(), "a:two");
  EXPECT_EQ(s.clock.pending(), 0U);
}

TEST(timer_test, CancelRemovesIt) {
  stage s;
  const auto a = s.enter("a");
  actor_timer t = 0;
  s.tell(a, [&](player& me) { t = me.send_after(1s, say{"never"}); });
  s.tell(a, [&](player& me) { EXPECT_TRUE(me.cancel(t)); });
  EXPECT_EQ(s.clock.pending(), 0U);
  s.advance(2s);
  s.tell(a, [&](player& me) { EXPECT_FALSE(me.cancel(t)); });
  EXPECT_EQ(s.took(), "+a");
}

TEST(timer_test, CancelOfADueMessageStillPreventsIt) {
  // It is due: on its way to the mailbox, or queued behind the message that cancels it.
  for (int steps = 0; steps < 3; ++steps) {
    stage s;
    const auto a = s.enter("a");
    actor_timer t = 0;
    s.tell(a, [&](player& me) { t = me.send_after(1s, say{"never"}); });
    ASSERT_TRUE(a.send(act{[&](player& me) {
      s.clock.advance(1s);
      if (steps == 0) {
        EXPECT_TRUE(me.cancel(t));
      }
    }}));
    ASSERT_TRUE(a.send(act{[&](player& me) {
      if (steps == 1) {
        EXPECT_TRUE(me.cancel(t));
      }
    }}));
    ASSERT_TRUE(a.send(act{[&](player& me) {
      if (steps == 2) {
        EXPECT_TRUE(me.cancel(t));
      }
    }}));
    s.run();
    EXPECT_EQ(s.took(), "+a") << steps;
  }
}

TEST(timer_test, AHandledMessageCannotBeCancelled) {
  stage s;
  const auto a = s.enter("a");
  actor_timer t = 0;
  s.tell(a, [&](player& me) { t = me.send_after(1s, say{"one"}); });
  s.advance(1s);
  s.tell(a, [&](player& me) { EXPECT_FALSE(me.cancel(t)); });
  EXPECT_EQ(s.took(), "+a a:one");
}

TEST(timer_test, ARestartRemovesTimers) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.send_after(1s, say{"old"});
    me.send_every(1s, say{"old tick"});
  });
  s.fall(a);
  EXPECT_EQ(s.clock.pending(), 0U);
  s.advance(5s);
  EXPECT_EQ(s.took(), "+a a! -a +a");
}

TEST(timer_test, ARestartRemovesMessagesThatAreDue) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) {
    me.send_after(1s, say{"old"});
    me.send_every(1s, say{"old tick"});
  });
  ASSERT_TRUE(a.send(act{[&](player&) { s.clock.advance(1s); }}));
  ASSERT_TRUE(a.send(act{&falls}));
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a +a");
}

TEST(timer_test, TimersOfTheConstructorAreStartedAgain) {
  stage s;
  const auto a =
      s.enter(part{.name = "a", .at_start = [](player& me) { me.send_every(1s, say{"tick"}); }});
  s.advance(1s);
  s.fall(a);
  s.advance(1s);
  EXPECT_EQ(s.took(), "+a a:tick a! -a +a a:tick");
}

TEST(timer_test, TheEndRemovesAllTimers) {
  stage s;
  const auto a = s.enter(
      part{.name = "a", .at_stop = [](player& me) { me.send_after(1s, say{"from the end"}); }});
  s.tell(a, [](player& me) {
    me.send_after(1s, say{"never"});
    me.send_every(1s, say{"never"});
  });
  a.stop();
  s.run();
  EXPECT_EQ(s.clock.pending(), 0U);
  s.advance(5s);
  EXPECT_EQ(s.took(), "+a a! -a");
  EXPECT_EQ(s.dead_letters(), "");
}

TEST(timer_test, TimersAreAdmittedToAFullMailbox) {
  stage s;
  actor_options small = named("a");
  small.mailbox.capacity = 1;
  small.mailbox.overflow = overflow::reject;
  const auto a = s.system.spawn_with<player>(small, part{.name = "a", .log = &s.log});
  s.tell(a, [](player& me) { me.send_after(1s, say{"timer"}); });
  s.took();
  ASSERT_TRUE(a.send(say{"first"}));
  EXPECT_EQ(a.send(say{"second"}), status::full);
  s.advance(1s);
  EXPECT_EQ(s.took(), "a:first a:timer");
}

TEST(timer_test, AMessageThatCannotBeMovedFailsTheActor) {
  struct stubborn {
    explicit stubborn(int moves) : moves_left(moves) {}
    stubborn(const stubborn& other) : stubborn(other.moves_left) { move(); }
    stubborn(stubborn&& other) : stubborn(other.moves_left) { move(); }
    void move() {
      if (moves_left-- == 0) throw std::runtime_error("it does not move");
    }
    int moves_left;
  };
  class mover : public actor<mover, stubborn> {
   public:
    mover(journal* log, int moves) : log_(log) {
      log_->note("+");
      if (moves >= 0) send_after(1s, stubborn(moves));
    }
    void on(const stubborn&) { log_->note("handled"); }

   private:
    journal* const log_;
  };
  int failures = 0;
  for (int moves = 0; moves < 32; ++moves) {
    stage s(supervision{.restarts_max = 0});
    try {
      const auto a = s.system.spawn<mover>(&s.log, moves);
      s.advance(1s);
      failures += a.is_terminated() ? 1 : 0;
      EXPECT_EQ(s.took(), a.is_terminated() ? "+" : "+ handled");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(s.took(), "+");  // it could not even be enqueued
    }
  }
  EXPECT_GT(failures, 0);
}

// ---- periodic

TEST(timer_test, TicksArriveOnTimeWithoutDrift) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.send_every(10s, say{"tick"}); });
  s.took();
  for (int i = 0; i < 5; ++i) {
    s.advance(9s);
    EXPECT_EQ(s.took(), "");
    s.advance(1s);
    EXPECT_EQ(s.took(), "a:tick");
  }
}

TEST(timer_test, TicksAreSkippedWhileTheActorIsSlow) {
  stage s;
  const auto a = s.enter("a");
  s.tell(a, [](player& me) { me.send_every(1s, say{"tick"}); });
  s.took();
  ASSERT_TRUE(a.send(act{[&](player&) { s.clock.advance(10s); }}));
  s.run();
  EXPECT_EQ(s.took(), "a:tick");
  s.advance(1s);  // then the ticks are on time again
  EXPECT_EQ(s.took(), "a:tick");
}

TEST(timer_test, CancelEndsTicksAndRemovesTheQueuedOne) {
  stage s;
  const auto a = s.enter("a");
  actor_timer t = 0;
  s.tell(a, [&](player& me) { t = me.send_every(1s, say{"tick"}); });
  s.advance(1s);
  EXPECT_EQ(s.took(), "+a a:tick");
  ASSERT_TRUE(a.send(act{[&](player&) { s.clock.advance(1s); }}));
  ASSERT_TRUE(a.send(act{[&](player& me) { EXPECT_TRUE(me.cancel(t)); }}));
  s.run();
  s.advance(10s);
  EXPECT_EQ(s.took(), "");
  EXPECT_EQ(s.clock.pending(), 0U);
}

TEST(timer_test, ATickerMayBeCancelledByItsOwnTick) {
  struct tick {};
  class three : public actor<three, tick> {
   public:
    explicit three(journal* log) : log_(log), every_(send_every(1s, tick{})) {}
    void on(tick) {
      log_->note("tick");
      if (++count_ == 3) {
        EXPECT_TRUE(cancel(every_));
      }
    }

   private:
    journal* const log_;
    int count_ = 0;
    actor_timer every_;
  };
  stage s;
  const auto a = s.system.spawn<three>(&s.log);
  s.advance(1s);
  s.advance(1s);
  s.advance(1s);
  s.advance(10s);
  EXPECT_EQ(s.took(), "tick tick tick");
}

TEST(timer_test, TheRealClockWorksAsWell) {
  int ticks = 0;
  event done;
  work_stealing_pool pool({.threads = 2});
  journal log;
  actor_system system(pool);
  const auto a = system.spawn_with<player>(named("a"), part{.name = "a", .log = &log});
  ASSERT_TRUE(a.send(act{[&](player& me) {
    me.become([&](say) {
      if (++ticks == 4) done.set();
    });
    me.send_after(1ms, say{});
    me.send_every(1ms, say{});
  }}));
  done.wait();
}

// ---- pipes

TEST(timer_test, APipeSendsTheResultOfAFuture) {
  stage s;
  const auto a = s.enter("a");
  promise<int> p;
  s.tell(a, [f = std::make_shared<future<int>>(p.get_future())](player& me) {
    me.pipe(std::move(*f), [](int n) { return say{std::to_string(n)}; });
  });
  p.set_value(42);
  s.run();
  EXPECT_EQ(s.took(), "+a a:42");
}

TEST(timer_test, APipeOfAFailureSendsAMessageOrFailsTheActor) {
  stage s;
  const auto a = s.enter("a");
  promise<int> p;
  promise<int> q;
  s.tell(a, [f = std::make_shared<future<int>>(p.get_future())](player& me) {
    me.pipe(
        std::move(*f), [](int) { return say{"value"}; },
        [](const std::exception_ptr&) { return say{"failure"}; });
  });
  s.tell(a, [f = std::make_shared<future<int>>(q.get_future())](player& me) {
    me.pipe(std::move(*f), [](int) { return say{"value"}; });
  });
  p.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  s.run();
  EXPECT_EQ(s.took(), "+a a:failure");
  q.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  s.run();
  EXPECT_EQ(s.took(), "a! -a +a");
  EXPECT_EQ(s.failures(), "a:restart");
}

TEST(timer_test, AnExceptionOfAConversionFailsTheActor) {
  for (const bool fails : {false, true}) {
    stage s;
    const auto a = s.enter("a");
    promise<void> p;
    s.tell(a, [f = std::make_shared<future<void>>(p.get_future())](player& me) {
      me.pipe(
          std::move(*f), []() -> say { throw std::logic_error("made badly"); },
          [](const std::exception_ptr&) -> say { throw std::logic_error("made badly"); });
    });
    if (fails) {
      p.set_exception(std::make_exception_ptr(std::runtime_error("no")));
    } else {
      p.set_value();
    }
    s.run();
    EXPECT_EQ(s.failures(), "a:restart");
  }
}

TEST(timer_test, ARestartDropsPipes) {
  stage s;
  const auto a = s.enter("a");
  promise<int> p;
  promise<int> q;
  s.tell(a, [f = std::make_shared<future<int>>(p.get_future()),
             g = std::make_shared<future<int>>(q.get_future())](player& me) {
    me.pipe(std::move(*f), [](int) { return say{"old"}; });
    me.pipe(std::move(*g), [](int) { return say{"old"}; });
  });
  s.fall(a);
  p.set_value(1);
  q.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  s.run();
  EXPECT_EQ(s.took(), "+a a! -a +a");
  EXPECT_EQ(s.failures(), "a:restart");
}

}  // namespace
}  // namespace sluice::timer_test
