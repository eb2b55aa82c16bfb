#include "sluice/actor/actor_counters.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::actor_counters_test {
namespace {

using namespace std::chrono_literals;

struct work_for {
  std::chrono::nanoseconds time;
};
struct fall {};
struct raise_child {};

// Simulates work by advancing the clock.
class worker : public actor<worker, work_for, fall, raise_child> {
 public:
  explicit worker(manual_clock& time) : time_(time) {}
  void on(work_for m) { time_.advance(m.time); }
  void on(fall) { throw std::runtime_error("it fell"); }
  void on(raise_child) { spawn_with<worker>({.name = "child"}, std::ref(time_)); }

 private:
  manual_clock& time_;
};

// A clock that only the workers advance, and counters that read it.
class actor_counters_test : public ::testing::Test {
 protected:
  static actor_system_options observed_by(actor_counters& c) {
    actor_system_options o;
    o.observer = &c;
    return o;
  }
  ref<worker> hire(std::string name) {
    return kit.spawn_with<worker>({.name = std::move(name)}, std::ref(time));
  }
  actor_count of(std::string_view name) {
    for (const actor_count& a : counters.read(kit.system()).actors) {
      if (a.name == name) return a;
    }
    ADD_FAILURE() << "no actor " << name;
    return {};
  }

  manual_clock time;
  actor_counters counters{{.quantiles_max = 2, .time = &time}};
  actor_test_kit kit{observed_by(counters)};
};

TEST_F(actor_counters_test, CountsMessagesAndTheirTimes) {
  const auto a = hire("a");
  ASSERT_TRUE(a.send(work_for{640us}));
  ASSERT_TRUE(a.send(work_for{64us}));
  ASSERT_TRUE(a.send(work_for{0us}));
  EXPECT_EQ(of("a").queued, 3U);
  kit.settle();
  const actor_count c = of("a");
  EXPECT_EQ(c.queued, 0U);
  EXPECT_EQ(c.messages, 3U);
  EXPECT_EQ(c.in_handler.count, 3U);
  EXPECT_EQ(c.in_handler.total, 704us);
  EXPECT_EQ(c.in_handler.largest, 640us);
  EXPECT_EQ(c.in_queue.total, 0us + 640us + 704us);
  EXPECT_EQ(c.in_queue.largest, 704us);
  ASSERT_TRUE(c.in_handler.p50 && c.in_handler.p99);
  EXPECT_GE(*c.in_handler.p50, 64us);
  EXPECT_LE(*c.in_handler.p50, 68us);
  EXPECT_GE(*c.in_handler.p99, 640us);
  EXPECT_LE(*c.in_handler.p99, 680us);
}

TEST_F(actor_counters_test, CountsFailuresRestartsAndLostMessages) {
  const auto a = hire("a");
  const auto small = kit.spawn_with<worker>(
      {.name = "small", .mailbox = {.capacity = 1, .overflow = overflow::drop_newest}},
      std::ref(time));
  ASSERT_TRUE(a.send(fall{}));
  ASSERT_TRUE(small.send(work_for{0ns}));
  kit.settle();
  ASSERT_TRUE(small.send(work_for{0ns}));
  EXPECT_EQ(small.send(work_for{0ns}), status::dropped);
  EXPECT_EQ(of("a").failures, 1U);
  EXPECT_EQ(of("a").restarts, 1U);
  EXPECT_EQ(of("a").lost, 0U);
  EXPECT_EQ(of("small").lost, 1U);
}

TEST_F(actor_counters_test, EndedActorsAreOneSum) {
  for (int i = 0; i < 3; ++i) {
    const auto a = hire("a");
    ASSERT_TRUE(a.send(work_for{1ms}));
    a.close();
    kit.settle();
    EXPECT_EQ(a.send(work_for{1ms}), status::closed);
  }
  const actor_counts all = counters.read(kit.system());
  EXPECT_TRUE(all.actors.empty());
  EXPECT_EQ(all.ended.messages, 3U);
  EXPECT_EQ(all.ended.lost, 3U);
  EXPECT_EQ(all.ended.in_handler.total, 3ms);
}

TEST_F(actor_counters_test, QuantilesAreForTheFirstLiveActors) {
  const auto a = hire("a");
  const auto b = hire("b");
  const auto c = hire("c");
  for (const auto& one : {a, b, c}) ASSERT_TRUE(one.send(work_for{1ms}));
  kit.settle();
  EXPECT_TRUE(of("a").in_handler.p99);
  EXPECT_TRUE(of("b").in_handler.p99);
  EXPECT_FALSE(of("c").in_handler.p99);
  EXPECT_EQ(of("c").in_handler.largest, 1ms);
  a.stop();
  kit.settle();
  const auto d = hire("d");
  ASSERT_TRUE(d.send(work_for{1ms}));
  kit.settle();
  EXPECT_TRUE(of("d").in_handler.p99);  // the place of a was free
}

TEST_F(actor_counters_test, ListsParentsBeforeTheirChildrenAndTheTopByAnyOrder) {
  const auto a = hire("a");
  const auto b = hire("b");
  ASSERT_TRUE(a.send(raise_child{}));
  ASSERT_TRUE(b.send(work_for{5ms}));
  kit.settle();
  ASSERT_TRUE(a.send(work_for{1ms}));
  const actor_counts all = counters.read(kit.system());
  ASSERT_EQ(all.actors.size(), 3U);
  EXPECT_EQ(all.actors[0].name, "a");
  EXPECT_EQ(all.actors[1].name, "child");
  EXPECT_EQ(all.actors[2].name, "b");
  EXPECT_EQ(all.top(1, actor_order::handler_time).actors[0].name, "b");
  EXPECT_EQ(all.top(1, actor_order::queued).actors[0].name, "a");
  EXPECT_EQ(all.top(1, actor_order::queued).actors.size(), 1U);
}

TEST_F(actor_counters_test, PrintsATableForPeople) {
  const auto a = hire("a");
  const auto c = hire("clerk");
  const auto b = hire("b");
  ASSERT_TRUE(a.send(work_for{6400us}));
  ASSERT_TRUE(c.send(work_for{0us}));
  ASSERT_TRUE(b.send(work_for{1280us}));
  kit.settle();
  ASSERT_TRUE(c.send(fall{}));
  EXPECT_EQ(counters.read(kit.system()).table(),
            "actor  queued  messages  failures  restarts  lost  queue p50     p99    "
            " max  handler p50     p99    total\n"
            "a           0         1         0         0     0       0 ns    0 ns    "
            "0 ns       6.4 ms  6.4 ms   6.4 ms\n"
            "clerk       1         1         0         0     0     6.4 ms  6.4 ms  6."
            "4 ms         0 ns    0 ns     0 ns\n"
            "b           0         1         0         0     0          -       -  6."
            "4 ms            -       -  1.28 ms\n");
}

TEST_F(actor_counters_test, PrintsJsonForPrograms) {
  const auto a = hire("a \"quoted\" one");
  ASSERT_TRUE(a.send(work_for{6400ns}));
  kit.settle();
  EXPECT_EQ(counters.read(kit.system()).json(),
            R"({"actors":[)"
            "\n"
            R"({"id":1,"name":"a \"quoted\" one","queued":0,"messages":1,)"
            R"("failures":0,"restarts":0,"lost":0,)"
            R"("in_queue_ns":{"count":1,"total":0,"max":0,"p50":0,"p99":0},)"
            R"("in_handler_ns":{"count":1,"total":6400,"max":6400,"p50":6400,"p99":6400}}],)"
            "\n"
            R"("ended":{"messages":0,)"
            R"("failures":0,"restarts":0,"lost":0,)"
            R"("in_queue_ns":{"count":0,"total":0,"max":0},)"
            R"("in_handler_ns":{"count":0,"total":0,"max":0}}})"
            "\n");
}

struct add {};
class adder : public actor<adder, add> {
 public:
  void on(add) { ++sum_; }

 private:
  int sum_ = 0;
};

TEST(actor_counters_threads_test, EverythingIsCountedOnce) {
  actor_counters counters;
  work_stealing_pool pool({.threads = 2});
  actor_system_options o;
  o.observer = &counters;
  actor_system system(pool, std::move(o));
  for (int i = 0; i < 50; ++i) {
    const auto a = system.spawn<adder>();
    for (int n = 0; n < 100; ++n) ASSERT_TRUE(a.send(add{}));
    (void)counters.read(system);
  }
  system.close();
  ASSERT_TRUE(system.join());
  const actor_counts all = counters.read(system);
  EXPECT_EQ(all.ended.messages, 5000U);
  EXPECT_EQ(all.ended.in_queue.count, 5000U);
  EXPECT_EQ(all.ended.in_handler.count, 5000U);
}

}  // namespace
}  // namespace sluice::actor_counters_test
