#include "sluice/channel/select.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
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

namespace select_test {
namespace {

using namespace std::chrono_literals;
using sluice::async_select;
using sluice::channel;
using sluice::deadline;
using sluice::manual_clock;
using sluice::on_receive;
using sluice::on_send;
using sluice::outcome;
using sluice::overflow;
using sluice::receive_only;
using sluice::select;
using sluice::select_case;
using sluice::selected;
using sluice::send_only;
using sluice::status;
using sluice::try_select;
using sluice::wait_limits;
using sluice::testing::channel_in;
using sluice::testing::channel_state;
using sluice::testing::detached;
using sluice::testing::eventually;
using sluice::testing::manual_sink;

constexpr auto ignore = [](auto&&) {};

// A handler that records its argument.
struct note {
  std::optional<status> reported;
  std::optional<int> item;
  auto received() {
    return [this](outcome<int> got) {
      reported = got.status();
      if (got) item = *got;
    };
  }
  auto sent() {
    return [this](status s) { reported = s; };
  }
};

template <class T>
std::size_t waiting(const channel<T>& c) {
  return c.waiting_to_send() + c.waiting_to_receive();
}

// ---- the table: a single case in every state

class SelectStates : public ::testing::TestWithParam<channel_state> {
 protected:
  static bool ready(status answer) { return answer != status::full && answer != status::empty; }
  channel_in subject{GetParam()};
  channel_in other{GetParam()};
  const status send_answer = sluice::testing::send_answer(GetParam());
  const status receive_answer = sluice::testing::receive_answer(GetParam());
  note sending;
  note receiving;
};

TEST_P(SelectStates, TrySelectNeverWaits) {
  const auto sent = try_select(on_send(subject.in, 9, sending.sent()));
  EXPECT_EQ(sent.status, ready(send_answer) ? status::ok : status::empty);
  EXPECT_EQ(sent.index, ready(send_answer) ? 0 : selected::none);
  EXPECT_EQ(sending.reported, ready(send_answer) ? std::optional(send_answer) : std::nullopt);
  const auto got = try_select(on_receive(other.out, receiving.received()));
  EXPECT_EQ(static_cast<bool>(got), ready(receive_answer));
  EXPECT_EQ(receiving.reported,
            ready(receive_answer) ? std::optional(receive_answer) : std::nullopt);
  if (receive_answer == status::ok) {
    EXPECT_EQ(receiving.item, 1);
  }
}

TEST_P(SelectStates, WithADeadlineItWaitsInEveryChannelAndUnlinks) {
  manual_clock clock;
  std::jthread party([&] {
    const auto s = select({deadline::after(1s, clock), {}}, on_send(subject.in, 9, sending.sent()));
    EXPECT_EQ(s.status, ready(send_answer) ? status::ok : status::timed_out);
  });
  if (!ready(send_answer)) {
    eventually([&] { return clock.pending() == 1; });
    clock.advance(1s);
  }
  party.join();
  EXPECT_EQ(sending.reported.has_value(), ready(send_answer));
  EXPECT_EQ(select(-5h, on_receive(other.out, ignore)).status,
            ready(receive_answer) ? status::ok : status::timed_out);
  EXPECT_EQ(subject.waiting() + other.waiting(), 0U);
}

TEST_P(SelectStates, AnEarlierStopRequestWinsOverReadiness) {
  std::stop_source stop;
  stop.request_stop();
  const auto before = subject.size();
  const auto s = select(stop.get_token(), on_send(subject.in, 9, sending.sent()),
                        on_receive(subject.out, receiving.received()));
  EXPECT_EQ(s.status, status::stopped);
  EXPECT_EQ(s.index, selected::none);
  EXPECT_FALSE(sending.reported || receiving.reported);
  EXPECT_EQ(subject.size(), before);
}

TEST_P(SelectStates, AnAwaitedSelectReturnsTheSame) {
  manual_clock clock;
  std::optional<selected> sent;
  std::optional<selected> got;
  const auto party = [&]() -> detached {
    const wait_limits limits{deadline::after(1s, clock), {}};
    sent = co_await async_select(limits, on_send(subject.in, 9, sending.sent()));
    got = co_await async_select(limits, on_receive(other.out, receiving.received()));
  };
  party();
  clock.advance(1s);
  ASSERT_TRUE(sent && got);
  EXPECT_EQ(sent->status, ready(send_answer) ? status::ok : status::timed_out);
  EXPECT_EQ(got->status, ready(receive_answer) ? status::ok : status::timed_out);
  EXPECT_EQ(sending.reported, ready(send_answer) ? std::optional(send_answer) : std::nullopt);
  EXPECT_EQ(receiving.reported,
            ready(receive_answer) ? std::optional(receive_answer) : std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, SelectStates, ::testing::ValuesIn(sluice::testing::every_state),
                         [](const auto& row) { return sluice::testing::to_string(row.param); });

// ---- choosing one

TEST(Select, PerformsOnlyTheReadyCase) {
  channel<int> empty(1);
  channel<int> full(1);
  channel<int> holding(2);
  ASSERT_TRUE(full.send(0) && holding.send(1) && holding.send(2));
  note a;
  note b;
  note c;
  const auto s = select(on_receive(empty, a.received()), on_send(full, 9, b.sent()),
                        on_receive(holding, c.received()));
  EXPECT_EQ(s.status, status::ok);
  EXPECT_EQ(s.index, 2U);
  EXPECT_EQ(c.item, 1);
  EXPECT_FALSE(a.reported || b.reported);
  EXPECT_EQ(empty.size(), 0U);
  EXPECT_EQ(*full.try_receive(), 0);
  EXPECT_EQ(holding.size(), 1U);
}

TEST(Select, AnItemThatWasNotSentStaysWithTheCaller) {
  channel<std::unique_ptr<int>> a;
  channel<std::unique_ptr<int>> b(1);
  auto item = std::make_unique<int>(7);
  EXPECT_EQ(try_select(on_send(a, item)).status, status::empty);
  EXPECT_EQ(select(1us, on_send(a, item), on_send(a, item)).status, status::timed_out);
  ASSERT_NE(item, nullptr);
  const auto s = select(on_send(a, item), on_send(b, item));  // one item in two cases
  EXPECT_EQ(s.index, 1U);
  EXPECT_EQ(item, nullptr);
  EXPECT_EQ(**b.receive(), 7);
}

TEST(Select, AClosedChannelIsReadyAndItsHandlerGetsClosed) {
  channel<int> open;
  channel<int> closed;
  closed.close();
  note noted;
  auto kept = 4;
  EXPECT_EQ(select(on_receive(open, ignore), on_receive(closed, noted.received())).index, 1U);
  EXPECT_EQ(noted.reported, status::closed);
  noted = {};
  EXPECT_EQ(select(on_receive(open, ignore), on_send(closed, kept, noted.sent())).index, 1U);
  EXPECT_EQ(noted.reported, status::closed);
  EXPECT_EQ(kept, 4);
}

TEST(Select, ARejectingChannelReturnsFullAtOnce) {
  channel<int> c({.capacity = 1, .overflow = overflow::reject});
  note noted;
  EXPECT_TRUE(select(on_send(c, 1, noted.sent())));
  EXPECT_EQ(noted.reported, status::ok);
  EXPECT_TRUE(select(on_send(c, 2, noted.sent())));
  EXPECT_EQ(noted.reported, status::full);
  EXPECT_EQ(c.stats().rejected, 1U);
  noted.reported = status::ok;
  EXPECT_TRUE(try_select(on_send(c, 3, noted.sent())));
  EXPECT_EQ(noted.reported, status::full);
}

TEST(Select, NullCasesAreNeverChosen) {
  channel<int> c(1);
  receive_only<int> off;
  send_only<int> out;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(c.send(i));
    note got;
    const auto s = select(on_receive(off, ignore), on_send(out, 1), on_receive(c, got.received()),
                          on_receive(receive_only<int>{}, ignore));
    ASSERT_EQ(s.index, 2U);
    ASSERT_EQ(got.item, i);
  }
}

TEST(Select, AKeptListOfCasesServesManySelects) {
  channel<int> a(1);
  channel<int> b(1);
  std::vector<int> got;
  int out = 0;
  auto from_a = on_receive(a, [&](outcome<int> o) { got.push_back(*o); });
  auto to_b = on_send(b, out, [&](status s) { EXPECT_TRUE(s); });
  const std::array<select_case*, 2> both{&from_a, &to_b};
  out = 5;
  EXPECT_EQ(select({}, both).index, 1U);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(a.send(i));
    EXPECT_EQ(try_select(both).index, 0U);
    EXPECT_EQ(try_select(both).status, status::empty);
  }
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(*b.receive(), 5);
}

TEST(Select, AHandlerMayUseTheChannelsOfItsSelect) {
  channel<int> a(1);
  channel<int> b;
  ASSERT_TRUE(a.send(1));
  const auto s = select(on_receive(b, ignore), on_receive(a, [&](outcome<int> got) {
                          EXPECT_TRUE(a.try_send(*got + 1));
                          EXPECT_TRUE(a.close());
                        }));
  EXPECT_EQ(s.index, 1U);
  EXPECT_EQ(*a.receive(), 2);
}

TEST(Select, ReadyCasesAreChosenEquallyOften) {
  constexpr int draws = 20'000;
  channel<int> holding(1);
  channel<int> roomy(1);
  channel<int> closed_for_send;
  channel<int> drained;
  closed_for_send.close();
  drained.close();
  std::array<int, 4> counts{};
  for (int i = 0; i < draws; ++i) {
    (void)holding.try_send(i);
    (void)roomy.try_receive();
    const auto s = select(on_receive(holding, ignore), on_send(roomy, i),
                          on_send(closed_for_send, i), on_receive(drained, ignore));
    ++counts.at(s.index);
  }
  std::printf("draws %d: %d %d %d %d\n", draws, counts[0], counts[1], counts[2], counts[3]);
  // The standard deviation of a fair draw is 61; a tenth of the mean is eight of them.
  for (const int n : counts) EXPECT_NEAR(n, draws / 4, draws / 40);
}

TEST(Select, ReadyCasesAreChosenEquallyOftenBeyondTheInlineSixteen) {
  constexpr int draws = 40'000;
  std::deque<channel<int>> channels;
  std::deque<decltype(on_receive(channels.front(), ignore))> cases;
  std::vector<select_case*> list;
  for (int i = 0; i < 40; ++i) {
    auto& c = channels.emplace_back(1);
    if (i % 2 == 0) c.close();
    list.push_back(&cases.emplace_back(c, ignore));
  }
  std::array<int, 40> counts{};
  for (int i = 0; i < draws; ++i) {
    for (auto& c : channels) (void)c.try_send(i);
    ++counts.at(select({}, list).index);
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::printf("draws %d over 40 cases: %d..%d each\n", draws, *least, *most);
  EXPECT_GT(*least, 750);  // eight deviations below 1000
  EXPECT_LT(*most, 1250);
}

// ---- waiting

TEST(Select, WaitsInTheListsOfAllItsCasesAndUnlinksFromAll) {
  channel<int> a;
  channel<int> b(1);
  channel<int> c(1);
  ASSERT_TRUE(c.send(0));
  std::optional<selected> s;
  note got;
  std::jthread party(
      [&] { s = select(on_receive(a, got.received()), on_receive(b, ignore), on_send(c, 1)); });
  eventually([&] { return waiting(a) + waiting(b) + waiting(c) == 3; });
  EXPECT_EQ(c.waiting_to_send(), 1U);
  EXPECT_EQ(a.send(5), status::ok);
  party.join();
  EXPECT_EQ(s->index, 0U);
  EXPECT_EQ(got.item, 5);
  EXPECT_EQ(waiting(a) + waiting(b) + waiting(c), 0U);
  EXPECT_EQ(*c.receive(), 0);
  EXPECT_EQ(c.size() + b.size(), 0U);
}

TEST(Select, OtherWaitersKeepTheirOrderWhenItUnlinks) {
  channel<int> first;
  channel<int> second;
  std::vector<int> got;
  const auto plain = [&](int who) -> detached {
    auto item = co_await first.async_receive();
    got.push_back(who * 100 + *item);
  };
  const auto choosing = [&]() -> detached {
    auto s = co_await async_select({}, on_receive(first, ignore), on_receive(second, ignore));
    got.push_back(-static_cast<int>(s.index));
  };
  plain(1);
  choosing();
  plain(2);
  choosing();
  EXPECT_EQ(first.waiting_to_receive(), 4U);
  EXPECT_TRUE(second.try_send(0));
  EXPECT_EQ(first.waiting_to_receive(), 3U);
  EXPECT_TRUE(first.try_send(7));
  EXPECT_TRUE(first.try_send(8));
  EXPECT_TRUE(second.try_send(0));
  EXPECT_EQ(got, (std::vector<int>{-1, 107, 208, -1}));
  EXPECT_EQ(waiting(first) + waiting(second), 0U);
}

TEST(Select, DoesNotMeetItself) {
  channel<int> c;
  EXPECT_EQ(try_select(on_send(c, 1), on_receive(c, ignore)).status, status::empty);
  EXPECT_EQ(select(1ms, on_send(c, 1), on_receive(c, ignore)).status, status::timed_out);
  EXPECT_EQ(waiting(c), 0U);
  std::optional<selected> s;
  note got;
  std::jthread party([&] { s = select(on_send(c, 1), on_receive(c, got.received())); });
  eventually([&] { return c.waiting_to_send() == 1 && c.waiting_to_receive() == 1; });
  EXPECT_EQ(c.send(2), status::ok);  // the other party
  party.join();
  EXPECT_EQ(s->index, 1U);
  EXPECT_EQ(got.item, 2);
  EXPECT_EQ(waiting(c), 0U);
}

TEST(Select, TheSameChannelMayOccurSeveralTimes) {
  channel<int> c;
  channel<int> d;
  std::vector<selected> chosen;
  const auto party = [&]() -> detached {
    chosen.push_back(co_await async_select({}, on_receive(c, ignore), on_receive(c, ignore),
                                           on_receive(d, ignore)));
  };
  int plain = 0;
  const auto other = [&]() -> detached {
    auto got = co_await c.async_receive();
    plain = *got;
  };
  party();
  other();
  EXPECT_EQ(c.waiting_to_receive(), 3U);
  EXPECT_TRUE(d.try_send(1));  // must unlink both nodes in c, and only those
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].index, 2U);
  EXPECT_EQ(c.waiting_to_receive(), 1U);
  EXPECT_TRUE(c.try_send(8));
  EXPECT_EQ(plain, 8);
  party();
  EXPECT_TRUE(c.try_send(9));
  EXPECT_EQ(c.try_send(10), status::full);  // one select takes one item
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_LT(chosen[1].index, 2U);
  EXPECT_EQ(waiting(c) + waiting(d), 0U);
}

TEST(Select, TwoSelectsMeetAcrossTheSameChannels) {
  for (int round = 0; round < 200; ++round) {
    channel<int> c;
    channel<int> d;
    selected here;
    selected there;
    note got_here;
    note got_there;
    std::jthread other([&] { there = select(on_send(c, 1), on_receive(d, got_there.received())); });
    here = select(on_receive(c, got_here.received()), on_send(d, 2));
    other.join();
    ASSERT_EQ(here.index, there.index);  // both performed the same exchange
    ASSERT_EQ(got_here.item.has_value(), here.index == 0);
    ASSERT_EQ(got_there.item.has_value(), there.index == 1);
    ASSERT_EQ(waiting(c) + waiting(d), 0U);
  }
}

TEST(Select, EndsByStopByDeadlineAndByCloseWhileItWaits) {
  channel<int> a;
  channel<int> b(1);
  std::stop_source stop;
  std::jthread stopped([&] {
    EXPECT_EQ(select(stop.get_token(), on_send(a, 1), on_receive(b, ignore)).status,
              status::stopped);
  });
  eventually([&] { return waiting(a) == 1 && waiting(b) == 1; });
  stop.request_stop();
  stopped.join();
  EXPECT_EQ(
      select(std::chrono::steady_clock::now() + 1ms, on_send(a, 1), on_receive(b, ignore)).status,
      status::timed_out);
  EXPECT_EQ(waiting(a) + waiting(b), 0U);
  note noted;
  std::jthread closed([&] {
    EXPECT_EQ(
        select(std::chrono::hours::max(), on_send(a, 1), on_receive(b, noted.received())).index,
        1U);
  });
  eventually([&] { return waiting(a) == 1 && waiting(b) == 1; });
  b.close();
  closed.join();
  EXPECT_EQ(noted.reported, status::closed);
  EXPECT_EQ(waiting(a) + waiting(b), 0U);
}

TEST(Select, FortyCasesWaitAndTheHandlerOfTheChosenOneRuns) {
  std::deque<channel<int>> channels;
  std::deque<decltype(on_receive(channels.front(), ignore))> receives;
  std::deque<decltype(on_send(channels.front(), 1, ignore))> sends;
  std::vector<select_case*> list;
  for (int i = 0; i < 40; ++i) {
    auto& c = channels.emplace_back(i % 3 == 0 ? 1U : 0U);
    if (i % 2 == 0) {
      list.push_back(&receives.emplace_back(c, ignore));
    } else {
      if (c.capacity() == 1) {
        ASSERT_TRUE(c.send(0));
      }
      list.push_back(&sends.emplace_back(c, 1, ignore));
    }
  }
  for (const std::size_t target : {0U, 17U, 39U}) {
    std::jthread party([&] { EXPECT_EQ(select({}, list).index, target); });
    const auto in_line = [&] {
      return std::all_of(channels.begin(), channels.end(), [](auto& c) { return waiting(c) == 1; });
    };
    eventually(in_line);
    auto& c = channels[target];
    if (target % 2 == 0) {
      EXPECT_TRUE(c.send(5));
    } else {
      EXPECT_TRUE(c.receive());
    }
    party.join();
    for (auto& each : channels) EXPECT_EQ(waiting(each), 0U);
  }
}

TEST(Select, WithoutCasesItWaitsForItsLimits) {
  EXPECT_EQ(try_select().status, status::empty);
  EXPECT_EQ(select(1ms).status, status::timed_out);
  std::stop_source stop;
  std::jthread party([&] { EXPECT_EQ(select(stop.get_token()).status, status::stopped); });
  stop.request_stop();
}

// ---- coroutines

TEST(Select, AnAwaitedSelectResumesOnItsSinkAndRunsItsHandlerThere) {
  channel<int> a;
  channel<int> b;
  manual_sink sink;
  note got;
  std::optional<selected> s;
  const auto party = [&](manual_sink&) -> detached {
    s = co_await async_select({}, on_send(a, 1), on_receive(b, got.received()));
  };
  party(sink);
  std::jthread([&] { EXPECT_EQ(b.send(3), status::ok); }).join();
  EXPECT_FALSE(got.reported || s);
  EXPECT_EQ(a.try_receive().status(), status::empty);  // its other case can no longer be chosen
  EXPECT_EQ(sink.run_all(), 1U);
  EXPECT_EQ(got.item, 3);
  EXPECT_EQ(s->index, 1U);
  EXPECT_EQ(waiting(a) + waiting(b), 0U);
}

TEST(Select, AnAwaitedSelectEndsByDeadlineAndByStop) {
  channel<int> a;
  channel<int> b(1);
  manual_clock clock;
  std::stop_source stop;
  std::vector<status> ended;
  const auto party = [&](wait_limits limits) -> detached {
    const auto s = co_await async_select(limits, on_send(a, 1), on_receive(b, ignore));
    ended.push_back(s.status);
  };
  party({deadline::after(1s, clock), {}});
  party({deadline::after(1h, clock), stop.get_token()});
  EXPECT_EQ(clock.pending(), 2U);
  clock.advance(1s);
  EXPECT_EQ(waiting(a) + waiting(b), 2U);
  stop.request_stop();
  EXPECT_EQ(ended, (std::vector<status>{status::timed_out, status::stopped}));
  EXPECT_EQ(clock.pending() + waiting(a) + waiting(b), 0U);
  party({deadline::after(0s, clock), {}});
  party({{}, stop.get_token()});
  EXPECT_EQ(ended.size(), 4U);
  ASSERT_TRUE(b.send(2));
  party({deadline::after(-1s, clock), {}});  // past its deadline, but ready
  EXPECT_EQ(ended.back(), status::ok);
}

TEST(Select, AwaitedSelectsAreServedInOrder) {
  channel<int> a(1);
  channel<int> never;
  std::vector<int> order;
  const auto party = [&](int who) -> detached {
    (void)co_await async_select({}, on_receive(never, ignore), on_receive(a, [&](outcome<int> got) {
                                  order.push_back(who * 10 + *got);
                                }));
  };
  for (int i = 0; i < 4; ++i) party(i);
  EXPECT_EQ(never.waiting_to_receive(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(a.try_send(i));
  EXPECT_EQ(order, (std::vector<int>{0, 11, 22, 33}));
  EXPECT_EQ(waiting(never), 0U);
}

TEST(Select, AnAwaitedSendCaseIsServedByAReceive) {
  channel<std::unique_ptr<int>> a;
  channel<std::unique_ptr<int>> b(1);
  ASSERT_TRUE(b.send(nullptr));
  auto item = std::make_unique<int>(6);
  std::optional<selected> s;
  const auto party = [&]() -> detached {
    s = co_await async_select({}, on_send(a, item), on_send(b, item));
  };
  party();
  EXPECT_FALSE(s.has_value());
  EXPECT_EQ(*b.receive(), nullptr);  // frees capacity: the waiting item is moved in
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->index, 1U);
  EXPECT_EQ(item, nullptr);
  EXPECT_EQ(**b.receive(), 6);
  EXPECT_EQ(waiting(a) + waiting(b), 0U);
}

// ---- misuse

class SelectDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static constexpr const char* for_ever = "sluice::select.*this would wait for ever";
};

TEST_F(SelectDeathTest, AWaitThatCannotEndIsABrokenContract) {
  EXPECT_DEATH((void)select(), for_ever);
  EXPECT_DEATH((void)select(std::stop_token{}), for_ever);
  EXPECT_DEATH((void)select(on_receive(receive_only<int>{}, ignore), on_send(send_only<int>{}, 1)),
               for_ever);
  EXPECT_DEATH((void)select(std::chrono::hours::max()), for_ever);
}

TEST_F(SelectDeathTest, AnAwaitThatCannotEndIsABrokenContract) {
  const auto party = []() -> detached {
    (void)co_await async_select({}, on_receive(receive_only<int>{}, ignore));
  };
  EXPECT_DEATH(party(), for_ever);
}

TEST_F(SelectDeathTest, DestructionOfAChannelThatASelectWaitsInNamesIt) {
  EXPECT_DEATH(
      {
        channel<int> stays;
        std::optional<channel<int>> goes(std::in_place, channel<int>::options{.name = "replies"});
        const auto party = [&]() -> detached {
          (void)co_await async_select({}, on_receive(stays, ignore), on_send(*goes, 1));
        };
        party();
        goes.reset();
      },
      "sluice::channel.*replies.*no producers waiting");
}

TEST_F(SelectDeathTest, ASendCaseOnADroppingChannelIsABrokenContract) {
  channel<int> c({.capacity = 1, .overflow = overflow::drop_oldest});
  EXPECT_DEATH((void)try_select(on_send(c, 1)), "a channel that blocks or rejects");
}

}  // namespace
}  // namespace select_test
