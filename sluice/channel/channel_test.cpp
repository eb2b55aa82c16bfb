#include "sluice/channel/channel.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/channel/testing/print.hpp"
#include "sluice/channel/testing/states.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace channel_test {
namespace {

using namespace std::chrono_literals;
using sluice::channel;
using sluice::deadline;
using sluice::manual_clock;
using sluice::outcome;
using sluice::overflow;
using sluice::receive_only;
using sluice::send_only;
using sluice::status;
using sluice::wait_limits;
using sluice::testing::channel_in;
using sluice::testing::channel_state;
using sluice::testing::detached;
using sluice::testing::eventually;
using sluice::testing::manual_sink;

std::stop_token already_stopped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

// ---- the table: every state, every form of send and receive

class ChannelStates : public ::testing::TestWithParam<channel_state> {
 protected:
  static status waiting(status answer, status instead) {
    return answer == status::full || answer == status::empty ? instead : answer;
  }
  channel_in subject{GetParam()};
  const status send_answer = sluice::testing::send_answer(GetParam());
  const status receive_answer = sluice::testing::receive_answer(GetParam());
};

TEST_P(ChannelStates, TryCallsReturnAtOnce) {
  EXPECT_EQ(subject.in.try_send(9), send_answer);
  channel_in other(GetParam());
  const auto got = other.out.try_receive();
  EXPECT_EQ(got.status(), receive_answer);
  if (got) {
    EXPECT_EQ(*got, 1);
  }
}

TEST_P(ChannelStates, APassedDeadlineStillAllowsOneTry) {
  const auto before = subject.size();
  EXPECT_EQ(subject.in.send(9, 0ms), waiting(send_answer, status::timed_out));
  EXPECT_EQ(subject.size(), before + (send_answer == status::ok ? 1 : 0));
  channel_in other(GetParam());
  EXPECT_EQ(other.out.receive(std::chrono::system_clock::now() - 1h).status(),
            waiting(receive_answer, status::timed_out));
}

TEST_P(ChannelStates, NegativeAndInfiniteTimeoutsAreValid) {
  EXPECT_EQ(subject.in.send(9, std::chrono::nanoseconds::min()),
            waiting(send_answer, status::timed_out));
  channel_in other(GetParam());
  EXPECT_EQ(other.out.receive(-std::numeric_limits<double>::infinity() * 1s).status(),
            waiting(receive_answer, status::timed_out));
  // Too long to represent: the wait never times out, so another event must end it.
  if (waiting(send_answer, status::stopped) != status::stopped) {
    channel_in third(GetParam());
    EXPECT_EQ(third.in.send(9, std::chrono::hours::max()), send_answer);
    return;
  }
  std::stop_source stop;
  channel_in third(GetParam());
  std::jthread sender([&] {
    EXPECT_EQ(third.in.send(9, {std::chrono::hours::max(), stop.get_token()}), status::stopped);
  });
  if (third.in) eventually([&] { return third.waiting() == 1; });
  stop.request_stop();
}

TEST_P(ChannelStates, AnEarlierStopRequestWinsOverReadiness) {
  const auto before = subject.size();
  EXPECT_EQ(subject.in.send(9, already_stopped()), status::stopped);
  EXPECT_EQ(subject.in.send(9, {1h, already_stopped()}), status::stopped);
  EXPECT_EQ(subject.out.receive(already_stopped()).status(), status::stopped);
  EXPECT_EQ(subject.out.receive({1h, already_stopped()}).status(), status::stopped);
  EXPECT_EQ(subject.size(), before);
}

TEST_P(ChannelStates, ABlockedCallParksUntilItsDeadline) {
  manual_clock clock;
  std::jthread sender([&] {
    int item = 9;
    EXPECT_EQ(subject.in.send(std::move(item), {deadline::after(1s, clock), {}}),
              waiting(send_answer, status::timed_out));
  });
  if (send_answer == status::full) {
    eventually([&] { return clock.pending() == 1; });
    clock.advance(1s);
  }
  sender.join();
  channel_in other(GetParam());
  std::jthread receiver([&] {
    EXPECT_EQ(other.out.receive({deadline::after(1s, clock), {}}).status(),
              waiting(receive_answer, status::timed_out));
  });
  if (receive_answer == status::empty) {
    eventually([&] { return clock.pending() == 1; });
    clock.advance(1s);
  }
  receiver.join();
  EXPECT_EQ(subject.waiting() + other.waiting(), 0U);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_P(ChannelStates, ABlockedCallWaitsUntilItIsStopped) {
  std::stop_source stop;
  std::optional<status> sent;
  std::optional<status> received;
  channel_in other(GetParam());
  std::jthread sender([&] { sent = subject.in.send(9, stop.get_token()); });
  std::jthread receiver([&] { received = other.out.receive(stop.get_token()).status(); });
  if (send_answer != status::full) sender.join();
  if (receive_answer != status::empty) receiver.join();
  if (subject.in) {
    eventually([&] { return (send_answer == status::full) == (subject.waiting() == 1); });
    eventually([&] { return (receive_answer == status::empty) == (other.waiting() == 1); });
  }
  stop.request_stop();
  if (sender.joinable()) sender.join();
  if (receiver.joinable()) receiver.join();
  EXPECT_EQ(subject.waiting() + other.waiting(), 0U);
  EXPECT_EQ(sent, waiting(send_answer, status::stopped));
  EXPECT_EQ(received, waiting(receive_answer, status::stopped));
}

// A null end cannot be awaited: see the death test.
class AwaitedChannelStates : public ChannelStates {};

TEST_P(AwaitedChannelStates, CoroutinesSeeTheSameTable) {
  manual_clock clock;
  channel_in other(GetParam());
  std::optional<status> sent;
  std::optional<status> received;
  const auto send = [&]() -> detached {
    sent = co_await subject.in.async_send(9, {deadline::after(1s, clock), {}});
  };
  const auto receive = [&]() -> detached {
    auto got = co_await other.out.async_receive({deadline::after(1s, clock), {}});
    received = got.status();
  };
  send();
  receive();
  EXPECT_EQ(sent.has_value(), send_answer != status::full);
  EXPECT_EQ(received.has_value(), receive_answer != status::empty);
  clock.advance(1s);
  ASSERT_TRUE(sent.has_value() && received.has_value());
  EXPECT_EQ(*sent, waiting(send_answer, status::timed_out));
  EXPECT_EQ(*received, waiting(receive_answer, status::timed_out));
  EXPECT_EQ(subject.waiting() + other.waiting(), 0U);
}

const auto state_name = [](const auto& row) { return sluice::testing::to_string(row.param); };
INSTANTIATE_TEST_SUITE_P(All, ChannelStates, ::testing::ValuesIn(sluice::testing::every_state),
                         state_name);
INSTANTIATE_TEST_SUITE_P(NotNull, AwaitedChannelStates,
                         ::testing::ValuesIn(sluice::testing::every_state.begin() + 1,
                                             sluice::testing::every_state.end()),
                         state_name);

// ---- order, capacity, meeting

class ChannelCapacities : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ChannelCapacities, HoldsExactlyItsCapacityFirstInFirstOut) {
  channel<int> c(GetParam());
  EXPECT_EQ(c.capacity(), GetParam());
  const int room = static_cast<int>(GetParam());
  for (int lap = 0; lap < 3; ++lap) {
    for (int i = 0; i < room; ++i) ASSERT_EQ(c.try_send(i), status::ok);
    EXPECT_EQ(c.try_send(-1), status::full);
    EXPECT_EQ(c.size(), GetParam());
    for (int i = 0; i < room; ++i) ASSERT_EQ(*c.try_receive(), i);
    EXPECT_EQ(c.try_receive().status(), status::empty);
  }
}

TEST_P(ChannelCapacities, OrderHoldsBetweenTwoThreads) {
  channel<int> c(GetParam());
  std::jthread maker([&] {
    for (int i = 0; i < 2000; ++i) EXPECT_EQ(c.send(i), status::ok);
    c.close();
  });
  int next = 0;
  for (int got : c) ASSERT_EQ(got, next++);
  EXPECT_EQ(next, 2000);
  EXPECT_EQ(c.stats().pushed, 2000U);
  EXPECT_EQ(c.stats().popped, 2000U);
  EXPECT_LE(c.stats().high_water, GetParam());
}

TEST_P(ChannelCapacities, BufferedItemsOutliveTheCloseThenClosedForEver) {
  channel<int> c(GetParam());
  const int room = static_cast<int>(GetParam());
  for (int i = 0; i < room; ++i) ASSERT_TRUE(c.try_send(i));
  EXPECT_TRUE(c.close());
  EXPECT_FALSE(c.close());
  EXPECT_TRUE(c.is_closed());
  int kept = 7;
  EXPECT_EQ(c.send(kept), status::closed);
  for (int i = 0; i < room; ++i) ASSERT_EQ(*c.receive(), i);
  for (int again = 0; again < 100; ++again) ASSERT_EQ(c.receive().status(), status::closed);
  for (int never : c) FAIL() << never;
}

TEST_P(ChannelCapacities, CloseWakesEveryReceiverAndSender) {
  channel<int> c(GetParam());
  std::optional<channel<int>> full(std::in_place, GetParam());
  for (std::size_t i = 0; i < GetParam(); ++i) ASSERT_TRUE(full->try_send(0));
  std::vector<std::jthread> parties;
  std::optional<status> awaited_receive;
  std::optional<status> awaited_send;
  for (int i = 0; i < 3; ++i) {
    parties.emplace_back([&] { EXPECT_EQ(c.receive().status(), status::closed); });
    parties.emplace_back([&] {
      auto item = 5;
      EXPECT_EQ(full->send(std::move(item)), status::closed);
      EXPECT_EQ(item, 5);
    });
  }
  const auto receive = [&]() -> detached {
    auto got = co_await c.async_receive();
    awaited_receive = got.status();
  };
  const auto send = [&]() -> detached { awaited_send = co_await full->async_send(1); };
  receive();
  send();
  eventually([&] { return c.waiting_to_receive() == 4 && full->waiting_to_send() == 4; });
  EXPECT_TRUE(c.close());
  EXPECT_TRUE(full->close());
  parties.clear();
  EXPECT_EQ(awaited_receive, status::closed);
  EXPECT_EQ(awaited_send, status::closed);
  EXPECT_EQ(c.waiting_to_receive() + full->waiting_to_send(), 0U);
  EXPECT_EQ(full->size(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ChannelCapacities, ::testing::Values(0, 1, 2, 10, 1000));

TEST(Channel, SendReturnsOnlyOnceAReceiverHasTheItem) {
  channel<std::unique_ptr<int>> c;
  bool returned = false;  // read only after the join
  std::jthread sender([&] {
    EXPECT_EQ(c.send(std::make_unique<int>(42)), status::ok);
    returned = true;
  });
  eventually([&] { return c.waiting_to_send() == 1; });
  EXPECT_EQ(c.size(), 0U);  // the buffer is empty: the sender still has the item
  const auto got = c.receive();
  EXPECT_EQ(**got, 42);
  sender.join();
  EXPECT_TRUE(returned);
}

TEST(Channel, TrySendMeetsAWaitingReceiverAndTryReceiveAWaitingSender) {
  channel<int> c;
  std::jthread receiver([&] { EXPECT_EQ(*c.receive(), 1); });
  eventually([&] { return c.waiting_to_receive() == 1; });
  EXPECT_EQ(c.try_send(1), status::ok);
  EXPECT_EQ(c.try_send(2), status::full);  // one receiver takes one item
  receiver.join();
  std::jthread sender([&] { EXPECT_EQ(c.send(3), status::ok); });
  eventually([&] { return c.waiting_to_send() == 1; });
  EXPECT_EQ(*c.try_receive(), 3);
  EXPECT_EQ(c.try_receive().status(), status::empty);
}

TEST(Channel, WaitersOfARendezvousAreServedInOrderOfArrival) {
  channel<int> c;
  std::vector<std::jthread> senders;
  for (int i = 0; i < 5; ++i) {
    senders.emplace_back([&c, i] { EXPECT_EQ(c.send(i), status::ok); });
    eventually([&] { return c.waiting_to_send() == static_cast<std::size_t>(i) + 1; });
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*c.receive(), i);
  std::vector<int> got;
  const auto receive = [&](int who) -> detached {
    auto item = co_await c.async_receive();
    got.push_back(who * 10 + *item);
  };
  for (int i = 0; i < 5; ++i) receive(i);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(c.try_send(i), status::ok);
  EXPECT_EQ(got, (std::vector<int>{0, 11, 22, 33, 44}));
}

TEST(Channel, AFailedSendLeavesTheItemWithTheCaller) {
  channel<std::unique_ptr<int>> c;
  auto item = std::make_unique<int>(1);
  EXPECT_EQ(c.try_send(std::move(item)), status::full);
  EXPECT_EQ(c.send(std::move(item), already_stopped()), status::stopped);
  EXPECT_EQ(c.send(std::move(item), 1us), status::timed_out);
  c.close();
  EXPECT_EQ(c.send(std::move(item)), status::closed);
  std::optional<status> awaited;
  const auto send = [&]() -> detached { awaited = co_await c.async_send(item); };
  send();
  EXPECT_EQ(awaited, status::closed);
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(*item, 1);
}

TEST(Channel, KeepsNoCopyOfAReceivedItem) {
  auto counted = std::make_shared<int>(0);
  channel<std::shared_ptr<int>> c(2);
  ASSERT_TRUE(c.send(counted));
  EXPECT_EQ(counted.use_count(), 2);
  EXPECT_TRUE(c.receive());
  EXPECT_EQ(counted.use_count(), 1);
  {
    channel<std::shared_ptr<int>> dropped(2);
    ASSERT_TRUE(dropped.send(counted));
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(Channel, CarriesEmptyAndLargeItems) {
  struct nothing {};
  struct block {
    std::array<unsigned char, 70000> bytes;
  };
  channel<nothing> signals(3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(signals.send(nothing{}), status::ok);
  EXPECT_EQ(signals.try_send(nothing{}), status::full);
  signals.close();
  int count = 0;
  for ([[maybe_unused]] auto& s : signals) ++count;
  EXPECT_EQ(count, 3);

  channel<block> blocks(1);
  auto big = std::make_unique<block>();
  big->bytes.fill(7);
  ASSERT_EQ(blocks.send(*big), status::ok);
  EXPECT_EQ(blocks.receive()->bytes.back(), 7);
}

TEST(Channel, BatchesPassARendezvousOneByOneAndABufferTogether) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{2}, std::size_t{100}}) {
    channel<int> c(capacity);
    std::jthread sender([&] {
      std::vector<int> items{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
      const auto sent = c.send_all(items);
      EXPECT_EQ(sent.status, status::ok);
      EXPECT_EQ(sent.count, 10U);
      c.close();
    });
    std::vector<int> got;
    while (auto some = c.receive_some(4)) {
      EXPECT_LE(some->size(), 4U);
      got.insert(got.end(), some->begin(), some->end());
    }
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

// ---- giving up

TEST(Channel, AStoppedOrTimedOutReceiverIsSkippedAndTheNextIsServed) {
  channel<int> c(1);
  manual_clock clock;
  std::stop_source stop;
  std::vector<std::string> results;
  const auto receive = [&](std::string who, wait_limits limits) -> detached {
    auto got = co_await c.async_receive(limits);
    results.push_back(who + (got ? std::to_string(*got) : std::string(to_string(got.status()))));
  };
  receive("a:", {{}, stop.get_token()});
  receive("b:", {deadline::after(1s, clock), {}});
  receive("c:", {});
  EXPECT_EQ(c.waiting_to_receive(), 3U);
  stop.request_stop();
  clock.advance(1s);
  EXPECT_EQ(c.waiting_to_receive(), 1U);
  EXPECT_EQ(c.try_send(5), status::ok);
  EXPECT_EQ(results, (std::vector<std::string>{"a:stopped", "b:timed out", "c:5"}));
  EXPECT_FALSE(stop.request_stop());  // after the end of the wait: changes nothing
  EXPECT_EQ(c.try_receive().status(), status::empty);
}

TEST(Channel, AStoppedSenderIsSkippedAndTheNextIsServed) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}}) {
    channel<int> c(capacity);
    if (capacity == 1) {
      ASSERT_TRUE(c.try_send(0));
    }
    std::stop_source stop;
    int kept = 1;
    std::jthread first(
        [&] { EXPECT_EQ(c.send(std::move(kept), stop.get_token()), status::stopped); });
    eventually([&] { return c.waiting_to_send() == 1; });
    std::jthread second([&] { EXPECT_EQ(c.send(2), status::ok); });
    eventually([&] { return c.waiting_to_send() == 2; });
    stop.request_stop();
    first.join();
    EXPECT_EQ(kept, 1);
    if (capacity == 1) {
      EXPECT_EQ(*c.receive(), 0);
    }
    EXPECT_EQ(*c.receive(), 2);
    second.join();
    EXPECT_EQ(c.waiting_to_send(), 0U);
  }
}

TEST(Channel, AStopAfterTheEndOfTheWaitChangesNothing) {
  channel<int> c(1);
  std::stop_source stop;
  ASSERT_EQ(c.send(1, stop.get_token()), status::ok);
  auto got = c.receive(stop.get_token());
  stop.request_stop();
  EXPECT_EQ(*got, 1);
  EXPECT_EQ(c.receive(stop.get_token()).status(), status::stopped);
  c.close();
  EXPECT_EQ(c.receive(stop.get_token()).status(), status::stopped);
  EXPECT_EQ(c.send(1, stop.get_token()), status::stopped);
  EXPECT_EQ(c.receive().status(), status::closed);
}

// ---- coroutines

TEST(Channel, ACoroutineResumesOnItsSinkWithItsItem) {
  channel<int> c;
  manual_sink sink;
  std::vector<int> got;
  bool sent = false;
  const auto receive = [&](manual_sink&) -> detached {
    auto item = co_await c.async_receive();
    got.push_back(*item);
  };
  const auto send = [&](manual_sink&, int item) -> detached {
    auto done = co_await c.async_send(item);
    sent = static_cast<bool>(done);
  };
  receive(sink);
  EXPECT_EQ(c.try_send(1), status::ok);
  EXPECT_EQ(c.waiting_to_receive(), 0U);  // served, although it has not run yet
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(sink.run_all(), 1U);
  EXPECT_EQ(got, std::vector<int>{1});
  send(sink, 2);
  std::jthread receiver([&] { EXPECT_EQ(*c.receive(), 2); });
  receiver.join();
  EXPECT_FALSE(sent);
  EXPECT_EQ(sink.run_all(), 1U);
  EXPECT_TRUE(sent);
}

TEST(Channel, ThreadsAndCoroutinesShareOneChannel) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{3}}) {
    channel<int> there(capacity);
    channel<int> back(capacity);
    const auto echo = [&]() -> detached {
      for (;;) {
        auto got = co_await there.async_receive();
        if (!got) break;
        auto sent = co_await back.async_send(*got * 2);
        EXPECT_TRUE(sent);
      }
      back.close();
    };
    echo();
    std::jthread asker([&] {
      for (int i = 0; i < 500; ++i) EXPECT_EQ(there.send(i), status::ok);
      there.close();
    });
    int next = 0;
    for (int got : back) ASSERT_EQ(got, 2 * next++);
    EXPECT_EQ(next, 500);
  }
}

// ---- views

template <class End>
concept sends = requires(End e) {
  e.send(1);
}
|| requires(End e) {
  e.try_send(1);
}
|| requires(End e) {
  e.async_send(1);
};
template <class End>
concept receives = requires(End e) {
  e.receive();
}
|| requires(End e) {
  e.try_receive();
}
|| requires(End e) {
  e.begin();
};
template <class End>
concept closes = requires(End e) {
  e.close();
};

static_assert(sends<channel<int>> && receives<channel<int>> && closes<channel<int>>);
static_assert(sends<send_only<int>> && !receives<send_only<int>> && closes<send_only<int>>);
static_assert(!sends<receive_only<int>> && receives<receive_only<int>>);
static_assert(!closes<receive_only<int>>, "only a sender can close");
static_assert(std::convertible_to<channel<int>&, send_only<int>>);
static_assert(std::convertible_to<channel<int>&, receive_only<int>>);
static_assert(!std::convertible_to<send_only<int>, receive_only<int>>);
static_assert(!std::convertible_to<receive_only<int>, send_only<int>>);
static_assert(!std::convertible_to<channel<int>&, send_only<long>>);
static_assert(!std::copyable<channel<int>> && !std::movable<channel<int>>);

TEST(Channel, ViewsOfOneChannelCompareEqual) {
  channel<int> a(1);
  channel<int> b(1);
  send_only<int> in = a;
  receive_only<int> out = a;
  EXPECT_TRUE(in && out);
  EXPECT_FALSE(send_only<int>{} || receive_only<int>{});
  EXPECT_EQ(in, a.sender());
  EXPECT_NE(out, b.receiver());
  EXPECT_EQ(receive_only<int>{}, receive_only<int>{});
  ASSERT_TRUE(in.send(4));
  EXPECT_TRUE(in.close());
  EXPECT_FALSE(in.close());
  EXPECT_FALSE(send_only<int>{}.close());
  std::vector<int> got;
  for (int item : out) got.push_back(item);
  EXPECT_EQ(got, std::vector<int>{4});
  EXPECT_TRUE(a.is_closed());
}

// ---- misuse

class ChannelDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ChannelDeathTest, DestructionWithAWaitingReceiverNamesTheChannel) {
  EXPECT_DEATH(
      {
        std::optional<channel<int>> c(std::in_place, channel<int>::options{.name = "orders"});
        const auto receive = [&]() -> detached { (void)co_await c->async_receive(); };
        receive();
        c.reset();
      },
      "sluice::channel.*orders.*no consumers waiting");
}

TEST_F(ChannelDeathTest, DestructionWithAWaitingSenderNamesTheChannel) {
  EXPECT_DEATH(
      {
        std::optional<channel<int>> c(std::in_place, channel<int>::options{.name = "orders"});
        channel<int>& orders = *c;  // c itself may be used on this thread only
        std::jthread sender([&] { (void)orders.send(1); });
        eventually([&] { return orders.waiting_to_send() == 1; });
        c.reset();
      },
      "sluice::channel.*orders.*no producers waiting");
}

TEST_F(ChannelDeathTest, AWaitOnANullEndWithoutLimitsIsABrokenContract) {
  const char* const expected = "a deadline or a stop_token for a wait on a null channel";
  EXPECT_DEATH((void)send_only<int>{}.send(1), expected);
  EXPECT_DEATH((void)receive_only<int>{}.receive(), expected);
  EXPECT_DEATH((void)receive_only<int>{}.receive(std::stop_token{}), expected);
  EXPECT_DEATH((void)receive_only<int>{}.receive(std::chrono::hours::max()), expected);
  EXPECT_DEATH(for (int i : receive_only<int>{})(void) i, expected);
}

TEST_F(ChannelDeathTest, BatchesAndAwaitsNeedAChannel) {
  EXPECT_DEATH((void)send_only<int>{}.async_send(1), "a channel to send to");
  EXPECT_DEATH((void)receive_only<int>{}.async_receive(), "a channel to receive from");
  EXPECT_DEATH((void)send_only<int>{}.send_all({}), "a channel to send to");
  EXPECT_DEATH((void)receive_only<int>{}.receive_some(1), "a channel to receive from");
}

TEST_F(ChannelDeathTest, ARendezvousThatDropsAndABatchOfZeroItemsAreBrokenContracts) {
  EXPECT_DEATH(channel<int>({.capacity = 0, .overflow = overflow::latest, .name = "gauge"}),
               "gauge.*a capacity of at least 1 for a policy that drops");
  channel<int> c({.capacity = 1, .name = "gauge"});
  EXPECT_DEATH((void)c.receive_some(0), "gauge.*max > 0");
}

}  // namespace
}  // namespace channel_test
