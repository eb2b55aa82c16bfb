// The cost of an idle actor is memory, and nothing else.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/base/detail/block_memory.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::actor_cost_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t bytes_max = 300;
constexpr std::size_t many = 100'000;

struct hello {};
struct keep {
  using reply = int;
};
struct wait_for {
  future<int> awaited;
};

class idler : public actor<idler, hello> {
 public:
  void on(hello) {}
};
struct listen_to {
  ref<idler> target;
};

// Has begun every operation that can be pending.
class busybody : public actor<busybody, hello, keep, wait_for, listen_to> {
 public:
  void on(hello m) { EXPECT_TRUE(stash(m)); }
  void on(keep, responder<int> asker) { kept_ = std::move(asker); }
  task<> on(wait_for m) { (void)co_await reentrant(std::move(m.awaited)); }
  void on(listen_to m) {
    watch(m.target, [](const actor_end&) { return hello{}; });
    become_stacked([](const hello&) {});
  }

 private:
  responder<int> kept_;
};

class actor_cost_test : public ::testing::Test {
 protected:
  ~actor_cost_test() override {
    system.stop();
    while (!system.join(deadline::after(0ns))) on.run_all();
  }
  static actor_system_options with(clock& time) {
    actor_system_options o;
    o.time = &time;
    return o;
  }
  // Returns the allocated and not freed bytes, with malloc's overhead for each block.
  static std::size_t bytes_in_use() {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  }
  // No clock and no executor calls it.
  void expect_idle() {
    EXPECT_EQ(on.pending(), 0U) << "an actor is queued at the executor";
    EXPECT_EQ(time.pending(), 0U) << "an actor has a timer";
    time.advance(24h);
    EXPECT_EQ(on.run_all(), 0U);
  }

  manual_clock time;
  manual_executor on;
  actor_system system{on, with(time)};
};

TEST_F(actor_cost_test, AnActorAndItsRefTakeAtMost300Bytes) {
  if (!detail::caches_blocks) GTEST_SKIP() << "a sanitizer adds memory to each block";
  std::vector<ref<idler>> all;
  const std::size_t before = bytes_in_use();
  all.reserve(many);
  for (std::size_t i = 0; i < many; ++i) all.push_back(system.spawn<idler>());
  const std::size_t spawned = bytes_in_use() - before;
  EXPECT_GT(spawned, many * sizeof(detail::cell)) << "they were allocated by another allocator";
  EXPECT_LE(spawned, many * bytes_max);
  for (const auto& each : all) {
    ASSERT_TRUE(each.send(hello{}));
    on.run_all();
  }
  EXPECT_LE(bytes_in_use() - before, many * bytes_max) << "also after they have handled messages";
}

TEST_F(actor_cost_test, IdleActorsAreNotQueuedAndHaveNoTimer) {
  std::vector<ref<idler>> all;
  for (std::size_t i = 0; i < many; ++i) all.push_back(system.spawn<idler>());
  expect_idle();
  for (const auto& each : all) ASSERT_TRUE(each.send(hello{}));
  EXPECT_EQ(on.run_all(), many) << "a turn each";
  expect_idle();
}

TEST_F(actor_cost_test, WaitingActorsAreIdleToo) {
  const auto watched = system.spawn<idler>();
  const auto busy = system.spawn<busybody>();
  promise<int> never;
  auto unanswered = busy.ask(keep{});
  ASSERT_TRUE(busy.send(hello{}));
  ASSERT_TRUE(busy.send(wait_for{never.get_future()}));
  ASSERT_TRUE(busy.send(listen_to{watched}));
  on.run_all();
  expect_idle();
  EXPECT_FALSE(unanswered.is_ready());
}

}  // namespace
}  // namespace sluice::actor_cost_test
