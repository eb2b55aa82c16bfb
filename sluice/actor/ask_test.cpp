// Requests: the replying party, the time of the reply, the errors; handlers that are coroutines.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::ask_test {
namespace {

using namespace std::chrono_literals;

// Threads and time are driven by the test.
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
  future<int> awaited;
};
struct held_back {
  using reply = int;
};
struct release {
  int with;
};
struct drop_it {};
struct ping {
  using reply = void;
};

class answerer : public actor<answerer, half, wait_for, held_back, release, drop_it, ping> {
 public:
  int on(half h) {
    if (h.of % 2 != 0) throw std::invalid_argument("an odd number");
    return h.of / 2;
  }
  future<int> on(wait_for w) {
    if (!w.awaited.valid()) throw std::invalid_argument("nothing to wait for");
    return std::move(w.awaited);
  }
  void on(held_back, responder<int> asker) { held_.push_back(std::move(asker)); }
  void on(release g) {
    for (auto& asker : held_) {
      wanted += asker.is_wanted() ? 1 : 0;
      asker.reply(g.with);
    }
    held_.clear();
  }
  void on(drop_it) { held_.clear(); }
  void on(ping) {}

  static inline int wanted = 0;

 private:
  std::vector<responder<int>> held_;
};

TEST_F(Ask, IsAnsweredByTheResultOfTheHandler) {
  const auto receiver = system.spawn<answerer>();
  auto f = receiver.ask(half{42});
  EXPECT_FALSE(f.is_ready());
  run();
  EXPECT_EQ(f.get(), 21);
  auto p = receiver.ask(ping{});
  run();
  p.get();
}

TEST_F(Ask, GetsTheExceptionOfTheHandlerAndTheActorFails) {
  const auto receiver = system.spawn<answerer>();
  auto f = receiver.ask(half{3});
  run();
  EXPECT_EQ(error_of(std::move(f)), "an odd number");
  EXPECT_EQ(system.stats().failures, 1U);
}

TEST_F(Ask, GetsTheExceptionOfAHandlerThatShouldReturnAFuture) {
  const auto receiver = system.spawn<answerer>();
  auto f = receiver.ask(wait_for{});
  run();
  EXPECT_EQ(error_of(std::move(f)), "nothing to wait for");
  EXPECT_EQ(system.stats().failures, 1U);
}

TEST_F(Ask, IsAnsweredByAFutureWhileOtherMessagesAreHandled) {
  const auto receiver = system.spawn<answerer>();
  promise<int> p;
  auto slow = receiver.ask(wait_for{p.get_future()});
  auto quick = receiver.ask(half{4});
  run();
  EXPECT_EQ(quick.get(), 2);
  EXPECT_FALSE(slow.is_ready());
  p.set_value(9);
  run();
  EXPECT_EQ(slow.get(), 9);
}

TEST_F(Ask, IsAnsweredByTheOwnerOfTheResponder) {
  const auto receiver = system.spawn<answerer>();
  auto one = receiver.ask(held_back{});
  auto other = receiver.ask(held_back{});
  run();
  EXPECT_FALSE(one.is_ready());
  EXPECT_TRUE(receiver.send(release{7}));
  run();
  EXPECT_EQ(one.get(), 7);
  EXPECT_EQ(other.get(), 7);
}

TEST_F(Ask, WithADroppedResponderIsUnanswered) {
  const auto receiver = system.spawn<answerer>();
  auto f = receiver.ask(held_back{});
  EXPECT_TRUE(receiver.send(drop_it{}));
  run();
  try {
    (void)f.get();
    FAIL();
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::unanswered);
  }
}

TEST_F(Ask, EndsAtItsDeadlineAndTheResponderIsNotWanted) {
  const auto receiver = system.spawn<answerer>();
  auto f = receiver.ask(held_back{}, deadline::after(1s, clock));
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
  auto still = receiver.ask(held_back{});
  EXPECT_TRUE(receiver.send(release{1}));
  run();
  EXPECT_EQ(still.get(), 1);
  EXPECT_EQ(answerer::wanted, 1) << "one of the two askers has given up";
}

TEST_F(Ask, OfAnActorThatEndsFirstIsTerminated) {
  const auto receiver = system.spawn<answerer>();
  auto inside = receiver.ask(half{2});
  auto held = receiver.ask(held_back{});
  receiver.stop();
  run();
  EXPECT_NE(error_of(std::move(inside)).find("it has ended"), std::string::npos);
  EXPECT_NE(error_of(receiver.ask(half{2})).find("it has ended"), std::string::npos);
  EXPECT_NE(error_of(std::move(held)), "no error");
  EXPECT_EQ(system.stats().dead_letters, 3U);
}

struct route {
  using reply = int;
  int of;
};
class gateway : public actor<gateway, route, half> {
 public:
  explicit gateway(ref<answerer> receiver) : receiver_(std::move(receiver)) {}
  void on(route r, responder<int> who) { (void)forward(receiver_, half{r.of}, std::move(who)); }
  void on(half h, responder<int> who) { delegate(receiver_, std::move(h), std::move(who)); }

 private:
  ref<answerer> receiver_;
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
  const auto receiver = system.spawn<answerer>();
  const recipient<half> any = receiver;
  auto f = any.ask(half{8});
  run();
  EXPECT_EQ(f.get(), 4);
  EXPECT_EQ(any.id(), receiver.id());
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
  // Holds the exclusive turn.
  task<int> on(load) {
    value_ = co_await next();
    co_return value_;
  }
  int on(look) { return value_; }
  // Waits reentrantly.
  task<> on(refresh) {
    const int got = co_await reentrant(next());
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

TEST_F(Coroutine, HasTheExclusiveTurnUntilItEnds) {
  const auto receiver = system.spawn<cache>(&sources);
  auto loaded = receiver.ask(load{});
  auto looked = receiver.ask(look{});
  run();
  EXPECT_FALSE(looked.is_ready());
  sources[0].set_value(5);
  run();
  EXPECT_EQ(loaded.get(), 5);
  EXPECT_EQ(looked.get(), 5);
}

TEST_F(Coroutine, ResumesAfterAReentrantWaitWhenTheTurnIsFree) {
  const auto receiver = system.spawn<cache>(&sources);
  EXPECT_TRUE(receiver.send(refresh{}));
  auto looked = receiver.ask(look{});
  run();
  EXPECT_EQ(looked.get(), 0) << "handled during the reentrant wait";
  auto loaded = receiver.ask(load{});  // holds the exclusive turn, also against the reentrant wait
  run();
  sources[0].set_value(3);
  run();
  auto after = receiver.ask(look{});
  run();
  EXPECT_FALSE(after.is_ready());
  sources[1].set_value(10);
  run();
  EXPECT_EQ(loaded.get(), 10);
  EXPECT_EQ(after.get(), 13) << "the reentrant handler resumed before the next message";
}

TEST_F(Coroutine, ThatThrowsFailsItsActor) {
  const auto receiver = system.spawn<cache>(&sources);
  EXPECT_TRUE(receiver.send(break_later{}));
  run();
  EXPECT_EQ(system.stats().failures, 0U);
  sources[0].set_value(1);
  run();
  EXPECT_EQ(system.stats().failures, 1U);
  auto looked = receiver.ask(look{});
  run();
  EXPECT_EQ(looked.get(), 0);
}

TEST_F(Coroutine, IsStoppedByTheEndOfItsActorAndEndsBeforeIt) {
  const auto receiver = system.spawn<cache>(&sources);
  auto loaded = receiver.ask(load{});
  run();
  receiver.stop();
  run();
  EXPECT_TRUE(receiver.is_terminated()) << "awaiting the future was cancelled";
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
      const status outcome = co_await sleep_for(1s, *on_);
      if (!outcome) co_return -1;
      ++slept;
    }
    co_return slept;
  }

 private:
  sluice::clock* on_;
};

TEST_F(Coroutine, SleepsWithoutAThread) {
  const auto receiver = system.spawn<sleeper>(&clock);
  auto f = receiver.ask(tick_for{3});
  run();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(f.is_ready());
    clock.advance(1s);
    run();
  }
  EXPECT_EQ(f.get(), 3);
  auto cut = receiver.ask(tick_for{100});
  run();
  receiver.stop();
  run();
  EXPECT_EQ(cut.get(), -1);
}

TEST(actor_coroutine_stress_test, ThousandsRunInterleavedOneAtATime) {
  struct work_on {
    using reply = int;
  };
  struct busy : actor<busy, work_on> {
    task<int> on(work_on) {
      EXPECT_EQ(inside_++, 0);
      --inside_;
      co_await reentrant(pause());
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
  const auto receiver = system.spawn<busy>();
  std::vector<future<int>> all;
  for (int i = 0; i < 3000; ++i) all.push_back(receiver.ask(work_on{}));
  int sum = 0;
  for (auto& f : all) sum += f.get() > 0 ? 1 : 0;
  EXPECT_EQ(sum, 3000);
}

}  // namespace
}  // namespace sluice::ask_test
