#include "sluice/queue/bounded_queue.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::bounded_queue_test {
namespace {

using namespace std::chrono_literals;
using testing::detached;
using testing::eventually;

template <class T>
std::vector<T> drain(bounded_queue<T>& q) {
  std::vector<T> all;
  while (auto item = q.try_pop()) all.push_back(std::move(*item));
  return all;
}

void expect_balance(const queue_stats& s, std::size_t size, std::size_t dropped_incoming) {
  EXPECT_EQ(s.pushed, s.popped + (s.dropped - dropped_incoming) + size);
}

TEST(BoundedQueue, AwaitedBatchWaitsForOneItemThenTakesAllAvailable) {
  bounded_queue<int> q(8);
  std::vector<int> got;
  status ended = status::ok;
  const auto take = [](bounded_queue<int>& from, std::vector<int>& into, status& s) -> detached {
    while (auto some = co_await from.async_pop_some(3)) {
      into.insert(into.end(), some->begin(), some->end());
    }
    s = status::closed;
  };
  for (int i = 0; i < 5; ++i) ASSERT_EQ(q.push(i), status::ok);
  take(q, got, ended);  // three, two, then it waits
  EXPECT_EQ(got, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(q.waiting_to_pop(), 1U);
  ASSERT_EQ(q.push(5), status::ok);
  EXPECT_EQ(got.back(), 5);
  q.close();
  EXPECT_EQ(ended, status::closed);
}

TEST(BoundedQueue, AwaitedBatchThatTimedOutTookNothing) {
  manual_clock clock;
  bounded_queue<int> q(8);
  status ended = status::ok;
  [](bounded_queue<int>& from, wait_limits limits, status& s) -> detached {
    const auto some = co_await from.async_pop_some(3, std::move(limits));
    s = some.status();
  }(q, deadline::after(1s, clock), ended);
  clock.advance(1s);
  EXPECT_EQ(ended, status::timed_out);
  ASSERT_EQ(q.push(1), status::ok);
  EXPECT_EQ(q.size(), 1U);
}

// ---- overflow policies

TEST(BoundedQueue, DropNewestDropsTheIncomingItemAndReturnsDropped) {
  std::vector<int> dropped;
  bounded_queue<int> q({.capacity = 2,
                        .overflow = overflow::drop_newest,
                        .on_drop = [&](int&& i) { dropped.push_back(i); }});
  EXPECT_EQ(q.push(1), status::ok);
  EXPECT_EQ(q.push(2), status::ok);
  EXPECT_EQ(q.push(3), status::dropped);
  EXPECT_EQ(q.try_push(4), status::dropped);
  EXPECT_EQ(q.push(5, 1h), status::dropped);
  EXPECT_EQ(dropped, (std::vector{3, 4, 5}));
  EXPECT_EQ(q.stats().dropped, 3u);
  EXPECT_EQ(q.stats().pushed, 2u);
  expect_balance(q.stats(), q.size(), 3);
  EXPECT_EQ(drain(q), (std::vector{1, 2}));
}

TEST(BoundedQueue, DropOldestDropsTheFrontItem) {
  std::vector<int> dropped;
  bounded_queue<int> q({.capacity = 2,
                        .overflow = overflow::drop_oldest,
                        .on_drop = [&](int&& i) { dropped.push_back(i); }});
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(q.push(i), status::ok);
  EXPECT_EQ(dropped, (std::vector{1, 2, 3}));
  EXPECT_EQ(q.high_water(), 2u);
  expect_balance(q.stats(), q.size(), 0);
  EXPECT_EQ(drain(q), (std::vector{4, 5}));
  expect_balance(q.stats(), q.size(), 0);
}

TEST(BoundedQueue, LatestReplacesTheMostRecentlyQueued) {
  std::vector<int> dropped;
  bounded_queue<int> q({.capacity = 3,
                        .overflow = overflow::latest,
                        .on_drop = [&](int&& i) { dropped.push_back(i); }});
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(q.push(i), status::ok);
  EXPECT_EQ(dropped, (std::vector{3, 4, 5}));
  expect_balance(q.stats(), q.size(), 0);
  EXPECT_EQ(drain(q), (std::vector{1, 2, 6}));
}

TEST(BoundedQueue, DroppingPoliciesWorkAcrossTheEndOfTheBuffer) {
  for (const auto policy : {overflow::drop_oldest, overflow::latest}) {
    bounded_queue<int> q({.capacity = 3, .overflow = policy});
    for (int start = 0; start < 10; ++start) {
      for (int i = 0; i < 5; ++i) ASSERT_EQ(q.push(i), status::ok);
      EXPECT_EQ(drain(q), policy == overflow::latest ? (std::vector{0, 1, 4})
                                                     : (std::vector{2, 3, 4}));
      ASSERT_EQ(q.push(9), status::ok);  // the next round starts at another index
      ASSERT_TRUE(q.try_pop());
    }
  }
}

TEST(BoundedQueue, LatestInAQueueOfOneKeepsTheLastValue) {
  bounded_queue<int> q({.capacity = 1, .overflow = overflow::latest});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(q.push(i), status::ok);
  EXPECT_EQ(drain(q), std::vector{99});
}

TEST(BoundedQueue, CoroutinesDropAsThreadsDo) {
  std::vector<int> dropped;
  bounded_queue<int> q({.capacity = 1,
                        .overflow = overflow::drop_oldest,
                        .on_drop = [&](int&& i) { dropped.push_back(i); }});
  [](bounded_queue<int>& queue) -> detached {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await queue.async_push(std::move(i)), status::ok);
  }(q);
  EXPECT_EQ(dropped, (std::vector{0, 1}));
  EXPECT_EQ(drain(q), std::vector{2});
}

TEST(BoundedQueue, DropCallbackMayUseTheQueue) {
  bounded_queue<int>* self = nullptr;
  std::vector<int> seen;
  bounded_queue<int> q({.capacity = 2,
                        .overflow = overflow::drop_oldest,
                        .on_drop = [&](int&& i) {
                          seen.push_back(i);
                          EXPECT_EQ(self->size(), 2u);
                          EXPECT_TRUE(self->stats().dropped > 0);
                          // There is capacity for one item, so this push drops nothing.
                          EXPECT_TRUE(self->try_pop());
                          EXPECT_EQ(self->try_push(i + 100), status::ok);
                        }});
  self = &q;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(q.push(i), status::ok);
  EXPECT_EQ(seen, (std::vector{0, 2}));
}

TEST(BoundedQueue, DropCallbackThatThrowsIsReportedAndChangesNothing) {
  int seen = 0;
  bounded_queue<int> q({.capacity = 1,
                        .overflow = overflow::drop_oldest,
                        .name = "mail",
                        .on_drop = [&](int&&) {
                          ++seen;
                          throw std::runtime_error("log is full");
                        }});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(q.push(1), status::ok);
  EXPECT_EQ(q.push(2), status::ok);
  std::vector items{3, 4};
  EXPECT_EQ(q.push_all(items).count, 2u);
  EXPECT_EQ(drain(q), std::vector{4});
  EXPECT_EQ(seen, 3);
  const std::string line = "sluice: on_drop of queue 'mail' threw: log is full\n";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), line + line + line);
}

TEST(BoundedQueue, BatchWithADroppedItemIsNotOk) {
  // The callback pops an item, so the second item of the batch fits although the first did not.
  bounded_queue<int>* self = nullptr;
  bounded_queue<int> q({.capacity = 1,
                        .overflow = overflow::drop_newest,
                        .on_drop = [&](int&&) { EXPECT_TRUE(self->try_pop()); }});
  self = &q;
  ASSERT_EQ(q.push(0), status::ok);
  std::vector items{1, 2};
  const auto result = q.push_all(items);
  EXPECT_EQ(result.status, status::dropped);
  EXPECT_EQ(result.count, 2u) << "both items are consumed";
  EXPECT_EQ(drain(q), std::vector{2});
}

TEST(BoundedQueue, RejectedItemIsCountedOnce) {
  bounded_queue<int> q({.capacity = 1, .overflow = overflow::reject});
  std::vector items{1, 2, 3};
  const auto result = q.push_all(items);
  EXPECT_EQ(result.count, 1u);
  EXPECT_EQ(result.status, status::full);
  EXPECT_EQ(q.stats().rejected, 1u);
  EXPECT_EQ(q.try_push(4), status::full);
  EXPECT_EQ(q.stats().rejected, 2u);
}

TEST(BoundedQueue, EveryPolicyBalancesItsCountersUnderConcurrency) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 1701);
  constexpr int producers = 3;
  constexpr int each = 4000;
  for (const auto policy : {overflow::block, overflow::reject, overflow::drop_newest,
                            overflow::drop_oldest, overflow::latest}) {
    std::atomic<std::uint64_t> reported{0};
    bounded_queue<int> q({.capacity = 4,
                          .overflow = policy,
                          .on_drop = [&](int&&) { ++reported; }});
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> dropped_incoming{0};
    std::uint64_t popped = 0;
    std::jthread consumer([&] {
      while (q.pop()) ++popped;
    });
    {
      std::vector<std::jthread> crew;
      for (int p = 0; p < producers; ++p) {
        crew.emplace_back([&, p] {
          random r(seed + static_cast<std::uint64_t>(p));
          for (int i = 0; i < each; ++i) {
            const auto done = r.below(2) == 0 ? q.push(i) : q.push(int(i), 1us);
            if (done == status::ok) ++accepted;
            else if (done == status::dropped) ++dropped_incoming;
            else ++refused;
          }
        });
      }
    }
    q.close();
    consumer.join();
    const auto s = q.stats();
    EXPECT_EQ(s.pushed, accepted.load()) << to_string(policy);
    EXPECT_EQ(s.popped, popped) << to_string(policy);
    EXPECT_EQ(s.rejected, refused.load()) << to_string(policy);
    EXPECT_EQ(s.dropped, reported.load()) << to_string(policy);
    EXPECT_EQ(accepted + refused + dropped_incoming, std::uint64_t{producers} * each);
    expect_balance(s, q.size(), dropped_incoming.load());
    std::printf("%.*s: %d pushes by %d threads, seed %llu\n",
                static_cast<int>(to_string(policy).size()), to_string(policy).data(),
                producers * each, producers, static_cast<unsigned long long>(seed));
  }
}

// ---- weights

bounded_queue<std::string>::options by_bytes(std::size_t capacity, std::size_t bytes,
                                             overflow policy = overflow::block) {
  return {.capacity = capacity,
          .overflow = policy,
          .name = "bytes",
          .weight_max = bytes,
          .weigh = [](const std::string& s) { return s.size(); }};
}

TEST(BoundedQueueWeight, IsFullWhenTheWeightIsReached) {
  bounded_queue<std::string> q(by_bytes(100, 10));
  EXPECT_EQ(q.try_push("1234"), status::ok);
  EXPECT_EQ(q.try_push("123456"), status::ok);
  EXPECT_EQ(q.weight(), 10u);
  EXPECT_EQ(q.try_push("1"), status::full);
  EXPECT_EQ(q.try_push(""), status::ok) << "an empty item has no weight";
  EXPECT_EQ(*q.try_pop(), "1234");
  EXPECT_EQ(q.weight(), 6u);
  EXPECT_EQ(q.try_push("12345"), status::full);
  EXPECT_EQ(q.try_push("1234"), status::ok);
  EXPECT_EQ(q.weight(), 10u);
}

TEST(BoundedQueueWeight, CountStillBounds) {
  bounded_queue<std::string> q(by_bytes(2, 1000));
  EXPECT_EQ(q.try_push("1"), status::ok);
  EXPECT_EQ(q.try_push("1"), status::ok);
  EXPECT_EQ(q.try_push("1"), status::full);
}

TEST(BoundedQueueWeight, ItemHeavierThanTheQueueIsRejectedUnderEveryPolicy) {
  for (const auto policy : {overflow::block, overflow::reject, overflow::drop_newest,
                            overflow::drop_oldest, overflow::latest}) {
    bounded_queue<std::string> q(by_bytes(4, 3, policy));
    ASSERT_EQ(q.push("a"), status::ok);
    std::string heavy = "1234";
    EXPECT_EQ(q.push(std::move(heavy)), status::full) << to_string(policy);
    EXPECT_EQ(heavy, "1234");
    EXPECT_EQ(q.push(std::move(heavy), 1h), status::full) << to_string(policy);
    std::optional<status> got;
    [](auto& queue, auto& item, auto& result) -> detached {
      result.emplace(co_await queue.async_push(item));
    }(q, heavy, got);
    EXPECT_EQ(got, status(status::full)) << to_string(policy);
    std::vector<std::string> batch{"b", "1234", "c"};
    const auto some = q.push_all(batch);
    EXPECT_EQ(some.count, 1u);
    EXPECT_EQ(some.status, status::full);
    EXPECT_EQ(q.stats().rejected, 4u) << to_string(policy);
    EXPECT_EQ(q.size(), 2u) << "no item was dropped for it";
  }
}

TEST(BoundedQueueWeight, DropOldestDropsUntilTheItemFits) {
  std::vector<std::string> dropped;
  auto options = by_bytes(100, 10, overflow::drop_oldest);
  options.on_drop = [&](std::string&& s) { dropped.push_back(std::move(s)); };
  bounded_queue<std::string> q(std::move(options));
  for (const char* s : {"aaa", "bbb", "ccc"}) ASSERT_EQ(q.push(s), status::ok);
  EXPECT_EQ(q.push("dddddd"), status::ok);
  EXPECT_EQ(dropped, (std::vector<std::string>{"aaa", "bbb"}));
  EXPECT_EQ(q.weight(), 9u);
  expect_balance(q.stats(), q.size(), 0);
}

TEST(BoundedQueueWeight, LatestDropsUntilTheItemFits) {
  std::vector<std::string> dropped;
  auto options = by_bytes(100, 10, overflow::latest);
  options.on_drop = [&](std::string&& s) { dropped.push_back(std::move(s)); };
  bounded_queue<std::string> q(std::move(options));
  for (const char* s : {"aaa", "bbb", "ccc"}) ASSERT_EQ(q.push(s), status::ok);
  EXPECT_EQ(q.push("dddddd"), status::ok);
  EXPECT_EQ(dropped, (std::vector<std::string>{"ccc", "bbb"}));
  EXPECT_EQ(drain(q), (std::vector<std::string>{"aaa", "dddddd"}));
  EXPECT_EQ(q.weight(), 0u);
}

TEST(BoundedQueueWeight, HeavyProducerIsNotOvertakenByLightOnes) {
  bounded_queue<std::string> q(by_bytes(100, 10));
  ASSERT_EQ(q.push("12345"), status::ok);
  ASSERT_EQ(q.push("12345"), status::ok);
  std::jthread heavy([&] { EXPECT_EQ(q.push("heavyheavy"), status::ok); });
  eventually([&] { return q.waiting_to_push() == 1; });
  ASSERT_TRUE(q.try_pop());
  // A light item would fit now, but the heavy one arrived first.
  EXPECT_EQ(q.try_push("1"), status::full);
  ASSERT_TRUE(q.try_pop());
  heavy.join();
  EXPECT_EQ(*q.try_pop(), "heavyheavy");
  EXPECT_EQ(q.try_push("1"), status::ok);
}

TEST(BoundedQueueWeight, WokenProducersPushInOrderOfArrival) {
  for (int round = 0; round < 100; ++round) {
    bounded_queue<std::string> q(by_bytes(1000, 10));
    ASSERT_EQ(q.push("1234567890"), status::ok);
    std::vector<std::jthread> producers;
    for (const char* item : {"heavy678", "123", "heavy9", "12345"}) {
      producers.emplace_back([&q, item] { EXPECT_EQ(q.push(std::string(item)), status::ok); });
      eventually([&] { return q.waiting_to_push() == producers.size(); });
    }
    std::vector<std::string> order;
    for (int i = 0; i < 5; ++i) order.push_back(*q.pop());
    EXPECT_EQ(order, (std::vector<std::string>{"1234567890", "heavy678", "123", "heavy9",
                                               "12345"}));
  }
}

TEST(BoundedQueueWeight, LightProducerPushesWhenTheHeavyOneBeforeItGivesUp) {
  bounded_queue<std::string> q(by_bytes(100, 10));
  ASSERT_EQ(q.push("12345"), status::ok);
  std::stop_source stop;
  std::jthread heavy([&] {
    EXPECT_EQ(q.push("heavyheavy", stop.get_token()), status::stopped);
  });
  eventually([&] { return q.waiting_to_push() == 1; });
  std::optional<status> light;
  [](auto& queue, auto& result) -> detached {
    result.emplace(co_await queue.async_push("1"));
  }(q, light);
  EXPECT_FALSE(light.has_value());
  stop.request_stop();
  heavy.join();
  EXPECT_EQ(light, status(status::ok));
  EXPECT_EQ(q.size(), 2u);
}

TEST(BoundedQueueWeight, HeavyItemsArriveInAStreamOfLightOnes) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 99);
  constexpr int heavy_items = 100;
  bounded_queue<std::string> q(by_bytes(64, 16));
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> light_pushed{0};
  std::uint64_t heavy_seen = 0;
  std::uint64_t light_seen = 0;
  std::jthread consumer([&] {
    while (auto item = q.pop()) ++(item->size() == 16 ? heavy_seen : light_seen);
  });
  {
    std::vector<std::jthread> light;
    for (int i = 0; i < 3; ++i) {
      light.emplace_back([&, i] {
        random r(seed + static_cast<std::uint64_t>(i));
        while (!over) {
          if (q.push(std::string(1 + r.below(3), 'x'))) ++light_pushed;
        }
      });
    }
    for (int i = 0; i < heavy_items; ++i) {
      ASSERT_EQ(q.push(std::string(16, 'h')), status::ok);
      ASSERT_LE(q.weight(), 16u);
    }
    over = true;
  }
  q.close();
  consumer.join();
  EXPECT_EQ(heavy_seen, std::uint64_t{heavy_items});
  EXPECT_EQ(light_seen, light_pushed.load());
  std::printf("%d heavy and %llu light pushes, seed %llu\n", heavy_items,
              static_cast<unsigned long long>(light_seen), static_cast<unsigned long long>(seed));
}

TEST(BoundedQueueWeight, NoProducerSleepsWhileItsItemFits) {
  // A pop frees capacity and wakes two producers. One uses it; the other gives up, in the list or
  // just before it joins again. The remaining capacity must go to the light producer.
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 4242);
  constexpr int rounds = 300;
  random r(seed);
  for (int round = 0; round < rounds; ++round) {
    bounded_queue<std::string> q(by_bytes(1000, 10));
    ASSERT_EQ(q.push("666666"), status::ok);
    ASSERT_EQ(q.push("4444"), status::ok);
    const auto patience = [&r] { return 300us + std::chrono::microseconds(r.below(300)); };
    std::jthread a([&q, wait = patience()] { (void)q.push("aaaaa", wait); });
    std::jthread b([&q, wait = patience()] { (void)q.push("bbbbb", wait); });
    eventually([&] { return q.waiting_to_push() == 2 || q.stats().rejected > 0; });
    std::jthread light([&q] { EXPECT_EQ(q.push("c"), status::ok); });
    EXPECT_EQ(*q.pop(), "666666");
    light.join();
    a.join();
    b.join();
    EXPECT_LE(q.weight(), 10u);
  }
  std::printf("%d rounds, seed %llu\n", rounds, static_cast<unsigned long long>(seed));
}

// ---- misuse

using BoundedQueueDeathTest = ::testing::Test;

TEST(BoundedQueueDeathTest, CapacityZeroIsRejectedByName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(bounded_queue<int>(0), "sluice::bounded_queue: expected a capacity of at least 1");
  EXPECT_DEATH(bounded_queue<int>({.capacity = 0, .name = "mail"}),
               "sluice::bounded_queue \"mail\": expected a capacity of at least 1");
}

TEST(BoundedQueueDeathTest, CallerRunsIsForExecutors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      bounded_queue<int>({.capacity = 1, .overflow = overflow::caller_runs, .name = "mail"}),
      "bounded_queue \"mail\": expected a policy other than caller_runs, which is for executors");
}

TEST(BoundedQueueDeathTest, WeightAndWeighBelongTogether) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(bounded_queue<int>({.capacity = 1, .weight_max = 5}),
               "expected weight_max and weigh to be given together");
  EXPECT_DEATH(bounded_queue<int>({.capacity = 1, .weigh = [](int) { return 1u; }}),
               "expected weight_max and weigh to be given together");
}

TEST(BoundedQueueDeathTest, DestructionWithAWaiterInsideNamesTheQueue) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto q = std::make_unique<bounded_queue<int>>(
            bounded_queue<int>::options{.capacity = 1, .name = "mail"});
        std::jthread consumer([&from = *q] { (void)from.pop(); });
        eventually([&] { return q->waiting_to_pop() == 1; });
        q.reset();
      },
      "sluice::bounded_queue \"mail\": expected no consumers waiting inside");
  EXPECT_DEATH(
      {
        auto q = std::make_unique<bounded_queue<int>>(
            bounded_queue<int>::options{.capacity = 1, .name = "mail"});
        (void)q->push(1);
        std::jthread producer([&target = *q] { (void)target.push(2); });
        eventually([&] { return q->waiting_to_push() == 1; });
        q.reset();
      },
      "sluice::bounded_queue \"mail\": expected no producers waiting inside");
}

TEST(BoundedQueueDeathTest, PopSomeOfZeroItemsIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        bounded_queue<int> q(1);
        (void)q.pop_some(0);
      },
      "expected max > 0");
}

// ---- destruction

TEST(BoundedQueue, AConsumerMayDestroyAQueueWhosePolicyDrops) {
  for (const auto policy : {overflow::drop_newest, overflow::drop_oldest, overflow::latest}) {
    auto q = std::make_unique<bounded_queue<int>>(
        bounded_queue<int>::options{.capacity = 1, .overflow = policy, .on_drop = [](int&&) {}});
    // Resumed by the push, on its thread.
    [](std::unique_ptr<bounded_queue<int>>& queue) -> detached {
      const auto item = co_await queue->async_pop();
      EXPECT_TRUE(item);
      queue.reset();
    }(q);
    EXPECT_EQ(q->push(1), status::ok);
    EXPECT_EQ(q, nullptr);
  }
}

// ---- idle

TEST(BoundedQueue, BlockedConsumersUseNoProcessor) {
  constexpr int consumers = 8;
  bounded_queue<int> q(16);
  bounded_queue<int> never(1);
  std::vector<std::jthread> crew;
  for (int i = 0; i < consumers; ++i) {
    crew.emplace_back([&] { EXPECT_EQ(q.pop().status(), status::closed); });
  }
  eventually([&] { return q.waiting_to_pop() == consumers; });
  EXPECT_EQ(never.pop(20ms).status(), status::timed_out);  // until the last consumer sleeps
  const auto before = std::clock();
  EXPECT_EQ(never.pop(200ms).status(), status::timed_out);
  const auto used = std::chrono::duration<double, std::milli>(
      1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  std::printf("%d blocked consumers used %.3f ms in 200 ms\n", consumers, used.count());
  EXPECT_LT(used.count(), 5.0);
  q.close();
}

}  // namespace
}  // namespace sluice::bounded_queue_test
