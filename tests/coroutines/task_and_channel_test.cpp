#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::task_and_channel_test {
namespace {

template <class Pool>
typename Pool::options two_threads() {
  typename Pool::options o;
  if constexpr (std::is_same_v<Pool, thread_pool>) {
    o.core = 2;
  } else {
    o.threads = 2;
  }
  return o;
}

template <class Pool>
class task_and_channel : public ::testing::Test {
 protected:
  Pool pool{two_threads<Pool>()};
};
struct pool_names {
  template <class Pool>
  static std::string GetName(int) {
    return std::is_same_v<Pool, thread_pool> ? "thread_pool" : "work_stealing_pool";
  }
};
using pools = ::testing::Types<thread_pool, work_stealing_pool>;
TYPED_TEST_SUITE(task_and_channel, pools, pool_names);

task<int> send_up_to(channel<int>& out, int count, const executor& where) {
  for (int i = 0; i < count; ++i) {
    const status sent = co_await out.async_send(i);
    if (!sent) co_return i;
    EXPECT_EQ(executor::current(), &where) << "a task resumes on the executor it was spawned on";
  }
  out.close();
  co_return count;
}
task<std::vector<int>> receive_all(channel<int>& in, const executor& where) {
  std::vector<int> got;
  for (;;) {
    auto item = co_await in.async_receive();
    EXPECT_EQ(executor::current(), &where);
    if (!item) co_return got;
    got.push_back(*item);
  }
}
task<status> receive_one(channel<int>& in) {
  const auto item = co_await in.async_receive();
  co_return item.status();
}
task<status> send_one(channel<int>& out) { co_return co_await out.async_send(1); }

TYPED_TEST(task_and_channel, OneSendsToAnotherInOrder) {
  for (const std::size_t capacity : {0UL, 1UL, 8UL}) {
    channel<int> items(capacity);
    auto got = spawn(this->pool, receive_all(items, this->pool));
    auto sent = spawn(this->pool, send_up_to(items, 1'000, this->pool));
    EXPECT_EQ(sent.get(), 1'000);
    const auto all = got.get();
    ASSERT_EQ(all.size(), 1'000U);
    for (int i = 0; i < 1'000; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  }
}

TYPED_TEST(task_and_channel, CancellingEndsTheWaitAndTakesNothing) {
  channel<int> items(1);
  auto receives = spawn(this->pool, receive_one(items));
  eventually([&] { return items.waiting_to_receive() == 1; });
  receives.cancel();
  EXPECT_EQ(receives.get(), status::stopped);

  ASSERT_TRUE(items.try_send(7));
  auto sends = spawn(this->pool, send_one(items));
  eventually([&] { return items.waiting_to_send() == 1; });
  sends.cancel();
  EXPECT_EQ(sends.get(), status::stopped);
  EXPECT_EQ(*items.try_receive(), 7);
  EXPECT_EQ(items.try_receive().status(), status::empty) << "a cancelled send leaves no item";
}

TYPED_TEST(task_and_channel, ClosingEndsTheWait) {
  channel<int> items(1);
  auto receives = spawn(this->pool, receive_one(items));
  eventually([&] { return items.waiting_to_receive() == 1; });
  items.close();
  EXPECT_EQ(receives.get(), status::closed);
}

// Sums the items of both channels until it is stopped or both have been closed.
struct total {
  long sum = 0;
  status outcome = status::ok;
};
task<total> add_both(channel<int>& left, channel<int>& right) {
  total so_far;
  std::array<bool, 2> closed{};
  const auto add = [&](std::size_t side) {
    return [&so_far, &closed, side](outcome<int> item) {
      if (item) {
        so_far.sum += *item;
      } else {
        closed[side] = true;
      }
    };
  };
  receive_only<int> from_left(left);
  receive_only<int> from_right(right);
  while (!closed[0] || !closed[1]) {
    if (closed[0]) from_left = {};
    if (closed[1]) from_right = {};
    auto one = on_receive(from_left, add(0));
    auto other = on_receive(from_right, add(1));
    const auto chosen = co_await async_select({}, one, other);
    if (!chosen) {
      so_far.outcome = chosen.status;
      break;
    }
  }
  co_return so_far;
}

TYPED_TEST(task_and_channel, ASelectReceivesFromAnyReadyChannel) {
  channel<int> left(2);
  channel<int> right(0);
  auto added = spawn(this->pool, add_both(left, right));
  auto from_left = spawn(this->pool, send_up_to(left, 1'000, this->pool));
  auto from_right = spawn(this->pool, send_up_to(right, 2'000, this->pool));
  const auto all = added.get();
  EXPECT_EQ(all.outcome, status::ok);
  EXPECT_EQ(all.sum, 999L * 1'000 / 2 + 1'999L * 2'000 / 2);
  EXPECT_EQ(from_left.get(), 1'000);
  EXPECT_EQ(from_right.get(), 2'000);
}

TYPED_TEST(task_and_channel, CancellingEndsASelectAndRemovesItsWaiters) {
  channel<int> left(1);
  channel<int> right(1);
  auto added = spawn(this->pool, add_both(left, right));
  ASSERT_TRUE(left.send(3));
  eventually([&] {
    return left.size() == 0 && left.waiting_to_receive() == 1 && right.waiting_to_receive() == 1;
  });
  added.cancel();
  const auto all = added.get();
  EXPECT_EQ(all.outcome, status::stopped);
  EXPECT_EQ(all.sum, 3);
  EXPECT_EQ(left.waiting_to_receive(), 0U);
  EXPECT_EQ(right.waiting_to_receive(), 0U);
}

// Returns each received ball after adding one.
task<int> play(channel<std::unique_ptr<int>>& in, channel<std::unique_ptr<int>>& out, int last) {
  int returned = 0;
  for (;;) {
    auto ball = co_await in.async_receive();
    if (!ball) break;
    if (++**ball == last) {
      out.close();
      break;
    }
    const status sent = co_await out.async_send(*ball);
    if (!sent) break;
    ++returned;
  }
  co_return returned;
}

TYPED_TEST(task_and_channel, TwoPlayPingPong) {
  stress run;
  constexpr int hits = 20'000;
  for (const std::size_t capacity : {0UL, 1UL}) {
    channel<std::unique_ptr<int>> ping(capacity);
    channel<std::unique_ptr<int>> pong(capacity);
    auto one = spawn(this->pool, play(ping, pong, hits));
    auto other = spawn(this->pool, play(pong, ping, hits));
    ASSERT_TRUE(ping.send(std::make_unique<int>(0)));
    EXPECT_EQ(one.get() + other.get(), hits - 1);
    run.did(hits);
  }
}

TYPED_TEST(task_and_channel, PingPongEndsWhenBothAreCancelled) {
  channel<std::unique_ptr<int>> ping(1);
  channel<std::unique_ptr<int>> pong(1);
  constexpr int never = 2'000'000'000;
  auto one = spawn(this->pool, play(ping, pong, never));
  auto other = spawn(this->pool, play(pong, ping, never));
  ASSERT_TRUE(ping.send(std::make_unique<int>(0)));
  one.cancel();
  other.cancel();
  try {
    EXPECT_GE(one.get(), 0);
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::cancelled) << "before it began";
  }
  try {
    EXPECT_GE(other.get(), 0);
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::cancelled);
  }
}

}  // namespace
}  // namespace sluice::testing::task_and_channel_test
