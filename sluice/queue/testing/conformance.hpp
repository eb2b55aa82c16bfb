#pragma once

// The typed suite of the guarantees of every queue. See queue_kinds.hpp for a Kind.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/queue/testing/queue_kinds.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing {

using namespace std::chrono_literals;

// The operations that these tests are written in.
template <class Kind>
class QueueConformance : public ::testing::Test {
 public:
  using queue_type = typename Kind::queue;
  using item_type = typename Kind::item;

  // Longer than any test: for a wait that must not end by its deadline.
  static constexpr auto long_time = 10min;
  // The number of producers, or consumers, that wait at a time.
  static constexpr std::size_t crowd = Kind::is_shared ? 4 : 1;

  void open(std::size_t capacity, overflow full = overflow::block) {
    q = Kind::open(capacity, full, "under test");
  }
  void open_full(std::size_t capacity) {
    open(capacity);
    fill(capacity);
  }
  void fill(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(q->try_push(Kind::make(static_cast<int>(i))), status::ok);
    }
  }
  void expect_next(int value) {
    auto got = q->try_pop();
    ASSERT_TRUE(got) << "expected " << value << ", found " << to_string(got.status());
    EXPECT_EQ(Kind::value_of(*got), value);
  }
  void expect_untouched(const item_type& i, int value) {
    ASSERT_TRUE(Kind::is_whole(i)) << "a push that failed took the item";
    EXPECT_EQ(Kind::value_of(i), value);
  }
  void await_consumers(std::size_t count = 1) {
    eventually([&] { return q->waiting_to_pop() == count; }, "consumers to be parked");
  }
  void await_producers(std::size_t count = 1) {
    eventually([&] { return q->waiting_to_push() == count; }, "producers to be parked");
  }

  std::unique_ptr<queue_type> q;
};

TYPED_TEST_SUITE_P(QueueConformance);

// A coroutine that pops once and stores the result in `got`.
template <class Queue, class Item>
detached pop_once(Queue& q, std::optional<outcome<Item>>& got, wait_limits limits = {}) {
  got.emplace(co_await q.async_pop(std::move(limits)));
}

template <class Queue, class Item>
detached push_once(Queue& q, Item& item, std::optional<status>& got, wait_limits limits = {}) {
  got.emplace(co_await q.async_push(item, std::move(limits)));
}

// ---- in and out

TYPED_TEST_P(QueueConformance, ItemsComeOutInTheOrderTheyWentIn) {
  this->open(8);
  this->fill(8);
  for (int i = 0; i < 8; ++i) this->expect_next(i);
}

TYPED_TEST_P(QueueConformance, OrderIsKeptAcrossTheEndOfTheBuffer) {
  this->open(3);
  int in = 0;
  int out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int n = round % 4; n > 0; --n) {
      if (this->q->try_push(TypeParam::make(in))) ++in;
    }
    while (out < in - round % 2) this->expect_next(out++);
  }
  while (out < in) this->expect_next(out++);
  EXPECT_TRUE(this->q->empty());
}

TYPED_TEST_P(QueueConformance, TryPopOfAnEmptyQueueReturnsEmpty) {
  this->open(2);
  EXPECT_EQ(this->q->try_pop().status(), status::empty);
  EXPECT_EQ(this->q->try_pop_some(5).status(), status::empty);
}

TYPED_TEST_P(QueueConformance, TryPushToAFullQueueReturnsFullAndLeavesTheItem) {
  this->open_full(2);
  auto item = TypeParam::make(7);
  EXPECT_EQ(this->q->try_push(std::move(item)), status::full);
  this->expect_untouched(item, 7);
  EXPECT_EQ(this->q->size(), 2u);
}

TYPED_TEST_P(QueueConformance, RejectingQueueNeverMakesAProducerWait) {
  this->open(1, overflow::reject);
  this->fill(1);
  auto item = TypeParam::make(7);
  EXPECT_EQ(this->q->push(std::move(item)), status::full);
  this->expect_untouched(item, 7);
  EXPECT_EQ(this->q->push(std::move(item), this->long_time), status::full);
  this->expect_untouched(item, 7);
  std::optional<status> got;
  push_once(*this->q, item, got);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, status::full);
  this->expect_untouched(item, 7);
  EXPECT_EQ(this->q->stats().rejected, 3u);
}

TYPED_TEST_P(QueueConformance, CapacityAndSizeAreExact) {
  this->open(5);
  EXPECT_EQ(this->q->capacity(), 5u);
  EXPECT_TRUE(this->q->empty());
  this->fill(5);
  EXPECT_EQ(this->q->size(), 5u);
  EXPECT_EQ(this->q->try_push(TypeParam::make(1)), status::full);
  EXPECT_EQ(this->q->name(), "under test");
}

TYPED_TEST_P(QueueConformance, ItemsInsideAreDestroyedWithTheQueue) {
  this->open_full(5);  // the leak checker detects a missing destructor call
  this->expect_next(0);
  this->q.reset();
}

// ---- waiting

TYPED_TEST_P(QueueConformance, PopWaitsWhileEmpty) {
  this->open(2);
  std::optional<outcome<typename TypeParam::item>> got;
  std::jthread consumer([&] { got.emplace(this->q->pop()); });
  this->await_consumers();
  EXPECT_EQ(this->q->push(TypeParam::make(3)), status::ok);
  consumer.join();
  ASSERT_TRUE(*got);
  EXPECT_EQ(TypeParam::value_of(**got), 3);
}

TYPED_TEST_P(QueueConformance, PushWaitsWhileFull) {
  this->open_full(2);
  status done = status::stopped;
  std::jthread producer([&] { done = this->q->push(TypeParam::make(2)); });
  this->await_producers();
  EXPECT_EQ(this->q->size(), 2u);
  this->expect_next(0);
  producer.join();
  EXPECT_EQ(done, status::ok);
  this->expect_next(1);
  this->expect_next(2);
}

TYPED_TEST_P(QueueConformance, CoroutineWaitsForAnItem) {
  this->open(2);
  std::optional<outcome<typename TypeParam::item>> got;
  pop_once(*this->q, got);
  EXPECT_FALSE(got.has_value());
  EXPECT_EQ(this->q->waiting_to_pop(), 1u);
  EXPECT_EQ(this->q->push(TypeParam::make(3)), status::ok);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(TypeParam::value_of(**got), 3);
  EXPECT_TRUE(this->q->empty());
}

TYPED_TEST_P(QueueConformance, CoroutineWaitsForCapacity) {
  this->open_full(1);
  auto item = TypeParam::make(1);
  std::optional<status> got;
  push_once(*this->q, item, got);
  EXPECT_FALSE(got.has_value());
  EXPECT_EQ(this->q->waiting_to_push(), 1u);
  this->expect_next(0);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, status::ok);
  EXPECT_FALSE(TypeParam::is_whole(item));
  this->expect_next(1);
}

TYPED_TEST_P(QueueConformance, CoroutineMayPushATemporary) {
  this->open_full(1);
  std::optional<status> got;
  [](auto& queue, auto& result) -> detached {
    result.emplace(co_await queue.async_push(TypeParam::make(1)));
  }(*this->q, got);
  this->expect_next(0);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, status::ok);
  this->expect_next(1);
}

TYPED_TEST_P(QueueConformance, CoroutineIsResumedOnItsOwnSink) {
  this->open(1);
  manual_sink sink;
  std::optional<outcome<typename TypeParam::item>> got;
  [](manual_sink&, auto& queue, auto& result) -> detached {
    result.emplace(co_await queue.async_pop());
  }(sink, *this->q, got);
  EXPECT_EQ(this->q->push(TypeParam::make(4)), status::ok);
  EXPECT_FALSE(got.has_value()) << "resumed on the producer's thread";
  EXPECT_EQ(sink.run_all(), 1u);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(TypeParam::value_of(**got), 4);
}

TYPED_TEST_P(QueueConformance, ThreadAndCoroutineMeetInOneQueue) {
  this->open(1);
  constexpr int rounds = 200;
  int next = 0;
  std::atomic<bool> done{false};
  [](auto& queue, int& expected, std::atomic<bool>& over) -> detached {
    while (auto got = co_await queue.async_pop()) EXPECT_EQ(TypeParam::value_of(*got), expected++);
    over = true;
  }(*this->q, next, done);
  for (int i = 0; i < rounds; ++i) ASSERT_EQ(this->q->push(TypeParam::make(i)), status::ok);
  this->q->close();
  eventually([&] { return done.load(); });
  EXPECT_EQ(next, rounds);
}

// ---- the deadline

TYPED_TEST_P(QueueConformance, TimedPopGivesUpHavingTakenNothing) {
  this->open(1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(this->q->pop(2ms).status(), status::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2ms);
  EXPECT_EQ(this->q->pop(std::chrono::steady_clock::now() + 1ms).status(),
            status::timed_out);
  EXPECT_EQ(this->q->pop(std::chrono::system_clock::now() + 1ms).status(),
            status::timed_out);
  EXPECT_EQ(this->q->waiting_to_pop(), 0u);
  this->fill(1);
  this->expect_next(0);
}

TYPED_TEST_P(QueueConformance, TimedPushGivesUpAndLeavesTheItem) {
  this->open_full(1);
  auto item = TypeParam::make(9);
  EXPECT_EQ(this->q->push(std::move(item), 2ms), status::timed_out);
  this->expect_untouched(item, 9);
  EXPECT_EQ(this->q->push(std::move(item), std::chrono::steady_clock::now() + 1ms),
            status::timed_out);
  this->expect_untouched(item, 9);
  EXPECT_EQ(this->q->waiting_to_push(), 0u);
  this->expect_next(0);
  EXPECT_EQ(this->q->try_pop().status(), status::empty) << "a push that timed out went in";
}

TYPED_TEST_P(QueueConformance, PassedDeadlineStillTriesOnce) {
  this->open(1);
  for (const auto wait : {0ns, std::chrono::nanoseconds(-1), std::chrono::nanoseconds::min()}) {
    EXPECT_EQ(this->q->push(TypeParam::make(1), wait), status::ok);
    EXPECT_EQ(this->q->push(TypeParam::make(1), wait), status::timed_out);
    EXPECT_TRUE(this->q->pop(wait));
    EXPECT_EQ(this->q->pop(wait).status(), status::timed_out);
  }
  EXPECT_EQ(this->q->pop(std::chrono::steady_clock::time_point::min()).status(),
            status::timed_out);
}

TYPED_TEST_P(QueueConformance, DurationTooLongToRepresentNeverTimesOut) {
  this->open(1);
  std::optional<outcome<typename TypeParam::item>> got;
  std::jthread consumer([&] { got.emplace(this->q->pop(std::chrono::hours::max())); });
  this->await_consumers();
  this->fill(1);
  consumer.join();
  EXPECT_TRUE(*got);
  this->fill(1);
  status done = status::stopped;
  std::jthread producer([&] {
    done = this->q->push(TypeParam::make(1), std::chrono::duration<double>(
                                     std::numeric_limits<double>::infinity()));
  });
  this->await_producers();
  this->expect_next(0);
  producer.join();
  EXPECT_EQ(done, status::ok);
}

TYPED_TEST_P(QueueConformance, ServedBeforeTheDeadlineIsNotTimedOut) {
  this->open(1);
  std::optional<outcome<typename TypeParam::item>> got;
  std::jthread consumer([&] { got.emplace(this->q->pop(this->long_time)); });
  this->await_consumers();
  this->fill(1);
  consumer.join();
  EXPECT_TRUE(*got);
}

TYPED_TEST_P(QueueConformance, DeadlineMayBeOnAManualClock) {
  this->open(1);
  manual_clock clock;
  const wait_limits limits{deadline::after(5s, clock), {}};
  std::optional<outcome<typename TypeParam::item>> by_thread;
  std::jthread consumer([&] { by_thread.emplace(this->q->pop(limits)); });
  eventually([&] { return clock.pending() == 1; });
  clock.advance(4s);
  EXPECT_EQ(clock.pending(), 1u);
  clock.advance(1s);
  consumer.join();
  EXPECT_EQ(by_thread->status(), status::timed_out);

  std::optional<outcome<typename TypeParam::item>> by_coroutine;
  pop_once(*this->q, by_coroutine, {deadline::after(5s, clock), {}});
  clock.advance(4s);
  EXPECT_FALSE(by_coroutine.has_value());
  clock.advance(1s);
  ASSERT_TRUE(by_coroutine.has_value());
  EXPECT_EQ(by_coroutine->status(), status::timed_out);

  this->fill(1);
  auto item = TypeParam::make(6);
  std::optional<status> pushed;
  push_once(*this->q, item, pushed, {deadline::after(1s, clock), {}});
  EXPECT_FALSE(pushed.has_value());
  clock.advance(1s);
  ASSERT_TRUE(pushed.has_value());
  EXPECT_EQ(*pushed, status::timed_out);
  this->expect_untouched(item, 6);
  EXPECT_EQ(this->q->waiting_to_push() + this->q->waiting_to_pop(), 0u);
}

TYPED_TEST_P(QueueConformance, CoroutineTimesOutOnTheRealClock) {
  this->open(1);
  std::atomic<bool> done{false};
  std::optional<outcome<typename TypeParam::item>> got;
  [](auto& queue, auto& result, std::atomic<bool>& over) -> detached {
    result.emplace(co_await queue.async_pop({deadline::after(1ms), {}}));
    over = true;
  }(*this->q, got, done);
  eventually([&] { return done.load(); });
  EXPECT_EQ(got->status(), status::timed_out);
}

// ---- the stop token

TYPED_TEST_P(QueueConformance, StopEndsAWaitingPop) {
  this->open(1);
  std::stop_source stop;
  std::optional<outcome<typename TypeParam::item>> got;
  std::jthread consumer([&] { got.emplace(this->q->pop(stop.get_token())); });
  this->await_consumers();
  stop.request_stop();
  consumer.join();
  EXPECT_EQ(got->status(), status::stopped);
  EXPECT_EQ(this->q->waiting_to_pop(), 0u);
  this->fill(1);
  this->expect_next(0);
}

TYPED_TEST_P(QueueConformance, StopEndsAWaitingPushAndLeavesTheItem) {
  this->open_full(1);
  std::stop_source stop;
  auto item = TypeParam::make(5);
  status done = status::ok;
  std::jthread producer([&] { done = this->q->push(std::move(item), stop.get_token()); });
  this->await_producers();
  stop.request_stop();
  producer.join();
  EXPECT_EQ(done, status::stopped);
  this->expect_untouched(item, 5);
  EXPECT_EQ(this->q->waiting_to_push(), 0u);
}

TYPED_TEST_P(QueueConformance, StopEndsTimedWaitsToo) {
  this->open(1);
  std::stop_source stop;
  std::optional<outcome<typename TypeParam::item>> got;
  std::jthread consumer([&] {
    got.emplace(this->q->pop({this->long_time, stop.get_token()}));
  });
  this->await_consumers();
  stop.request_stop();
  consumer.join();
  EXPECT_EQ(got->status(), status::stopped);

  this->fill(1);
  std::stop_source again;
  auto item = TypeParam::make(5);
  status done = status::ok;
  std::jthread producer([&] {
    done = this->q->push(std::move(item), {std::chrono::steady_clock::now() + this->long_time,
                                           again.get_token()});
  });
  this->await_producers();
  again.request_stop();
  producer.join();
  EXPECT_EQ(done, status::stopped);
  this->expect_untouched(item, 5);
}

TYPED_TEST_P(QueueConformance, StopEndsWaitingCoroutines) {
  this->open(1);
  std::stop_source stop;
  std::optional<outcome<typename TypeParam::item>> got;
  pop_once(*this->q, got, {{}, stop.get_token()});
  EXPECT_FALSE(got.has_value());
  stop.request_stop();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->status(), status::stopped);

  this->fill(1);
  std::stop_source again;
  auto item = TypeParam::make(5);
  std::optional<status> pushed;
  push_once(*this->q, item, pushed, {{}, again.get_token()});
  EXPECT_FALSE(pushed.has_value());
  again.request_stop();
  ASSERT_TRUE(pushed.has_value());
  EXPECT_EQ(*pushed, status::stopped);
  this->expect_untouched(item, 5);
}

TYPED_TEST_P(QueueConformance, StopRequestedBeforeWinsOverReadiness) {
  this->open(2);
  this->fill(1);
  std::stop_source stop;
  stop.request_stop();
  auto item = TypeParam::make(5);
  EXPECT_EQ(this->q->push(std::move(item), stop.get_token()), status::stopped);
  EXPECT_EQ(this->q->push(std::move(item), {1s, stop.get_token()}), status::stopped);
  std::optional<status> pushed;
  push_once(*this->q, item, pushed, {{}, stop.get_token()});
  EXPECT_EQ(pushed, status(status::stopped));
  this->expect_untouched(item, 5);
  EXPECT_EQ(this->q->pop(stop.get_token()).status(), status::stopped);
  EXPECT_EQ(this->q->pop({1s, stop.get_token()}).status(), status::stopped);
  EXPECT_EQ(this->q->pop_some(4, {{}, stop.get_token()}).status(), status::stopped);
  std::optional<outcome<typename TypeParam::item>> got;
  pop_once(*this->q, got, {{}, stop.get_token()});
  EXPECT_EQ(got->status(), status::stopped);
  EXPECT_EQ(this->q->size(), 1u);
}

// ---- close

TYPED_TEST_P(QueueConformance, CloseWakesEveryConsumer) {
  this->open(1);
  std::atomic<int> closed{0};
  std::vector<std::jthread> consumers;
  for (std::size_t i = 0; i < this->crowd; ++i) {
    consumers.emplace_back([&] {
      if (this->q->pop().status() == status::closed) ++closed;
    });
  }
  this->await_consumers(this->crowd);
  std::optional<outcome<typename TypeParam::item>> got;
  if (TypeParam::is_shared) pop_once(*this->q, got);
  EXPECT_TRUE(this->q->close());
  consumers.clear();
  EXPECT_EQ(closed.load(), static_cast<int>(this->crowd));
  if (TypeParam::is_shared) {
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->status(), status::closed);
  }
}

TYPED_TEST_P(QueueConformance, CloseWakesEveryProducerAndLeavesTheItems) {
  this->open_full(1);
  std::atomic<int> closed{0};
  std::vector<std::jthread> producers;
  for (std::size_t i = 0; i < this->crowd; ++i) {
    producers.emplace_back([&] {
      auto item = TypeParam::make(8);
      if (this->q->push(std::move(item)) == status::closed && TypeParam::is_whole(item)) ++closed;
    });
  }
  this->await_producers(this->crowd);
  auto item = TypeParam::make(9);
  std::optional<status> got;
  if (TypeParam::is_shared) push_once(*this->q, item, got);
  EXPECT_TRUE(this->q->close());
  producers.clear();
  EXPECT_EQ(closed.load(), static_cast<int>(this->crowd));
  if (TypeParam::is_shared) {
    EXPECT_EQ(got, status(status::closed));
  }
  this->expect_untouched(item, 9);
  this->expect_next(0);
  EXPECT_EQ(this->q->try_pop().status(), status::closed);
}

TYPED_TEST_P(QueueConformance, CloseEndsWaitingCoroutines) {
  this->open(1);
  std::optional<outcome<typename TypeParam::item>> got;
  pop_once(*this->q, got);
  this->q->close();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->status(), status::closed);

  this->open_full(1);
  auto item = TypeParam::make(5);
  std::optional<status> pushed;
  push_once(*this->q, item, pushed);
  this->q->close();
  EXPECT_EQ(pushed, status(status::closed));
  this->expect_untouched(item, 5);
}

TYPED_TEST_P(QueueConformance, ItemsInsideCanBeTakenAfterCloseThenPopReturnsClosed) {
  this->open(4);
  this->fill(3);
  this->q->close();
  EXPECT_TRUE(this->q->is_closed());
  EXPECT_EQ(TypeParam::value_of(*this->q->pop()), 0);
  EXPECT_EQ(TypeParam::value_of(*this->q->pop(1s)), 1);
  std::optional<outcome<typename TypeParam::item>> got;
  pop_once(*this->q, got);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(TypeParam::value_of(**got), 2);
  EXPECT_EQ(this->q->pop().status(), status::closed);
  EXPECT_EQ(this->q->try_pop().status(), status::closed);
  EXPECT_EQ(this->q->pop(this->long_time).status(), status::closed);
  EXPECT_EQ(this->q->pop_some(3).status(), status::closed);
  EXPECT_EQ(this->q->try_pop_some(3).status(), status::closed);
  pop_once(*this->q, got);
  EXPECT_EQ(got->status(), status::closed);
}

TYPED_TEST_P(QueueConformance, PushAfterCloseReturnsClosedAndLeavesTheItem) {
  this->open(4);
  EXPECT_FALSE(this->q->is_closed());
  EXPECT_TRUE(this->q->close());
  EXPECT_FALSE(this->q->close()) << "it was closed already";
  auto item = TypeParam::make(5);
  EXPECT_EQ(this->q->push(std::move(item)), status::closed);
  EXPECT_EQ(this->q->try_push(std::move(item)), status::closed);
  EXPECT_EQ(this->q->push(std::move(item), this->long_time), status::closed);
  std::optional<status> got;
  push_once(*this->q, item, got);
  EXPECT_EQ(got, status(status::closed));
  const auto batch = this->q->push_all({&item, 1});
  EXPECT_EQ(batch.status, status::closed);
  EXPECT_EQ(batch.count, 0u);
  this->expect_untouched(item, 5);
  EXPECT_TRUE(this->q->empty());
}

TYPED_TEST_P(QueueConformance, PushToAClosedFullQueueReturnsClosedAndNotFull) {
  this->open_full(1);
  this->q->close();
  EXPECT_EQ(this->q->try_push(TypeParam::make(1)), status::closed);
}

TYPED_TEST_P(QueueConformance, WorkerLoopTakesAllItemsAndEndsAfterClose) {
  this->open(4);
  std::vector<int> seen;
  std::jthread worker([&] {
    while (auto item = this->q->pop()) seen.push_back(TypeParam::value_of(*item));
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(this->q->push(TypeParam::make(i)), status::ok);
  this->q->close();
  worker.join();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

// ---- batches

TYPED_TEST_P(QueueConformance, BatchPushPushesTheFittingItemsAndLeavesTheRest) {
  this->open(3);
  std::vector<typename TypeParam::item> items;
  for (int i = 0; i < 5; ++i) items.push_back(TypeParam::make(i));
  const auto some = this->q->try_push_all(items);
  EXPECT_EQ(some.count, 3u);
  EXPECT_EQ(some.status, status::full);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(TypeParam::is_whole(items[static_cast<size_t>(i)]));
  this->expect_untouched(items[3], 3);
  this->expect_untouched(items[4], 4);
  for (int i = 0; i < 3; ++i) this->expect_next(i);
}

TYPED_TEST_P(QueueConformance, BatchPushWaitsUntilAllItemsArePushed) {
  this->open(2);
  std::vector<typename TypeParam::item> items;
  for (int i = 0; i < 20; ++i) items.push_back(TypeParam::make(i));
  batch_result result;
  std::jthread producer([&] { result = this->q->push_all(items); });
  for (int i = 0; i < 20; ++i) {
    auto got = this->q->pop();
    ASSERT_TRUE(got);
    EXPECT_EQ(TypeParam::value_of(*got), i);
  }
  producer.join();
  EXPECT_EQ(result.count, 20u);
  EXPECT_EQ(result.status, status::ok);
}

TYPED_TEST_P(QueueConformance, BatchPushThatGivesUpReturnsTheNumberOfPushedItems) {
  this->open(2);
  std::vector<typename TypeParam::item> items;
  for (int i = 0; i < 4; ++i) items.push_back(TypeParam::make(i));
  const auto timed = this->q->push_all(items, {deadline::after(1ms), {}});
  EXPECT_EQ(timed.count, 2u);
  EXPECT_EQ(timed.status, status::timed_out);
  this->expect_untouched(items[2], 2);
  this->expect_untouched(items[3], 3);

  std::stop_source stop;
  batch_result stopped;
  const std::span rest(items.begin() + 2, items.end());
  std::jthread producer([&] { stopped = this->q->push_all(rest, {{}, stop.get_token()}); });
  this->await_producers();
  this->expect_next(0);
  this->await_producers();
  eventually([&] { return this->q->size() == 2; });
  this->await_producers();
  stop.request_stop();
  producer.join();
  EXPECT_EQ(stopped.count, 1u);
  EXPECT_EQ(stopped.status, status::stopped);
  this->expect_untouched(items[3], 3);
  EXPECT_EQ(this->q->push_all({}).status, status::ok);
}

TYPED_TEST_P(QueueConformance, PopSomeTakesAvailableItemsUpToTheMaximum) {
  this->open(8);
  this->fill(5);
  auto three = this->q->pop_some(3);
  ASSERT_TRUE(three);
  ASSERT_EQ(three->size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(TypeParam::value_of((*three)[static_cast<size_t>(i)]), i);
  auto rest = this->q->try_pop_some(100);
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->size(), 2u);
  EXPECT_EQ(TypeParam::value_of((*rest)[0]), 3);
  EXPECT_EQ(this->q->pop_some(4, {deadline::after(1ms), {}}).status(), status::timed_out);
}

TYPED_TEST_P(QueueConformance, PopSomeWaitsForTheFirst) {
  this->open(8);
  std::size_t count = 0;
  std::jthread consumer([&] {
    auto got = this->q->pop_some(8);
    if (got) count = got->size();
  });
  this->await_consumers();
  this->fill(1);
  consumer.join();
  EXPECT_EQ(count, 1u);
}

TYPED_TEST_P(QueueConformance, PopSomeFreesCapacityForWaitingProducers) {
  this->open_full(2);
  std::jthread producer([&] {
    for (int i = 2; i < 6; ++i) EXPECT_EQ(this->q->push(TypeParam::make(i)), status::ok);
  });
  this->await_producers();
  int next = 0;
  while (next < 6) {
    auto some = this->q->pop_some(2);
    ASSERT_TRUE(some);
    for (auto& item : *some) EXPECT_EQ(TypeParam::value_of(item), next++);
  }
}

// ---- counters

TYPED_TEST_P(QueueConformance, CountersMatchTheOperations) {
  this->open(2);
  this->fill(2);
  EXPECT_EQ(this->q->try_push(TypeParam::make(1)), status::full);
  EXPECT_EQ(this->q->push(TypeParam::make(1), -1s), status::timed_out);
  this->expect_next(0);
  this->fill(1);
  this->expect_next(1);
  this->expect_next(0);
  EXPECT_EQ(this->q->try_pop().status(), status::empty);
  std::jthread consumer([&] { EXPECT_TRUE(this->q->pop()); });
  this->await_consumers();
  this->fill(1);
  consumer.join();
  const auto stats = this->q->stats();
  EXPECT_EQ(stats.pushed, 4u);
  EXPECT_EQ(stats.popped, 4u);
  EXPECT_EQ(stats.dropped, 0u);
  EXPECT_EQ(stats.rejected, 2u);
  EXPECT_EQ(stats.pop_waits, 1u);
  EXPECT_EQ(stats.push_waits, 0u);
  EXPECT_EQ(stats.high_water, 2u);
  EXPECT_EQ(this->q->high_water(), 2u);
}

TYPED_TEST_P(QueueConformance, HighWaterIsTheLargestSizeSoFar) {
  this->open(10);
  EXPECT_EQ(this->q->high_water(), 0u);
  this->fill(3);
  EXPECT_EQ(this->q->high_water(), 3u);
  this->expect_next(0);
  this->fill(5);
  EXPECT_EQ(this->q->high_water(), 7u);
  for (std::size_t left = 7; left > 0; --left) EXPECT_TRUE(this->q->try_pop());
  EXPECT_TRUE(this->q->empty());
  if (TypeParam::knows_depth) {
    EXPECT_EQ(this->q->high_water(), 7u);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    QueueConformance, ItemsComeOutInTheOrderTheyWentIn, OrderIsKeptAcrossTheEndOfTheBuffer,
    TryPopOfAnEmptyQueueReturnsEmpty, TryPushToAFullQueueReturnsFullAndLeavesTheItem,
    RejectingQueueNeverMakesAProducerWait, CapacityAndSizeAreExact,
    ItemsInsideAreDestroyedWithTheQueue, PopWaitsWhileEmpty, PushWaitsWhileFull,
    CoroutineWaitsForAnItem, CoroutineWaitsForCapacity, CoroutineMayPushATemporary,
    CoroutineIsResumedOnItsOwnSink, ThreadAndCoroutineMeetInOneQueue,
    TimedPopGivesUpHavingTakenNothing, TimedPushGivesUpAndLeavesTheItem,
    PassedDeadlineStillTriesOnce, DurationTooLongToRepresentNeverTimesOut,
    ServedBeforeTheDeadlineIsNotTimedOut, DeadlineMayBeOnAManualClock,
    CoroutineTimesOutOnTheRealClock, StopEndsAWaitingPop, StopEndsAWaitingPushAndLeavesTheItem,
    StopEndsTimedWaitsToo, StopEndsWaitingCoroutines, StopRequestedBeforeWinsOverReadiness,
    CloseWakesEveryConsumer, CloseWakesEveryProducerAndLeavesTheItems, CloseEndsWaitingCoroutines,
    ItemsInsideCanBeTakenAfterCloseThenPopReturnsClosed,
    PushAfterCloseReturnsClosedAndLeavesTheItem,
    PushToAClosedFullQueueReturnsClosedAndNotFull,
    WorkerLoopTakesAllItemsAndEndsAfterClose, BatchPushPushesTheFittingItemsAndLeavesTheRest,
    BatchPushWaitsUntilAllItemsArePushed, BatchPushThatGivesUpReturnsTheNumberOfPushedItems,
    PopSomeTakesAvailableItemsUpToTheMaximum, PopSomeWaitsForTheFirst,
    PopSomeFreesCapacityForWaitingProducers, CountersMatchTheOperations,
    HighWaterIsTheLargestSizeSoFar);

}  // namespace sluice::testing
