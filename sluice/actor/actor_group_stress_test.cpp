// Routers and pools on real threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"

namespace sluice::actor_group_stress_test {
namespace {

using namespace std::chrono_literals;

struct add {
  int n;
  int key() const { return n; }
};
struct leave {};
struct fall {};
struct total {
  using reply = int;
};

struct tally {
  std::atomic<std::uint64_t> handled{0};
};

class adder : public actor<adder, add, leave, fall, total> {
 public:
  explicit adder(tally* t) : tally_(t) {}
  void on(add) { ++tally_->handled; }
  void on(leave) {
    ++tally_->handled;
    stop_self();
  }
  void on(fall) {
    ++tally_->handled;
    throw std::runtime_error("it fell");
  }
  int on(total) { return static_cast<int>(tally_->handled.load()); }

 private:
  tally* tally_;
};

actor_system_options quiet() {
  actor_system_options o;
  o.on_failure = [](const actor_failure&) {};
  return o;
}

constexpr int senders = 3;
constexpr int each = 4000;

template <class F>
void with_senders(F f) {
  std::vector<seam::thread> threads;
  for (int t = 0; t < senders; ++t) threads.emplace_back([&, t] { f(t); });
  for (auto& t : threads) t.join();
}

class actor_group_stress_test : public ::testing::TestWithParam<routing> {};

// Members end all the time; every message is handled, rejected, or a dead letter.
TEST_P(actor_group_stress_test, NothingIsLostWhileMembersEndAndAreReplaced) {
  tally t;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool, quiet());
  const actor_router<adder> desk(system,
                                 {.rule = GetParam(),
                                  .members = 3,
                                  .member = {.mailbox = {.capacity = 32}},
                                  .supervise = {.restarts_max = 1'000'000}},
                                 &t);
  std::atomic<std::uint64_t> accepted{0};
  with_senders([&](int sender) {
    for (int i = 0; i < each; ++i) {
      status outcome = status::ok;
      if (i % 97 == 0) {
        outcome = desk.send(leave{});
      } else if (i % 31 == 0) {
        outcome = desk.send(fall{});
      } else if (i % 2 == 0) {
        outcome = desk.try_send(add{sender * each + i});
      } else {
        outcome = desk.send(add{sender * each + i});
      }
      ASSERT_NE(outcome, status::closed);
      if (outcome) ++accepted;
    }
  });
  desk.close();
  (void)desk.ended().get();
  const actor_group_stats s = desk.stats();
  EXPECT_EQ(accepted.load(), t.handled.load() + system.stats().dead_letters);
  EXPECT_EQ(s.handed, accepted.load());
  EXPECT_EQ(s.handed + s.refused, static_cast<std::uint64_t>(senders) * each);
  EXPECT_GT(s.replaced, 0U);
}

TEST_P(actor_group_stress_test, NothingIsLostWhileTheNumberOfMembersChanges) {
  tally t;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool, quiet());
  const actor_router<adder> desk(
      system, {.rule = GetParam(), .members = 2, .member = {.mailbox = {.capacity = 8}}}, &t);
  with_senders([&](int sender) {
    for (int i = 0; i < each; ++i) {
      if (sender == 0 && i % 50 == 0) desk.resize(static_cast<std::size_t>(1 + (i / 50) % 5));
      ASSERT_TRUE(desk.send(add{i}));
    }
  });
  // A keeper that is closed before it is notified of the ends counts none of them.
  testing::eventually([&] { return desk.stats().drained > 0; }, "a member to be drained");
  desk.close();
  (void)desk.ended().get();
  EXPECT_EQ(t.handled.load(), static_cast<std::uint64_t>(senders) * each);
  EXPECT_EQ(system.stats().dead_letters, 0U);
}

INSTANTIATE_TEST_SUITE_P(every_rule, actor_group_stress_test,
                         ::testing::Values(routing::round_robin, routing::least_loaded,
                                           routing::by_key),
                         [](const auto& rule) { return std::string(to_string(rule.param)); });

TEST(actor_group_stress, APoolGrowsAndShrinksUnderLoadAndLosesNothing) {
  tally t;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool, quiet());
  const actor_pool<adder> desk(system,
                               {.members_max = 6,
                                .grow_at = 2,
                                .grow_pause = 100us,
                                .idle_for = 400us,
                                .member = {.mailbox = {.capacity = 16}}},
                               &t);
  const any_ref keeper = system.children().at(0).actor;
  std::atomic<std::uint64_t> sent{0};
  with_senders([&](int sender) {
    // The keeper may check the load only after the members have handled everything.
    for (int i = 0; i < each || desk.stats().grown == 0; ++i) {
      ASSERT_TRUE(desk.send(add{i}));
      ++sent;
      if (sender == 0 && i % 500 == 0) (void)desk.ask(total{}).get();
    }
  });
  // A keeper that has seen a long queue and not acted on it would grow after the last check.
  testing::eventually([&] { return t.handled == sent; }, "the queues to be empty");
  testing::eventually([&] { return keeper.cell_of().load() == 0; }, "the keeper to be idle");
  // Draining actors are no members, but have not ended.
  testing::eventually(
      [&] { return desk.size() == 1 && desk.stats().drained == desk.stats().grown; },
      "the pool to shrink");
  desk.close();
  (void)desk.ended().get();
  EXPECT_EQ(t.handled.load(), sent.load());
  EXPECT_EQ(system.stats().dead_letters, 0U);
  EXPECT_GT(desk.stats().grown, 0U);
  EXPECT_EQ(desk.stats().grown, desk.stats().drained);
}

TEST(actor_group_stress, ASenderWithoutAMemberWaitsForOne) {
  tally t;
  manual_clock time;
  work_stealing_pool pool({.threads = 2});
  actor_system_options o = quiet();
  o.time = &time;
  actor_system system(pool, std::move(o));
  const actor_router<adder> desk(
      system, {.members = 1, .supervise = {.restarts_max = 1, .within = 10s}}, &t);
  for (int i = 0; i < 2; ++i) {
    const auto only = desk.members().front();
    only.stop();
    (void)only.ended().get();
    testing::eventually([&] { return desk.stats().replaced == 1; }, "the first to be replaced");
    testing::eventually([&] { return desk.size() == (i == 0 ? 1U : 0U); }, "the list to follow");
  }
  testing::eventually([&] { return time.pending() == 1; }, "the keeper to wait for its timer");
  EXPECT_EQ(desk.try_send(add{1}), status::full);
  EXPECT_EQ(desk.send(add{1}, 1ms), status::timed_out);
  status blocking = status::empty;
  status awaited = status::empty;
  seam::thread first([&] { blocking = desk.send(add{1}); });
  seam::thread second([&] {
    awaited = sync_wait([](actor_router<adder> router) -> task<status> {
      co_return co_await router.async_send(add{2});
    }(desk));
  });
  time.advance(11s);
  first.join();
  second.join();
  EXPECT_TRUE(blocking);
  EXPECT_TRUE(awaited);
  EXPECT_EQ(desk.stats().replaced, 2U);
}

TEST(actor_group_stress, ACoroutineWaitsForCapacityAndIsEndedByItsLimits) {
  tally t;
  manual_executor members_on;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool, quiet());
  {
    const actor_router<adder> desk(
        system, {.members = 2, .member = {.mailbox = {.capacity = 1}, .on = &members_on}}, &t);
    const auto send = [](actor_router<adder> router, int n, wait_limits limits) -> task<status> {
      co_return co_await router.async_send(add{n}, std::move(limits));
    };
    EXPECT_TRUE(sync_wait(send(desk, 1, {})));
    EXPECT_TRUE(sync_wait(send(desk, 2, {})));
    EXPECT_EQ(sync_wait(send(desk, 3, {deadline::after(1ms)})), status::timed_out);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(sync_wait(send(desk, 3, {stop.get_token()})), status::stopped);
    status outcome = status::empty;
    seam::thread waits([&] { outcome = sync_wait(send(desk, 3, {})); });
    while (t.handled.load() < 3) (void)members_on.run_next();
    waits.join();
    EXPECT_TRUE(outcome);
    desk.close();
    auto ended = desk.ended();
    EXPECT_EQ(sync_wait(send(desk, 4, {})), status::closed);
    while (!ended.is_ready()) (void)members_on.run_next({deadline::after(10ms)});
  }
}

}  // namespace
}  // namespace sluice::actor_group_stress_test
