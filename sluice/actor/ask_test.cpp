// Requests: who answers, when, and what the asker hears otherwise; handlers that are coroutines.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/letting_others_in.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::ask_test {
namespace {

using namespace std::chrono_literals;

// Everything by hand: threads and time.
class Ask : public ::testing::Test {
 protected:
  ~Ask() override {
    system.stop();
    while (!system.join(deadline::after(0ns))) later.run_all();
  }
  void run() { later.run_all(); }

  static actor_system_options options(manual_clock& on) {
    actor_system_options o;
    o.time = &on;
    o.on_failure = [](const actor_failure&) {};
    return o;
  }

  manual_clock clock;
  manual_executor later;
  actor_system system{later, options(clock)};
};

template <class T>
std::string error_of(future<T> f) {
  try {
    (void)f.get();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

struct half {
  using reply = int;
  int of;
};
struct wait_for {
  using reply = int;
  future<int> what;
};
struct held_back {
  using reply = int;
};
struct let_go {
  int with;
};
struct drop_it {};
struct ping {
  using reply = void;
};

class answerer : public actor<answerer, half, wait_for, held_back, let_go, drop_it, ping> {
 public:
  int on(half h) {
    if (h.of % 2 != 0) throw std::invalid_argument("an odd number");
    return h.of / 2;
  }
  future<int> on(wait_for w) {
    if (!w.what.valid()) throw std::invalid_argument("nothing to wait for");
    return std::move(w.what);
  }
  void on(held_back, responder<int> to) { held_.push_back(std::move(to)); }
  void on(let_go g) {
    for (auto& to : held_) {
      wanted += to.is_wanted() ? 1 : 0;
      to.reply(g.with);
    }
    held_.clear();
  }
  void on(drop_it) { held_.clear(); }
  void on(ping) {}

  static inline int wanted = 0;

 private:
  std::vector<responder<int>> held_;
};

TEST_F(Ask, IsAnsweredByWhatTheHandlerReturns) {
  const auto to = system.spawn<answerer>();
  auto f = to.ask(half{42});
  EXPECT_FALSE(f.is_ready());
  run();
  EXPECT_EQ(f.get(), 21);
  auto p = to.ask(ping{});
  run();
  p.get();
}

TEST_F(Ask, HearsWhatTheHandlerThrewAndTheActorFails) {
  const auto to = system.spawn<answerer>();
  auto f = to.ask(half{3});
  run();
  EXPECT_EQ(error_of(std::move(f)), "an odd number");
  EXPECT_EQ(system.stats().failures, 1U);
}

TEST_F(Ask, HearsWhatAHandlerThrewInPlaceOfGivingAFuture) {
  const auto to = system.spawn<answerer>();
  auto f = to.ask(wait_for{});
  run();
  EXPECT_EQ(error_of(std::move(f)), "nothing to wait for");
  EXPECT_EQ(system.stats().failures, 1U);
}

TEST_F(Ask, IsAnsweredByAFutureWhileOtherMessagesAreHandled) {
  const auto to = system.spawn<answerer>();
  promise<int> p;
  auto slow = to.ask(wait_for{p.get_future()});
  auto quick = to.ask(half{4});
  run();
  EXPECT_EQ(quick.get(), 2);
  EXPECT_FALSE(slow.is_ready());
  p.set_value(9);
  run();
  EXPECT_EQ(slow.get(), 9);
}

TEST_F(Ask, IsAnsweredByWhoeverHasTheResponder) {
  const auto to = system.spawn<answerer>();
  auto one = to.ask(held_back{});
  auto other = to.ask(held_back{});
  run();
  EXPECT_FALSE(one.is_ready());
  EXPECT_TRUE(to.send(let_go{7}));
  run();
  EXPECT_EQ(one.get(), 7);
  EXPECT_EQ(other.get(), 7);
}

TEST_F(Ask, ThatIsLetGoOfIsUnanswered) {
  const auto to = system.spawn<answerer>();
  auto f = to.ask(held_back{});
  EXPECT_TRUE(to.send(drop_it{}));
  run();
  try {
    (void)f.get();
    FAIL();
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::unanswered);
  }
}

TEST_F(Ask, IsOverAtItsDeadlineAndTheResponderKnows) {
  const auto to = system.spawn<answerer>();
  auto f = to.ask(held_back{}, deadline::after(1s, clock));
  run();
  clock.advance(2s);
  run();
  try {
    (void)f.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::timed_out);
  }
  answerer::wanted = 0;
  auto still = to.ask(held_back{});
  EXPECT_TRUE(to.send(let_go{1}));
  run();
  EXPECT_EQ(still.get(), 1);
  EXPECT_EQ(answerer::wanted, 1) << "of the two, one has given up";
}

TEST_F(Ask, OfOneThatEndsFirstIsGone) {
  const auto to = system.spawn<answerer>();
  auto inside = to.ask(half{2});
  auto held = to.ask(held_back{});
  to.stop();
  run();
  EXPECT_NE(error_of(std::move(inside)).find("it has ended"), std::string::npos);
  EXPECT_NE(error_of(to.ask(half{2})).find("it has ended"), std::string::npos);
  EXPECT_NE(error_of(std::move(held)), "no error");
  EXPECT_EQ(system.stats().dead_letters, 3U);
}

struct route {
  using reply = int;
  int of;
};
class gateway : public actor<gateway, route, half> {
 public:
  explicit gateway(ref<answerer> to) : to_(std::move(to)) {}
  void on(route r, responder<int> who) { (void)forward(to_, half{r.of}, std::move(who)); }
  void on(half h, responder<int> who) { delegate(to_, std::move(h), std::move(who)); }

 private:
  ref<answerer> to_;
};

TEST_F(Ask, CanBeForwarded) {
  const auto behind = system.spawn<answerer>();
  const auto front = system.spawn<gateway>(behind);
  auto f = front.ask(route{10});
  auto g = front.ask(half{30});
  run();
  EXPECT_EQ(f.get(), 5);
  EXPECT_EQ(g.get(), 15);
  behind.stop();
  run();
  auto late = front.ask(route{10});
  run();
  EXPECT_NE(error_of(std::move(late)).find("it has ended"), std::string::npos);
}

TEST_F(Ask, GoesThroughARecipient) {
  const auto to = system.spawn<answerer>();
  const recipient<half> any = to;
  auto f = any.ask(half{8});
  run();
  EXPECT_EQ(f.get(), 4);
  EXPECT_EQ(any.id(), to.id());
  EXPECT_TRUE(any.try_send(half{2}));
  run();
}

// ---- handlers that are coroutines

struct load {
  using reply = int;
};
struct look {
  using reply = int;
};
struct refresh {};
struct break_later {};

class cache : public actor<cache, load, look, refresh, break_later> {
 public:
  explicit cache(std::vector<promise<int>>* sources) : sources_(sources) {}
  // Keeps others out.
  task<int> on(load) {
    value_ = co_await next();
    co_return value_;
  }
  int on(look) { return value_; }
  // Lets others in.
  task<> on(refresh) {
    const int got = co_await letting_others_in(next());
    value_ += got;
  }
  task<> on(break_later) {
    (void)co_await next();
    throw std::runtime_error("it broke");
  }

 private:
  future<int> next() {
    sources_->emplace_back();
    return sources_->back().get_future();
  }

  std::vector<promise<int>>* sources_;
  int value_ = 0;
};

class Coroutine : public Ask {
 protected:
  Coroutine() { sources.reserve(16); }
  std::vector<promise<int>> sources;
};

TEST_F(Coroutine, KeepsTheNextMessageOutUntilItEnds) {
  const auto to = system.spawn<cache>(&sources);
  auto loaded = to.ask(load{});
  auto looked = to.ask(look{});
  run();
  EXPECT_FALSE(looked.is_ready());
  sources[0].set_value(5);
  run();
  EXPECT_EQ(loaded.get(), 5);
  EXPECT_EQ(looked.get(), 5);
}

TEST_F(Coroutine, ThatLetsOthersInGoesOnWhenNoneIsInTheMiddle) {
  const auto to = system.spawn<cache>(&sources);
  EXPECT_TRUE(to.send(refresh{}));
  auto looked = to.ask(look{});
  run();
  EXPECT_EQ(looked.get(), 0) << "handled while the other waits";
  auto loaded = to.ask(load{});  // keeps others out, also the one that waits
  run();
  sources[0].set_value(3);
  run();
  auto after = to.ask(look{});
  run();
  EXPECT_FALSE(after.is_ready());
  sources[1].set_value(10);
  run();
  EXPECT_EQ(loaded.get(), 10);
  EXPECT_EQ(after.get(), 13) << "the one that had let others in went on before the next message";
}

TEST_F(Coroutine, ThatThrowsMakesItsActorFail) {
  const auto to = system.spawn<cache>(&sources);
  EXPECT_TRUE(to.send(break_later{}));
  run();
  EXPECT_EQ(system.stats().failures, 0U);
  sources[0].set_value(1);
  run();
  EXPECT_EQ(system.stats().failures, 1U);
  auto looked = to.ask(look{});
  run();
  EXPECT_EQ(looked.get(), 0);
}

TEST_F(Coroutine, HearsOfTheEndOfItsActorAndEndsBeforeIt) {
  const auto to = system.spawn<cache>(&sources);
  auto loaded = to.ask(load{});
  run();
  to.stop();
  run();
  EXPECT_TRUE(to.is_over()) << "awaiting the future was cancelled";
  EXPECT_NE(error_of(std::move(loaded)), "no error");
}

struct tick_for {
  using reply = int;
  int times;
};
class sleeper : public actor<sleeper, tick_for> {
 public:
  explicit sleeper(sluice::clock* on) : on_(on) {}
  task<int> on(tick_for t) {
    int slept = 0;
    for (int i = 0; i < t.times; ++i) {
      const status how = co_await sleep_for(1s, *on_);
      if (!how) co_return -1;
      ++slept;
    }
    co_return slept;
  }

 private:
  sluice::clock* on_;
};

TEST_F(Coroutine, SleepsWithoutAThread) {
  const auto to = system.spawn<sleeper>(&clock);
  auto f = to.ask(tick_for{3});
  run();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(f.is_ready());
    clock.advance(1s);
    run();
  }
  EXPECT_EQ(f.get(), 3);
  auto cut = to.ask(tick_for{100});
  run();
  to.stop();
  run();
  EXPECT_EQ(cut.get(), -1);
}

TEST(actor_coroutine_stress_test, ThousandsInterleaveOneAtATime) {
  struct work_on {
    using reply = int;
  };
  struct busy : actor<busy, work_on> {
    task<int> on(work_on) {
      EXPECT_EQ(inside_++, 0);
      --inside_;
      co_await letting_others_in(pause());
      EXPECT_EQ(inside_++, 0);
      co_await pause();
      --inside_;
      co_return ++done_;
    }
    task<> pause() { co_await this_task::yield(); }
    int inside_ = 0;
    int done_ = 0;
  };
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto to = system.spawn<busy>();
  std::vector<future<int>> all;
  for (int i = 0; i < 3000; ++i) all.push_back(to.ask(work_on{}));
  int sum = 0;
  for (auto& f : all) sum += f.get() > 0 ? 1 : 0;
  EXPECT_EQ(sum, 3000);
}

}  // namespace
}  // namespace sluice::ask_test
