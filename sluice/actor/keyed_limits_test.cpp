// Keyed actors at the limit of live actors, at their end, and in the moments between.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::keyed_limits_test {
namespace {

using namespace std::chrono_literals;

struct add {
  int n;
};
struct total {
  using reply = int;
};
struct stay {};
struct may_go {};
class guest;
struct call_on {
  using reply = std::string;
  keyed_ref<guest> target;
};

class guest : public actor<guest, add, total, stay, may_go, call_on> {
 public:
  void on(add m) { sum_ += m.n; }
  int on(total) const { return sum_; }
  void on(stay) { stays_ = true; }
  void on(may_go) { stays_ = false; }
  std::string on(call_on m) { return std::string(to_string(m.target.send(add{1}))); }

  std::string save() const { return std::to_string(sum_); }
  void load(std::string_view bytes) { sum_ = std::stoi(std::string(bytes)); }
  bool may_passivate() const { return !stays_; }

 private:
  int sum_ = 0;
  bool stays_ = false;
};

struct call_again {
  using reply = std::string;
  ref<guest> target;
  deadline until{};
};
struct ask_again {
  using reply = int;
  ref<guest> target;
};

// An actor that is not keyed.
class visitor : public actor<visitor, call_on, call_again, ask_again> {
 public:
  task<std::string> on(call_again m) {
    stay one;
    auto sending = m.target.async_send(one, m.until);
    co_return std::string(to_string(co_await sending));
  }
  task<int> on(ask_again m) {
    total one;
    auto asking = m.target.async_ask(one);
    co_return co_await std::move(asking);
  }
  task<std::string> on(call_on m) {
    add one{1};
    auto sending = m.target.async_send(one);
    co_return std::string(to_string(co_await std::move(sending)));
  }
};

// One thread, and a manual clock.
class keyed_limits_test : public ::testing::Test {
 protected:
  void open(std::size_t live_max, std::size_t live_limit = 0) {
    keyed_options o;
    o.store = &store;
    o.type = "guest";
    o.idle = 10s;
    o.live_max = live_max;
    o.live_limit = live_limit;
    actor_system_options so;
    so.time = &clock;
    so.on_dead_letter = [this](const dead_letter&) { ++dead_letters; };
    system.emplace(executor, std::move(so));
    guests.emplace(*system, std::move(o));
  }
  ~keyed_limits_test() override {
    guests.reset();
    system->close();
    run();
    EXPECT_EQ(system->stats().live, 0U);
  }
  void run() { executor.run_all(); }
  void wait(std::chrono::nanoseconds time) {
    clock.advance(time);
    run();
  }
  keyed_ref<guest> of(std::string_view key) { return guests->of(key); }
  template <class M>
  void tell(std::string_view key, M m) {
    EXPECT_TRUE(of(key).try_send(std::move(m)));
    run();
  }
  std::string stored(std::string_view key) {
    return store.load("guest", std::string(key)).get().value_or("nothing");
  }
  std::size_t live() { return guests->stats().live; }

  manual_clock clock;
  manual_executor executor;
  memory_actor_store store;
  int dead_letters = 0;
  std::optional<actor_system> system;
  std::optional<keyed_actors<guest>> guests;
};

TEST_F(keyed_limits_test, AKeyedActorGetsFullWhereOthersWouldWait) {
  open(1, 2);
  tell("a", stay{});
  tell("b", stay{});
  auto reply = of("a").ask(call_on{of("c")});
  run();
  EXPECT_EQ(reply.get(), "full");
  EXPECT_EQ(live(), 2U);
  auto known = of("a").ask(call_on{of("b")});
  run();
  EXPECT_EQ(known.get(), "ok") << "an actor in memory";
}

TEST_F(keyed_limits_test, AnotherActorIsSuspendedUntilThereIsCapacity) {
  open(1, 2);
  tell("a", stay{});
  tell("b", stay{});
  const auto outside = system->spawn<visitor>();
  auto reply = outside.ask(call_on{of("c")});
  run();
  wait(10ms);
  EXPECT_FALSE(reply.is_ready());
  EXPECT_EQ(live(), 2U);
  tell("a", may_go{});
  tell("b", may_go{});
  for (int i = 0; i < 10 && !reply.is_ready(); ++i) wait(10ms);
  ASSERT_TRUE(reply.is_ready());
  EXPECT_EQ(reply.get(), "ok");
  EXPECT_LE(live(), 2U);
}

TEST_F(keyed_limits_test, CoroutinesWithPlainRefsWaitForAPlaceToo) {
  open(1, 2);
  const std::vector<std::string> keys{"c", "d", "e", "f", "g", "h"};
  std::vector<ref<guest>> passivated;
  for (const std::string& key : keys) {
    tell(key, add{1});
    passivated.push_back(of(key).now());
    run();
    wait(10s);
  }
  ASSERT_EQ(live(), 0U);
  tell("a", stay{});
  tell("b", stay{});
  std::vector<future<int>> replies;
  for (const ref<guest>& r : passivated) {
    const auto outside = system->spawn<visitor>();
    replies.push_back(outside.ask(ask_again{r}));
  }
  run();
  wait(10ms);
  EXPECT_EQ(live(), 2U) << "no actor is created beyond the limit";
  for (const auto& s : replies) EXPECT_FALSE(s.is_ready());
  tell("a", may_go{});
  tell("b", may_go{});
  const auto all_are = [&] {
    return std::ranges::all_of(replies, [](const auto& s) { return s.is_ready(); });
  };
  for (int i = 0; i < 1000 && !all_are(); ++i) {
    while (executor.run_one()) EXPECT_LE(live(), 2U);
    clock.advance(10ms);
  }
  ASSERT_TRUE(all_are());
  for (auto& s : replies) EXPECT_EQ(s.get(), 1);
}

TEST_F(keyed_limits_test, ACoroutineWithAPlainRefWaitsForAPlaceWithinItsLimits) {
  open(1, 2);
  tell("c", add{1});
  const ref<guest> passivated = of("c").now();
  run();
  wait(10s);
  tell("a", stay{});
  tell("b", stay{});
  const auto outside = system->spawn<visitor>();
  auto reply = outside.ask(call_again{passivated, deadline::after(1s, clock)});
  run();
  EXPECT_FALSE(reply.is_ready());
  wait(1s);
  ASSERT_TRUE(reply.is_ready());
  EXPECT_EQ(reply.get(), "timed out");
  EXPECT_EQ(live(), 2U);
  // Its place in the line is free for others.
  auto later = outside.ask(call_again{passivated});
  run();
  tell("a", may_go{});
  tell("b", may_go{});
  for (int i = 0; i < 1000 && !later.is_ready(); ++i) wait(10ms);
  ASSERT_TRUE(later.is_ready());
  EXPECT_EQ(later.get(), "ok");
}

TEST_F(keyed_limits_test, WaitersForAPlaceGetClosedAtTheEnd) {
  open(1, 2);
  tell("c", add{1});
  const ref<guest> passivated = of("c").now();
  run();
  wait(10s);
  tell("a", stay{});
  tell("b", stay{});
  std::vector<future<std::string>> replies;
  for (int i = 0; i < 4; ++i) {
    const auto outside = system->spawn<visitor>();
    replies.push_back(outside.ask(call_again{passivated}));
  }
  run();
  guests->close();
  run();
  for (auto& s : replies) {
    ASSERT_TRUE(s.is_ready());
    EXPECT_EQ(s.get(), "closed");
  }
}

TEST_F(keyed_limits_test, SurplusActorsAreCheckedAgain) {
  open(1);
  tell("a", stay{});
  tell("b", stay{});
  wait(10ms);
  EXPECT_EQ(live(), 2U) << "no actor may be passivated";
  tell("a", may_go{});
  wait(10ms);
  wait(10ms);
  EXPECT_EQ(live(), 1U) << "long before it is idle";
  EXPECT_EQ(stored("a"), "0");
  EXPECT_EQ(stored("b"), "nothing");
}

TEST_F(keyed_limits_test, AMessageBetweenTheSaveAndTheEndKeepsTheActor) {
  open(10);
  tell("a", add{1});
  store.hold();
  wait(10s);
  ASSERT_EQ(store.held(), 1U);
  store.release();  // it is saved, and not notified yet
  ASSERT_TRUE(of("a").try_send(add{1}));
  run();
  EXPECT_EQ(stored("a"), "1");
  EXPECT_EQ(guests->stats().passivations, 0U);
  EXPECT_EQ(guests->stats().loads, 1U) << "it stayed in memory";
  wait(10s);
  EXPECT_EQ(stored("a"), "2");
  EXPECT_EQ(live(), 0U);
}

TEST_F(keyed_limits_test, AnActorActivatedAfterTheEndGivesClosed) {
  open(10);
  tell("a", add{1});
  const ref<guest> kept = of("a").now();
  guests->close();
  run();
  ASSERT_EQ(live(), 0U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(of("a").send(add{1}), status::closed);
    EXPECT_EQ(of("new").try_send(add{1}), status::closed);
    EXPECT_EQ(kept.send(add{1}), status::closed);
  }
  EXPECT_EQ(dead_letters, 9);
  EXPECT_THROW((void)of("new").ask(total{}).get(), actor_error);
  EXPECT_EQ(live(), 0U) << "no actor is kept";
  EXPECT_EQ(stored("a"), "1");
}

TEST_F(keyed_limits_test, AStoppedActorIsSavedAndActivatedAgain) {
  open(10);
  tell("a", add{1});
  ASSERT_TRUE(of("a").try_send(add{2}));
  of("a").close();
  run();
  EXPECT_EQ(live(), 0U);
  EXPECT_EQ(stored("a"), "3") << "the queued messages were handled";
  tell("a", add{1});
  of("a").stop();
  run();
  EXPECT_EQ(live(), 0U);
  auto sum = of("a").ask(total{});
  run();
  EXPECT_EQ(sum.get(), 4);
}

TEST_F(keyed_limits_test, AStopDoesNotActivateAnActor) {
  open(10);
  of("a").stop();
  of("a").close();
  run();
  EXPECT_EQ(guests->stats().loads, 0U);
  EXPECT_EQ(live(), 0U);
}

}  // namespace
}  // namespace sluice::keyed_limits_test
