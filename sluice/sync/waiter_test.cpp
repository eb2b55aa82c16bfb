#include "sluice/sync/waiter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::waiter_test {
namespace {

using namespace std::chrono_literals;
using state = waiter::state;

// A waiter that only counts how often it was woken.
class counting_waiter final : public waiter {
 public:
  counting_waiter() noexcept : waiter(&count, false) {}
  std::atomic<int> woken{0};

 private:
  static void count(waiter& self) noexcept { ++static_cast<counting_waiter&>(self).woken; }
};

TEST(waiter_test, IsEndedOnlyOnce) {
  wait_node node;
  counting_waiter claimed;
  ASSERT_TRUE(claimed.commit());
  EXPECT_TRUE(claimed.try_claim(node));
  EXPECT_FALSE(claimed.try_claim(node));
  EXPECT_FALSE(claimed.end(state::timed_out));
  EXPECT_FALSE(claimed.end(state::stopped));
  EXPECT_EQ(claimed.ended_by(), state::claimed);
  EXPECT_EQ(claimed.winner(), &node);

  counting_waiter stopped;
  ASSERT_TRUE(stopped.commit());
  EXPECT_TRUE(stopped.end(state::stopped));
  EXPECT_FALSE(stopped.end(state::timed_out));
  EXPECT_FALSE(stopped.try_claim(node));
  EXPECT_EQ(stopped.ended_by(), state::stopped);
  EXPECT_EQ(stopped.winner(), nullptr);
}

TEST(waiter_test, AWaitEndedWhileArmingIsNotWokenAndNotLinked) {
  wait_list list;
  wait_node node;
  counting_waiter w;
  EXPECT_FALSE(w.end(state::timed_out)) << "there is no party to wake yet";
  EXPECT_EQ(link_waiter(list, node, w), enlisted::ended);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(w.ended_by(), state::timed_out);
  w.rearm();
  EXPECT_EQ(link_waiter(list, node, w), enlisted::waiting) << "it can be used again";
  node.unlink();
}

TEST(waiter_test, CannotBeClaimedBeforeItIsCommitted) {
  wait_node node;
  counting_waiter w;
  EXPECT_FALSE(w.try_claim(node));
  EXPECT_TRUE(w.commit());
}

TEST(waiter_test, ClaimFrontSkipsWaitersThatGaveUp) {
  wait_list list;
  counting_waiter waiters[4];
  wait_node nodes[4];
  for (int i = 0; i < 4; ++i) ASSERT_EQ(link_waiter(list, nodes[i], waiters[i]), enlisted::waiting);
  waiters[0].end(state::timed_out);
  waiters[2].end(state::stopped);
  EXPECT_EQ(claim_front(list), &nodes[1]);
  EXPECT_FALSE(nodes[0].linked());
  EXPECT_EQ(claim_front(list), &nodes[3]);
  EXPECT_EQ(claim_front(list), nullptr);
}

TEST(waiter_test, AWaiterLinkedInFrontIsClaimedFirst) {
  wait_list list;
  counting_waiter a;
  counting_waiter b;
  wait_node node_a;
  wait_node node_b;
  (void)link_waiter(list, node_a, a);
  (void)link_waiter(list, node_b, b, list_end::front);
  EXPECT_EQ(claim_front(list), &node_b);
  EXPECT_EQ(claim_front(list), &node_a);
}

TEST(waiter_test, ABatchWakesInOrderWhenItsScopeEnds) {
  counting_waiter a;
  counting_waiter b;
  {
    wake_batch wakes;
    wakes.add(a);
    wakes.add(b);
    EXPECT_EQ(a.woken + b.woken, 0);
  }
  EXPECT_EQ(a.woken, 1);
  EXPECT_EQ(b.woken, 1);
}

TEST(waiter_test, AThreadThatWasClaimedBeforeItSleepsDoesNotSleep) {
  wait_list list;
  wait_node node;
  thread_waiter me;
  ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
  ASSERT_EQ(claim_front(list), &node);
  me.wake();
  EXPECT_EQ(me.park({}), state::claimed);
}

TEST(waiter_test, AThreadSleepsUntilItsDeadline) {
  for (const std::uint32_t spin : {0U, 100U}) {
    wait_list list;
    wait_node node;
    thread_waiter me;
    ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(me.spin(spin));
    EXPECT_EQ(me.park({deadline::after(3ms), {}}), state::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 3ms);
    node.unlink();
  }
}

TEST(waiter_test, AThreadWithAnEarlierStopDoesNotSleep) {
  std::stop_source source;
  source.request_stop();
  wait_list list;
  wait_node node;
  thread_waiter me;
  ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
  EXPECT_EQ(me.park({{}, source.get_token()}), state::stopped);
  node.unlink();
}

// A notifier, a deadline and a stop at the same moment, many times on the same thread: one of them
// wins, the thread wakes once, and a left-over token does not end the next wait.
TEST(waiter_test, ExactlyOneOfClaimDeadlineAndStopEndsEachWait) {
  stress run;
  constexpr int rounds = 3'000;
  spin_lock guard;
  wait_list list;  // protected by guard
  std::stop_source source;
  std::atomic<int> claims{0};
  std::atomic<bool> done{false};
  int seen[5] = {};
  std::jthread notifier([&] {
    auto choose = run.generator(1);
    while (!done) {
      for (auto n = choose.below(2'000); n > 0; --n) seam::pause();
      wake_batch wakes;
      const std::lock_guard hold(guard);
      if (auto* const node = claim_front(list)) {
        ++claims;
        wakes.add(*node->waiting);
      }
    }
  });
  auto choose = run.generator(2);
  for (int round = 0; round < rounds; ++round) {
    wait_node node;
    thread_waiter me;
    std::stop_source stop;
    std::jthread stopper;
    if (choose.below(8) == 0) stopper = std::jthread([&] { stop.request_stop(); });
    {
      const std::lock_guard hold(guard);
      ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
    }
    const auto limit = deadline::after(std::chrono::microseconds(choose.below(30)));
    (void)me.spin(choose.below(2) * 100);
    const auto ended = me.park({limit, stop.get_token()});
    ++seen[static_cast<int>(ended)];
    const std::lock_guard hold(guard);
    if (node.linked()) node.unlink();
    EXPECT_EQ(me.winner() != nullptr, ended == state::claimed);
  }
  done = true;
  notifier.join();
  run.did(rounds);
  EXPECT_EQ(seen[static_cast<int>(state::claimed)], claims.load());
  EXPECT_EQ(seen[static_cast<int>(state::claimed)] + seen[static_cast<int>(state::timed_out)] +
                seen[static_cast<int>(state::stopped)],
            rounds);
}

TEST(waiter_test, ATokenOfAnotherWaitDoesNotEndThisOne) {
  spin_lock guard;
  wait_list list;  // protected by guard
  wait_node node;
  thread_waiter me;
  {
    const std::lock_guard hold(guard);
    ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
  }
  seam::this_parker().unpark();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(me.park({deadline::after(std::chrono::milliseconds(20)), {}}), state::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  node.unlink();
}

// ---- observers of sleeping threads

class listener final : public sleep_observer {
 public:
  listener() : before_(observe_sleep(this)) {}
  ~listener() { observe_sleep(before_); }
  void falls_asleep() noexcept override { ++asleep; }
  void woke_up() noexcept override { ++awake; }
  std::atomic<int> asleep{0};
  std::atomic<int> awake{0};

 private:
  sleep_observer* const before_;
};

TEST(sleep_observer_test, IsCalledAtEverySleepAndItsEnd) {
  spin_lock guard;
  wait_list list;  // protected by guard
  std::atomic<listener*> observer{nullptr};
  std::jthread sleeper([&] {
    listener recorder;
    observer = &recorder;
    wait_node node;
    thread_waiter me;
    {
      const std::lock_guard hold(guard);
      ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
    }
    EXPECT_EQ(me.park({}), state::claimed);
    EXPECT_EQ(recorder.asleep, 1);
    EXPECT_EQ(recorder.awake, 1);
  });
  eventually([&] { return observer.load() != nullptr && observer.load()->asleep == 1; });
  EXPECT_EQ(observer.load()->awake, 0) << "it is called when the thread sleeps, not afterwards";
  wake_batch wakes;
  const std::lock_guard hold(guard);
  wakes.add(*claim_front(list)->waiting);
}

TEST(sleep_observer_test, IsCalledForASleepThatALimitEnds) {
  const listener recorder;
  std::stop_source source;
  for (int way = 0; way < 2; ++way) {
    wait_list list;
    wait_node node;
    thread_waiter me;
    ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
    if (way == 0) {
      EXPECT_EQ(me.park({deadline::after(1ms), {}}), state::timed_out);
    } else {
      source.request_stop();
      EXPECT_EQ(me.park(source.get_token()), state::stopped);
    }
    node.unlink();
    EXPECT_EQ(recorder.asleep, way + 1);
    EXPECT_EQ(recorder.awake, way + 1);
  }
}

TEST(sleep_observer_test, IsNotCalledForAWaitWithoutSleep) {
  const listener recorder;
  wait_list list;
  wait_node node;
  thread_waiter me;
  ASSERT_EQ(link_waiter(list, node, me), enlisted::waiting);
  ASSERT_EQ(claim_front(list), &node);
  me.wake();
  EXPECT_TRUE(me.spin(100));
  EXPECT_EQ(me.park({}), state::claimed);
  EXPECT_EQ(recorder.asleep, 0);
  EXPECT_EQ(recorder.awake, 0);
}

TEST(sleep_observer_test, BelongsToOneThreadAndIsGivenBack) {
  const listener outer;
  {
    const listener inner;
    EXPECT_EQ(observe_sleep(nullptr), &inner);
    EXPECT_EQ(observe_sleep(const_cast<listener*>(&inner)), nullptr);
  }
  std::jthread([] { EXPECT_EQ(observe_sleep(nullptr), nullptr); }).join();
  EXPECT_EQ(observe_sleep(const_cast<listener*>(&outer)), &outer);
}

}  // namespace
}  // namespace sluice::testing::waiter_test
