#include "sluice/queue/delay_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::delay_queue_test {
namespace {

using namespace std::chrono_literals;
using testing::detached;
using testing::eventually;

class DelayQueue : public ::testing::Test {
 protected:
  void push_in(std::chrono::nanoseconds wait, int number) {
    ASSERT_EQ(q.push({number, clock.now() + wait}), status::ok);
  }
  void expect_next(int number) {
    auto got = q.try_pop();
    ASSERT_TRUE(got) << "expected " << number << ", found " << to_string(got.status());
    EXPECT_EQ(got->item, number);
    EXPECT_LE(got->at, clock.now());
  }
  void expect_none() { EXPECT_EQ(q.try_pop().status(), status::empty); }
  // A coroutine that records the items it takes until the queue is closed.
  static detached collect(delay_queue<int>& from, std::vector<int>& into) {
    while (auto got = co_await from.async_pop()) into.push_back(got->item);
    into.push_back(-1);
  }
  // A consumer whose wait ends by its limits and leaves the timer armed.
  static void give_up_waiting(delay_queue<int>& on) {
    std::stop_source stop;
    status result = status::ok;
    [](delay_queue<int>& from, wait_limits limits, status& ended) -> detached {
      const auto got = co_await from.async_pop(std::move(limits));
      ended = got.status();
    }(on, {{}, stop.get_token()}, result);
    stop.request_stop();
    EXPECT_EQ(result, status::stopped);
  }

  manual_clock clock;
  delay_queue<int> q{{.capacity = 100, .name = "later", .clock = &clock}};
};

TEST_F(DelayQueue, ItemAppearsAtItsTimeAndNotBefore) {
  push_in(10s, 1);
  expect_none();
  clock.advance(10s - 1ns);
  expect_none();
  clock.advance(1ns);
  expect_next(1);
  EXPECT_TRUE(q.empty());
}

TEST_F(DelayQueue, ItemsComeOutInOrderOfTheirTimes) {
  for (const int s : {5, 2, 9, 1, 7}) push_in(std::chrono::seconds(s), s);
  clock.advance(6s);
  for (const int s : {1, 2, 5}) expect_next(s);
  expect_none();
  clock.advance(6s);
  for (const int s : {7, 9}) expect_next(s);
}

TEST_F(DelayQueue, EqualTimesComeOutInOrderOfArrival) {
  for (int i = 0; i < 50; ++i) push_in(std::chrono::seconds(1 + i % 2), i);
  clock.advance(2s);
  for (int i = 0; i < 50; i += 2) expect_next(i);
  for (int i = 1; i < 50; i += 2) expect_next(i);
}

TEST_F(DelayQueue, TimeInThePastIsReadyAtOnce) {
  push_in(-1h, 1);
  expect_next(1);
}

TEST_F(DelayQueue, CapacityCountsItemsThatAreNotDue) {
  delay_queue<int> small({.capacity = 1, .clock = &clock});
  ASSERT_EQ(small.push({1, clock.now() + 1h}), status::ok);
  EXPECT_EQ(small.try_push({2, clock.now()}), status::full);
  EXPECT_EQ(small.size(), 1u);
}

TEST_F(DelayQueue, WaitingThreadIsWokenWhenTheTimeComes) {
  push_in(5s, 1);
  std::optional<outcome<delayed<int>>> got;
  std::jthread consumer([&] { got.emplace(q.pop()); });
  eventually([&] { return q.waiting_to_pop() == 1; });
  EXPECT_EQ(clock.pending(), 1u);
  clock.advance(4s);
  EXPECT_EQ(q.waiting_to_pop(), 1u);
  clock.advance(1s);
  consumer.join();
  ASSERT_TRUE(*got);
  EXPECT_EQ((*got)->item, 1);
}

TEST_F(DelayQueue, WaitingCoroutineIsHandedTheItemWhenTheTimeComes) {
  push_in(5s, 1);
  std::vector<int> got;
  collect(q, got);
  clock.advance(4s);
  EXPECT_TRUE(got.empty());
  clock.advance(1s);
  EXPECT_EQ(got, std::vector{1});
  push_in(1s, 2);
  push_in(2s, 3);
  clock.advance(5s);
  EXPECT_EQ(got, (std::vector{1, 2, 3}));
  q.close();
  EXPECT_EQ(got.back(), -1);
}

TEST_F(DelayQueue, EarlierItemOvertakesTheAwaitedItem) {
  push_in(1h, 1);
  std::vector<int> got;
  collect(q, got);
  push_in(5s, 2);
  EXPECT_EQ(clock.pending(), 1u) << "one timer, for the earliest";
  clock.advance(5s);
  EXPECT_EQ(got, std::vector{2});
  push_in(-1s, 3);
  EXPECT_EQ(got, (std::vector{2, 3})) << "the item was due when it was pushed";
  clock.advance(1h);
  EXPECT_EQ(got, (std::vector{2, 3, 1}));
  q.close();
}

TEST_F(DelayQueue, EarlierItemWakesAThreadThatWaitsForALaterOne) {
  push_in(1h, 1);
  std::optional<outcome<delayed<int>>> got;
  std::jthread consumer([&] { got.emplace(q.pop()); });
  eventually([&] { return q.waiting_to_pop() == 1; });
  push_in(1s, 2);
  clock.advance(1s);
  consumer.join();
  EXPECT_EQ((*got)->item, 2);
  EXPECT_EQ(q.size(), 1u);
}

TEST_F(DelayQueue, LaterItemDoesNotDelayTheAwaitedItem) {
  push_in(5s, 1);
  std::vector<int> got;
  collect(q, got);
  push_in(6s, 2);
  clock.advance(5s);
  EXPECT_EQ(got, std::vector{1});
  clock.advance(1s);
  EXPECT_EQ(got, (std::vector{1, 2}));
  q.close();
}

TEST_F(DelayQueue, DeadlineBeforeTheItemsTimeTakesNothing) {
  push_in(10s, 1);
  std::optional<outcome<delayed<int>>> by_thread;
  std::jthread consumer([&] {
    by_thread.emplace(q.pop({deadline::after(9s, clock), {}}));
  });
  eventually([&] { return clock.pending() == 2; });
  std::optional<outcome<delayed<int>>> by_coroutine;
  [](auto& from, auto& into, auto& on) -> detached {
    into.emplace(co_await from.async_pop({deadline::after(9s, on), {}}));
  }(q, by_coroutine, clock);
  clock.advance(9s);
  consumer.join();
  EXPECT_EQ(by_thread->status(), status::timed_out);
  EXPECT_EQ(by_coroutine->status(), status::timed_out);
  EXPECT_EQ(q.pop(1ms).status(), status::timed_out) << "also with a deadline on the real clock";
  EXPECT_EQ(q.size(), 1u);
  clock.advance(1s);
  expect_next(1);
}

TEST_F(DelayQueue, AnItemThatIsDueByTheDeadlineWinsOverIt) {
  for (const auto later : {0ns, 1ns}) {
    push_in(10s, 1);
    push_in(10s, 2);
    const auto until = deadline::after(10s + later, clock);
    std::optional<outcome<delayed<int>>> by_coroutine;
    [](auto& from, auto& into, deadline when) -> detached {
      into.emplace(co_await from.async_pop({when, {}}));
    }(q, by_coroutine, until);
    std::optional<outcome<delayed<int>>> by_thread;
    std::jthread consumer([&] { by_thread.emplace(q.pop({until, {}})); });
    eventually([&] { return clock.pending() == 3; });
    clock.advance(10s + later);
    consumer.join();
    ASSERT_TRUE(*by_coroutine);
    ASSERT_TRUE(*by_thread);
    EXPECT_TRUE(q.empty());
  }
}

TEST(DelayQueueOnTheRealClock, AnItemThatIsDueByTheDeadlineWinsThoughTheClockIsLate) {
  struct blocking_timer final : timer {
    bool claim() noexcept override { return true; }
    void fire() noexcept override {
      eventually([&] { return go.load(); });
      has_fired = true;
    }
    std::atomic<bool> go{false};
    std::atomic<bool> has_fired{false};
  };
  blocking_timer first;
  delay_queue<int> q(1);
  const auto soon = real_clock().now() + 20ms;
  ASSERT_EQ(q.push({1, soon + 1ns}), status::ok);
  if (!real_clock().arm(first, soon)) return;  // this machine was too slow
  const auto got = q.pop(soon + 2ns);  // a deadline on the real clock needs no timer
  first.go = true;
  eventually([&] { return first.has_fired.load(); });
  ASSERT_TRUE(got) << to_string(got.status());
  EXPECT_EQ(got->item, 1);
}

TEST_F(DelayQueue, StopBeforeTheItemsTimeTakesNothing) {
  push_in(10s, 1);
  std::stop_source stop;
  std::optional<outcome<delayed<int>>> got;
  std::jthread consumer([&] { got.emplace(q.pop(stop.get_token())); });
  eventually([&] { return q.waiting_to_pop() == 1; });
  stop.request_stop();
  consumer.join();
  EXPECT_EQ(got->status(), status::stopped);
  clock.advance(10s);
  expect_next(1);
}

TEST_F(DelayQueue, ClosedQueueReturnsEachItemAtItsTime) {
  push_in(1s, 1);
  push_in(2s, 2);
  std::vector<int> got;
  collect(q, got);
  q.close();
  EXPECT_TRUE(got.empty()) << "closed, but not drained";
  EXPECT_EQ(q.try_pop().status(), status::empty);
  EXPECT_EQ(q.push({3, clock.now()}), status::closed);
  clock.advance(1s);
  EXPECT_EQ(got, std::vector{1});
  clock.advance(1s);
  EXPECT_EQ(got, (std::vector{1, 2, -1}));
  EXPECT_EQ(q.try_pop().status(), status::closed);
}

TEST_F(DelayQueue, ConsumersOfAClosedQueueWaitForTheLastItem) {
  push_in(1s, 1);
  std::atomic<int> items{0};
  std::atomic<int> closed{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 3; ++i) {
    crew.emplace_back([&] {
      while (q.pop()) ++items;
      ++closed;
    });
  }
  eventually([&] { return q.waiting_to_pop() == 3; });
  q.close();
  EXPECT_EQ(q.waiting_to_pop(), 3u);
  clock.advance(1s);
  crew.clear();
  EXPECT_EQ(items, 1);
  EXPECT_EQ(closed, 3);
}

TEST_F(DelayQueue, ManyItemsDueAtOnceReachManyConsumers) {
  for (int i = 0; i < 60; ++i) push_in(1s, i);
  std::atomic<int> sum{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 4; ++i) {
    crew.emplace_back([&] {
      while (auto got = q.pop()) sum += got->item;
    });
  }
  std::vector<int> by_coroutine;
  collect(q, by_coroutine);
  eventually([&] { return q.waiting_to_pop() == 5; });
  clock.advance(1s);
  eventually([&] { return q.empty(); });
  q.close();
  crew.clear();
  for (const int i : by_coroutine) sum += std::max(i, 0);
  EXPECT_EQ(sum, 59 * 60 / 2);
}

TEST_F(DelayQueue, PopSomeTakesOnlyDueItems) {
  for (int i = 1; i <= 5; ++i) push_in(std::chrono::seconds(i), i);
  clock.advance(3s);
  auto some = q.pop_some(10);
  ASSERT_TRUE(some);
  ASSERT_EQ(some->size(), 3u);
  EXPECT_EQ((*some)[2].item, 3);
  EXPECT_EQ(q.try_pop_some(10).status(), status::empty);
}

TEST_F(DelayQueue, NoTimerIsArmedWithoutAWaiter) {
  push_in(1s, 1);
  EXPECT_EQ(clock.pending(), 0u);
  EXPECT_EQ(q.pop(0ms).status(), status::timed_out);
  std::vector<int> got;
  collect(q, got);
  EXPECT_EQ(clock.pending(), 1u);
  clock.advance(1s);
  EXPECT_EQ(clock.pending(), 0u);
  q.close();
}

TEST_F(DelayQueue, DropOldestDropsTheItemPushedFirst) {
  std::vector<int> dropped;
  delay_queue<int> small({.capacity = 2,
                          .overflow = overflow::drop_oldest,
                          .on_drop = [&](delayed<int>&& d) { dropped.push_back(d.item); },
                          .clock = &clock});
  ASSERT_EQ(small.push({1, clock.now() + 9s}), status::ok);
  ASSERT_EQ(small.push({2, clock.now() + 1s}), status::ok);
  ASSERT_EQ(small.push({3, clock.now() + 5s}), status::ok);
  EXPECT_EQ(dropped, std::vector{1});
  clock.advance(10s);
  EXPECT_EQ(small.pop()->item, 2);
  EXPECT_EQ(small.pop()->item, 3);
}

TEST_F(DelayQueue, LatestReplacesTheItemPushedLastAlsoIfItIsAwaited) {
  delay_queue<int> one({.capacity = 1, .overflow = overflow::latest, .clock = &clock});
  std::vector<int> got;
  collect(one, got);
  ASSERT_EQ(one.push({1, clock.now() + 1s}), status::ok);
  ASSERT_EQ(one.push({2, clock.now() + 5s}), status::ok);
  clock.advance(1s);
  EXPECT_TRUE(got.empty());
  clock.advance(4s);
  EXPECT_EQ(got, std::vector{2});
  one.close();
}

// ---- destruction

TEST_F(DelayQueue, MayBeDestroyedByTheCoroutineThatItsTimerResumed) {
  auto own = std::make_unique<delay_queue<int>>(
      delay_queue<int>::options{.capacity = 1, .clock = &clock});
  ASSERT_EQ(own->push({1, clock.now() + 1s}), status::ok);
  bool over = false;
  [](std::unique_ptr<delay_queue<int>>& owner, bool& done) -> detached {
    EXPECT_EQ((co_await owner->async_pop())->item, 1);
    owner.reset();
    done = true;
  }(own, over);
  clock.advance(1s);
  EXPECT_TRUE(over);
}

TEST_F(DelayQueue, MayBeDestroyedWhileItsTimerIsAboutToFire) {
  auto other = std::make_unique<delay_queue<int>>(
      delay_queue<int>::options{.capacity = 1, .clock = &clock});
  push_in(1s, 1);
  [](delay_queue<int>& from, std::unique_ptr<delay_queue<int>>& victim) -> detached {
    (void)co_await from.async_pop();
    victim.reset();  // on the clock's thread, after the clock claimed the victim's timer
  }(q, other);
  ASSERT_EQ(other->push({1, clock.now() + 1s}), status::ok);
  give_up_waiting(*other);
  EXPECT_EQ(clock.pending(), 2u);
  clock.advance(1s);
  EXPECT_EQ(other, nullptr);
}

TEST_F(DelayQueue, MayBeDestroyedWithATimerOfAnEndedWait) {
  {
    delay_queue<int> brief({.capacity = 1, .clock = &clock});
    ASSERT_EQ(brief.push({1, clock.now() + 1s}), status::ok);
    give_up_waiting(brief);
    EXPECT_EQ(clock.pending(), 1u);
  }
  EXPECT_EQ(clock.pending(), 0u);
}

TEST(DelayQueueStress, DestructionDoesNotRaceWithAFiringTimer) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 77);
  constexpr int rounds = 1500;
  random r(seed);
  int taken = 0;
  for (int i = 0; i < rounds; ++i) {
    delay_queue<int> q(1);
    const auto wait = std::chrono::microseconds(20 + r.below(60));
    ASSERT_EQ(q.push({i, real_clock().now() + wait}), status::ok);
    taken += q.pop(wait + std::chrono::microseconds(r.below(40)) - 20us) ? 1 : 0;
  }
  std::printf("%d queues, %d items taken in time, seed %llu\n", rounds, taken,
              static_cast<unsigned long long>(seed));
}

// ---- the real clock

TEST(DelayQueueStress, EveryItemComesOutOnceAndNotEarly) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 31337);
  constexpr int producers = 2;
  constexpr int each = 400;
  delay_queue<int> q(64);
  std::vector<std::atomic<int>> seen(producers * each);
  std::atomic<int> early{0};
  const auto note = [&](const delayed<int>& d) {
    if (real_clock().now() < d.at) ++early;
    ++seen[static_cast<std::size_t>(d.item)];
  };
  std::atomic<int> coroutines_left{2};
  for (int i = 0; i < 2; ++i) {
    [](auto& from, auto& record, auto& left) -> detached {
      while (auto got = co_await from.async_pop()) record(*got);
      --left;
    }(q, note, coroutines_left);
  }
  {
    std::vector<std::jthread> consumers;
    for (int i = 0; i < 2; ++i) {
      consumers.emplace_back([&, i] {
        random r(seed + 100 + static_cast<std::uint64_t>(i));
        for (;;) {
          auto got = i == 0 ? q.pop() : q.pop(std::chrono::microseconds(r.below(100)));
          if (got) {
            note(*got);
          } else if (got.status() == status::closed) {
            return;
          }
        }
      });
    }
    std::vector<std::jthread> crew;
    for (int p = 0; p < producers; ++p) {
      crew.emplace_back([&, p] {
        random r(seed + static_cast<std::uint64_t>(p));
        for (int i = 0; i < each; ++i) {
          const auto at = real_clock().now() + std::chrono::microseconds(r.below(300));
          EXPECT_EQ(q.push({p * each + i, at}), status::ok);
        }
      });
    }
    crew.clear();
    q.close();
  }
  eventually([&] { return coroutines_left == 0; });
  EXPECT_EQ(early, 0);
  for (const auto& count : seen) EXPECT_EQ(count, 1);
  std::printf("%d items, 2 threads and 2 coroutines, seed %llu\n", producers * each,
              static_cast<unsigned long long>(seed));
}

// ---- against a model

class DelayModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DelayModel, AgreesWithALinearSearch) {
  random r(GetParam());
  constexpr int operations = 20'000;
  const overflow policies[] = {overflow::block, overflow::drop_oldest, overflow::latest};
  const auto policy = policies[r.below(3)];
  const std::size_t capacity = 1 + r.below(20);
  manual_clock clock;
  delay_queue<int> q({.capacity = capacity, .overflow = policy, .clock = &clock});
  std::vector<delayed<int>> model;  // in order of arrival
  std::vector<int> waiting_got;     // by the waiting coroutine, if any
  int waiting = 0;
  const auto take = [&]() -> std::optional<int> {
    auto first = std::min_element(model.begin(), model.end(),
                                  [](auto& a, auto& b) { return a.at < b.at; });
    if (first == model.end() || first->at > clock.now()) return {};
    const auto item = first->item;
    model.erase(first);
    return item;
  };
  const auto check_waiting = [&] {  // checks the items that the coroutine must have taken
    if (waiting == 0) return true;
    const auto expected = take();
    if (!expected.has_value()) return waiting_got.empty();
    const bool right = waiting_got == std::vector{*expected};
    waiting = 0;
    waiting_got.clear();
    return right;
  };
  for (int n = 0; n < operations; ++n) {
    switch (r.below(6)) {
      case 0:
      case 1: {
        const delayed<int> d{n, clock.now() + std::chrono::milliseconds(r.below(200)) - 20ms};
        const auto done = q.try_push(d);
        if (model.size() == capacity) {
          ASSERT_EQ(done, policy == overflow::block ? status::full : status::ok);
          if (policy == overflow::drop_oldest) model.erase(model.begin());
          if (policy == overflow::latest) model.pop_back();
        }
        if (done) model.push_back(d);
        break;
      }
      case 2:
      case 3: {
        if (waiting != 0) break;  // the waiting coroutine would be served first
        auto got = q.try_pop();
        const auto expected = take();
        ASSERT_EQ(got.has_value(), expected.has_value()) << "operation " << n;
        ASSERT_EQ(got ? got->item : -1, expected.value_or(-1)) << "operation " << n;
        break;
      }
      case 4: {
        if (waiting != 0) break;
        waiting = 1;
        [](auto& from, auto& into) -> detached {
          if (auto got = co_await from.async_pop()) into.push_back(got->item);
        }(q, waiting_got);
        break;
      }
      default: clock.advance(std::chrono::milliseconds(r.below(20))); break;
    }
    ASSERT_TRUE(check_waiting()) << "operation " << n;
    ASSERT_EQ(q.size(), model.size());
  }
  clock.advance(1h);
  ASSERT_TRUE(check_waiting());
  while (q.try_pop()) {}
  q.close();
  std::printf("%d operations, seed %llu, capacity %zu, %.*s\n", operations,
              static_cast<unsigned long long>(GetParam()), capacity,
              static_cast<int>(to_string(policy).size()), to_string(policy).data());
}

INSTANTIATE_TEST_SUITE_P(Seeds, DelayModel, ::testing::Range<std::uint64_t>(1, 9));

// ---- misuse

TEST(DelayQueueDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(delay_queue<int>({.capacity = 0, .name = "later"}),
               "sluice::delay_queue \"later\": expected a capacity of at least 1");
  EXPECT_DEATH(
      {
        auto q = std::make_unique<delay_queue<int>>(
            delay_queue<int>::options{.capacity = 1, .name = "later"});
        std::jthread consumer([&from = *q] { (void)from.pop(); });
        eventually([&] { return q->waiting_to_pop() == 1; });
        q.reset();
      },
      "sluice::delay_queue \"later\": expected no consumers waiting inside");
}

}  // namespace
}  // namespace sluice::delay_queue_test
