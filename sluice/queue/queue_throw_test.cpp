// A throwing move constructor fails the call that moved, and loses no other item.

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::queue_throw_test {
namespace {

using testing::detached;
using testing::eventually;

// Throws at the nth move of all its objects; 0 means never.
struct thrower {
  static inline std::atomic<int> until_throw{0};
  static void arm(int nth) { until_throw = nth; }

  explicit thrower(int v) : value(v) {}
  thrower(thrower&& from) : value(from.value) {
    if (until_throw > 0 && --until_throw == 0) throw std::runtime_error("move");
    if (value == throwing_value && throws_left.exchange(0) > 0) throw std::runtime_error("touched");
    from.value = gone;
  }
  thrower& operator=(thrower&&) = delete;

  static constexpr int gone = -1;
  static constexpr int throwing_value = 1000;     // an item with this value throws once ...
  static inline std::atomic<int> throws_left{0};  // ... if this is 1
  int value;
};

class ThrowingMove : public ::testing::Test {
 protected:
  void TearDown() override { thrower::arm(0); }

  static void fill(bounded_queue<thrower>& q, int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(q.try_push(thrower(i)), status::ok);
  }
  static std::vector<int> drain(bounded_queue<thrower>& q) {
    thrower::arm(0);
    std::vector<int> all;
    while (auto item = q.try_pop()) all.push_back(item->value);
    return all;
  }
};

TEST_F(ThrowingMove, PushThatThrowsLeavesTheItemAndTheQueue) {
  bounded_queue<thrower> q(4);
  fill(q, 2);
  thrower item(7);
  thrower::arm(1);
  EXPECT_THROW((void)q.push(std::move(item)), std::runtime_error);
  EXPECT_EQ(item.value, 7);
  EXPECT_EQ(q.size(), 2u);
  EXPECT_EQ(q.stats().pushed, 2u);
  EXPECT_EQ(q.try_push(std::move(item)), status::ok);
  EXPECT_EQ(drain(q), (std::vector{0, 1, 7}));
}

TEST_F(ThrowingMove, PopThatThrowsAtTheQueueLeavesTheItemInside) {
  bounded_queue<thrower> q(4);
  fill(q, 3);
  thrower::arm(1);
  EXPECT_THROW((void)q.try_pop(), std::runtime_error);
  thrower::arm(1);
  EXPECT_THROW((void)q.pop(), std::runtime_error);
  EXPECT_EQ(q.size(), 3u);
  EXPECT_EQ(q.stats().popped, 0u);
  EXPECT_EQ(drain(q), (std::vector{0, 1, 2}));
}

TEST_F(ThrowingMove, PopLosesNoOtherItemAtAnyThrowingMove) {
  for (int nth = 1; nth <= 5; ++nth) {
    bounded_queue<thrower> q(4);
    fill(q, 3);
    thrower::arm(nth);
    std::vector<int> seen;
    try {
      auto got = q.pop();
      seen.push_back(got->value);
    } catch (const std::runtime_error&) {
    }
    const auto rest = drain(q);
    seen.insert(seen.end(), rest.begin(), rest.end());
    ASSERT_GE(seen.size(), 2u) << "move " << nth;
    EXPECT_EQ(seen.back(), 2);
    EXPECT_EQ(seen[seen.size() - 2], 1);
    EXPECT_EQ(q.stats().pushed, q.stats().popped + q.size());
  }
}

TEST_F(ThrowingMove, PopSomeKeepsTheTakenItemsAndLeavesTheThrowingOne) {
  bounded_queue<thrower> q(8);
  fill(q, 5);
  thrower::arm(3);  // two are moved into the vector, the third throws
  auto some = q.try_pop_some(5);
  thrower::arm(0);
  ASSERT_TRUE(some);
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].value, 0);
  EXPECT_EQ((*some)[1].value, 1);
  EXPECT_EQ(drain(q), (std::vector{2, 3, 4}));
}

TEST_F(ThrowingMove, PopSomeWhoseFirstMoveThrowsTakesNothing) {
  bounded_queue<thrower> q(8);
  fill(q, 3);
  thrower::arm(1);
  EXPECT_THROW((void)q.pop_some(3), std::runtime_error);
  EXPECT_EQ(drain(q), (std::vector{0, 1, 2}));
}

TEST_F(ThrowingMove, BatchPushKeepsThePushedItemsAndLeavesTheRest) {
  bounded_queue<thrower> q(8);
  std::vector<thrower> items;
  items.reserve(4);
  for (int i = 0; i < 4; ++i) items.emplace_back(i);
  thrower::arm(3);
  EXPECT_THROW((void)q.push_all(items), std::runtime_error);
  EXPECT_EQ(items[1].value, thrower::gone);
  EXPECT_EQ(items[2].value, 2);
  EXPECT_EQ(items[3].value, 3);
  EXPECT_EQ(drain(q), (std::vector{0, 1}));
}

TEST_F(ThrowingMove, EvictionThatThrowsLeavesBothItems) {
  for (const auto policy : {overflow::drop_oldest, overflow::latest}) {
    bounded_queue<thrower> q({.capacity = 2, .overflow = policy});
    fill(q, 2);
    thrower item(7);
    thrower::arm(1);
    EXPECT_THROW((void)q.push(std::move(item)), std::runtime_error);
    EXPECT_EQ(item.value, 7);
    EXPECT_EQ(q.stats().dropped, 0u);
    EXPECT_EQ(drain(q), (std::vector{0, 1}));
  }
}

TEST_F(ThrowingMove, ItemEvictedForAPushThatThrewIsStillReported) {
  std::vector<int> dropped;
  bounded_queue<thrower> q({.capacity = 2,
                            .overflow = overflow::drop_oldest,
                            .on_drop = [&](thrower&& t) { dropped.push_back(t.value); }});
  fill(q, 2);
  thrower item(7);
  thrower::arm(2);  // the evicted item is moved, the move of the incoming one throws
  EXPECT_THROW((void)q.push(std::move(item)), std::runtime_error);
  EXPECT_EQ(item.value, 7);
  EXPECT_EQ(dropped, std::vector{0});
  EXPECT_EQ(q.stats().dropped, 1u);
  EXPECT_EQ(drain(q), std::vector{1});
}

TEST_F(ThrowingMove, DropNewestThatThrowsLeavesTheItem) {
  bounded_queue<thrower> q({.capacity = 1, .overflow = overflow::drop_newest});
  fill(q, 1);
  thrower item(7);
  thrower::arm(1);
  EXPECT_THROW((void)q.push(std::move(item)), std::runtime_error);
  EXPECT_EQ(item.value, 7);
  EXPECT_EQ(drain(q), std::vector{0});
}

// ---- hand-over to waiters

TEST_F(ThrowingMove, CoroutineGetsTheExceptionOfItsOwnHandOver) {
  bounded_queue<thrower> q(2);
  int caught = 0;
  const auto consume = [](bounded_queue<thrower>& from, int& count) -> detached {
    try {
      (void)co_await from.async_pop();
    } catch (const std::runtime_error&) {
      ++count;
    }
  };
  consume(q, caught);
  thrower::arm(2);  // into the queue, then out of it
  EXPECT_EQ(q.push(thrower(5)), status::ok);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(drain(q), std::vector{5});
}

TEST_F(ThrowingMove, NextCoroutineGetsTheItemWhoseHandOverThrew) {
  bounded_queue<thrower> q(2);
  std::vector<int> got;
  const auto consume = [](bounded_queue<thrower>& from, std::vector<int>& seen) -> detached {
    try {
      auto item = co_await from.async_pop();
      seen.push_back(item->value);
    } catch (const std::runtime_error&) {
      seen.push_back(-7);
    }
  };
  consume(q, got);
  consume(q, got);
  thrower::arm(2);
  EXPECT_EQ(q.push(thrower(5)), status::ok);
  EXPECT_EQ(got, (std::vector{-7, 5}));
  EXPECT_TRUE(q.empty());
}

TEST_F(ThrowingMove, ProducingCoroutineGetsTheExceptionAndKeepsTheItem) {
  bounded_queue<thrower> q(1);
  fill(q, 1);
  thrower item(7);
  int caught = 0;
  [](bounded_queue<thrower>& target, thrower& from, int& count) -> detached {
    try {
      (void)co_await target.async_push(from);
    } catch (const std::runtime_error&) {
      ++count;
    }
  }(q, item, caught);
  // The moves of a pop: out of the store, then the waiting producer's item into it.
  thrower::arm(2);
  auto got = q.try_pop();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->value, 0);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(item.value, 7);
  EXPECT_TRUE(q.empty());
}

// A woken thread whose own move throws passes the wake on: the item or the capacity is still free.
TEST_F(ThrowingMove, AnotherWaitingThreadGetsTheItemThatAWokenThreadCouldNotTake) {
  bounded_queue<thrower> q(4);
  std::atomic<int> threw{0};
  std::atomic<int> got{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 2; ++i) {
    crew.emplace_back([&] {
      try {
        auto item = q.pop();
        if (item) got = item->value;
      } catch (const std::runtime_error&) {
        ++threw;
      }
    });
  }
  eventually([&] { return q.waiting_to_pop() == 2; });
  thrower::arm(2);
  ASSERT_EQ(q.push(thrower(5)), status::ok);
  eventually([&] { return got == 5; }, "the other consumer to be woken");
  crew.clear();
  EXPECT_EQ(threw, 1);
}

TEST_F(ThrowingMove, AnotherWaitingThreadUsesTheCapacityThatAWokenThreadCouldNotUse) {
  bounded_queue<thrower> q(1);
  fill(q, 1);
  std::atomic<int> threw{0};
  std::atomic<int> pushed{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 2; ++i) {
    crew.emplace_back([&] {
      thrower item(thrower::throwing_value);
      try {
        if (q.push(std::move(item))) ++pushed;
      } catch (const std::runtime_error&) {
        if (item.value == thrower::throwing_value) ++threw;
      }
    });
  }
  eventually([&] { return q.waiting_to_push() == 2; });
  thrower::throws_left = 1;
  ASSERT_TRUE(q.try_pop());
  eventually([&] { return pushed == 1; }, "the other producer to be woken");
  crew.clear();
  EXPECT_EQ(threw, 1);
}

// ---- rendezvous (capacity 0), of channels only

class hand_to_hand : public detail::queue_core<thrower, detail::ring_store<thrower>> {
  using base = detail::queue_core<thrower, detail::ring_store<thrower>>;
  using store = detail::ring_store<thrower>;

 public:
  hand_to_hand()
      : base("hand_to_hand", options{}, zero_capacity::rendezvous, std::size_t{0},
             store::weights::none) {}
};

TEST_F(ThrowingMove, ConsumerIsWokenIfItsHandOverThrows) {
  hand_to_hand x;
  int caught = 0;
  [](hand_to_hand& from, int& count) -> detached {
    try {
      (void)co_await from.async_pop();
    } catch (const std::runtime_error&) {
      ++count;
    }
  }(x, caught);
  thrower item(3);
  thrower::arm(1);
  EXPECT_EQ(x.try_push(std::move(item)), status::full);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(item.value, 3);
}

TEST_F(ThrowingMove, ProducerIsWokenIfItsHandOverThrows) {
  hand_to_hand x;
  int caught = 0;
  thrower item(3);
  [](hand_to_hand& target, thrower& from, int& count) -> detached {
    try {
      (void)co_await target.async_push(from);
    } catch (const std::runtime_error&) {
      ++count;
    }
  }(x, item, caught);
  thrower::arm(1);
  EXPECT_EQ(x.try_pop().status(), status::empty);
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(item.value, 3);
}

}  // namespace
}  // namespace sluice::queue_throw_test
