// Many threads and coroutines at once: no item is lost, duplicated or reordered, and every waiter
// is woken.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/channel/testing/crowd.hpp"
#include "sluice/channel/testing/ledger.hpp"
#include "sluice/channel/testing/print.hpp"

namespace channel_stress_test {
namespace {

using namespace std::chrono_literals;
using sluice::async_select;
using sluice::channel;
using sluice::on_receive;
using sluice::on_send;
using sluice::outcome;
using sluice::receive_only;
using sluice::select;
using sluice::send_only;
using sluice::status;
using sluice::try_select;
using sluice::wait_limits;
using sluice::testing::arrivals;
using sluice::testing::detached;
using sluice::testing::eventually;
using sluice::testing::manual_sink;
using sluice::testing::parcel;
using sluice::testing::party;
using sluice::testing::sent;

constexpr auto ignore = [](auto&&) {};

class ChannelStress : public ::testing::TestWithParam<std::size_t> {};

// ---- random parties

TEST_P(ChannelStress, RandomPartiesLoseDuplicateAndReorderNoItem) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t coroutines = 6;
  constexpr int thread_moves = 2500;
  constexpr int coroutine_moves = 1000;
  const auto seed = sluice::testing::seed(sluice::testing::test_name());
  sluice::testing::routes all;
  for (int i = 0; i < 3; ++i) all.emplace_back(GetParam());
  std::deque<party> crowd;
  for (std::uint32_t i = 0; i < threads + coroutines; ++i) crowd.emplace_back(i, seed, all);

  std::atomic<bool> over{false};
  std::atomic<int> roaming{static_cast<int>(coroutines)};
  manual_sink sink;
  std::jthread driver([&] {
    while (!over) {
      if (sink.run_all() == 0) std::this_thread::yield();
    }
  });
  std::jthread stopper([&] {
    for (; !over; std::this_thread::yield()) {
      for (party& p : crowd) p.stop.press();
    }
  });
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        for (int n = 0; n < thread_moves; ++n) crowd[i].move();
      });
    }
    sluice::testing::resumed_anywhere anywhere;
    for (std::size_t i = threads; i < crowd.size(); ++i) {
      if (i % 2 == 0) {
        party::roam(sink, crowd[i], coroutine_moves, roaming);
      } else {
        party::roam(anywhere, crowd[i], coroutine_moves, roaming);
      }
    }
  }
  eventually([&] { return roaming == 0; }, "every coroutine to finish its moves");
  over = true;
  driver.join();
  stopper.join();

  std::vector<sent> senders;
  std::vector<arrivals> readers;
  sluice::testing::tally counts;
  for (party& p : crowd) {
    counts += p.counts;
    senders.push_back(std::move(p.sends));
    readers.push_back(std::move(p.reads));
  }
  arrivals& rest = readers.emplace_back();
  for (auto& route : all) {
    EXPECT_EQ(route.waiting_to_send() + route.waiting_to_receive(), 0U);
    route.close();
    while (auto left = route.receive()) rest.book(std::move(*left));
  }
  std::printf("%" PRIu64 " moves, %" PRIu64 " selects, %zu parcels, %" PRIu64 " timed out, %" PRIu64
              " stopped\n",
              counts.moves, counts.selects, total(readers), counts.timed_out, counts.stopped);
  EXPECT_EQ(counts.wrongs, 0U);
  EXPECT_EQ(audit(senders, readers), "");
}

// ---- plain hand-over

void hand_over(std::size_t capacity, std::size_t makers, std::size_t takers, std::uint64_t each,
               bool takers_await) {
  channel<parcel> c(capacity);
  std::deque<sent> senders;
  std::deque<arrivals> readers(takers);
  std::atomic<std::size_t> taking{takers};
  const auto take = [&](arrivals& arrived) -> detached {
    for (;;) {
      auto got = co_await c.async_receive();
      if (!got) break;
      arrived.book(std::move(*got));
    }
    taking.fetch_sub(1);
  };
  {
    std::vector<std::jthread> taking_threads;
    for (auto& arrived : readers) {
      if (takers_await) {
        take(arrived);
      } else {
        taking_threads.emplace_back([&] {
          for (auto& got : c) arrived.book(std::move(got));
          taking.fetch_sub(1);
        });
      }
    }
    std::vector<std::jthread> making;
    for (std::uint32_t m = 0; m < makers; ++m) {
      sent& sender = senders.emplace_back(m, 1);
      making.emplace_back([&] {
        for (std::uint64_t i = 0; i < each; ++i) {
          EXPECT_EQ(c.send(sender.next(0)), status::ok);
          sender.book(0);
        }
      });
    }
    making.clear();
    c.close();
  }
  eventually([&] { return taking == 0; });
  std::vector<sent> sends(senders.begin(), senders.end());
  std::vector<arrivals> reads;
  for (auto& r : readers) reads.push_back(std::move(r));
  std::printf("%zu makers, %zu %s: %zu parcels (no seed: nothing is drawn)\n", makers, takers,
              takers_await ? "awaiting" : "takers", total(reads));
  EXPECT_EQ(total(reads), makers * each);
  EXPECT_EQ(audit(sends, reads), "");
}

TEST_P(ChannelStress, OneSenderOneReceiver) {
  hand_over(GetParam(), 1, 1, 20'000, false);
}
TEST_P(ChannelStress, OneSenderManyReceiversEachItemOnce) {
  hand_over(GetParam(), 1, 8, 20'000, false);
}
TEST_P(ChannelStress, ManySendersManyReceivers) {
  hand_over(GetParam(), 4, 4, 5'000, false);
}
TEST_P(ChannelStress, ManySendersManyReceivingCoroutines) {
  hand_over(GetParam(), 4, 8, 5'000, true);
}

// ---- selects against selects

TEST_P(ChannelStress, OneStreamOverFourChannelsNeverDeliversAnItemTwice) {
  // A select that performed two of its cases would send the same number into two channels.
  constexpr int items = 20'000;
  std::deque<channel<int>> ways;
  for (int i = 0; i < 4; ++i) ways.emplace_back(GetParam());
  channel<int> merged(GetParam());
  std::jthread sender([&] {
    for (int i = 0; i < items; ++i) {
      EXPECT_TRUE(select(on_send(ways[0], i), on_send(ways[1], i), on_send(ways[2], i),
                         on_send(ways[3], i)));
    }
    for (auto& way : ways) way.close();
  });
  std::atomic<int> forwarding{4};
  std::vector<std::jthread> forwarders;
  for (auto& way : ways) {
    forwarders.emplace_back([&] {
      for (int i : way) EXPECT_TRUE(merged.send(i));
      if (forwarding.fetch_sub(1) == 1) merged.close();
    });
  }
  std::vector<int> times(items, 0);
  int count = 0;
  for (int i : merged) {
    ++times.at(static_cast<std::size_t>(i));
    ++count;
  }
  std::printf("%d items over 4 ways (drawn by each thread's own generator)\n", count);
  EXPECT_EQ(count, items);
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), items);
}

TEST_P(ChannelStress, TwoSelectsThatSendAndReceiveAlwaysMeet) {
  // Both send and receive on one channel; without a buffer neither may be its own partner.
  constexpr int rounds = 5'000;
  channel<int> c(GetParam());
  std::atomic<int> met_itself{0};
  std::atomic<int> received{0};
  std::atomic<int> sent{0};
  {
    std::vector<std::jthread> both;
    for (int me = 0; me < 2; ++me) {
      both.emplace_back([&, me] {
        for (int i = 0; i < rounds; ++i) {
          const auto s = select(on_send(c, me), on_receive(c, [&](outcome<int> got) {
                                  if (*got == me) ++met_itself;
                                }));
          ++(s.index == 0 ? sent : received);
        }
      });
    }
  }
  std::printf("%d rounds: %d sent, %d received\n", 2 * rounds, sent.load(), received.load());
  EXPECT_EQ(sent + received, 2 * rounds);
  EXPECT_EQ(static_cast<std::size_t>(sent - received), c.size());
  if (GetParam() == 0) {
    EXPECT_EQ(met_itself, 0);
  }
}

TEST_P(ChannelStress, ARingOfTwoSidedSelectsDoesNotDeadlock) {
  // Each party sends to the right and receives from the left in one select. All channels carry the
  // same number of items, so both neighbours of a channel wait on it until its last item has
  // passed.
  constexpr std::size_t size = 6;
  constexpr int rounds = 2'000;
  std::deque<channel<int>> ring;
  for (std::size_t i = 0; i < size; ++i) ring.emplace_back(GetParam());
  std::atomic<int> out_of_order{0};
  std::atomic<int> awaiting{static_cast<int>(size / 2)};
  const auto seat = [&](std::size_t me) {
    struct ends {
      receive_only<int> left;
      send_only<int> right;
    };
    return ends{ring[(me + size - 1) % size].receiver(), ring[me].sender()};
  };
  const auto sit_awaiting = [&](std::size_t me) -> detached {
    auto [left, right] = seat(me);
    for (int in = 0, out = 0; in < rounds || out < rounds;) {
      (void)co_await async_select(
          {},
          on_receive(in < rounds ? receive_only<int>(left) : receive_only<int>(),
                     [&](outcome<int> got) {
                       if (*got != in++) ++out_of_order;
                     }),
          on_send(out < rounds ? right : send_only<int>(), out, [&](status) { ++out; }));
    }
    --awaiting;
  };
  {
    std::vector<std::jthread> seats;
    for (std::size_t me = 0; me < size; me += 2) {
      seats.emplace_back([&, me] {
        auto [left, right] = seat(me);
        for (int in = 0, out = 0; in < rounds || out < rounds;) {
          auto take = on_receive(in < rounds ? receive_only<int>(left) : receive_only<int>(),
                                 [&](outcome<int> got) {
                                   if (*got != in++) ++out_of_order;
                                 });
          auto item = out;
          auto give =
              on_send(out < rounds ? right : send_only<int>(), item, [&](status) { ++out; });
          EXPECT_TRUE(select(take, give));
        }
      });
    }
    for (std::size_t me = 1; me < size; me += 2) sit_awaiting(me);
  }
  eventually([&] { return awaiting == 0; });
  std::printf("%zu seats, half of them coroutines: %d passed each\n", size, rounds);
  EXPECT_EQ(out_of_order, 0);
  for (auto& c : ring) EXPECT_EQ(c.waiting_to_send() + c.waiting_to_receive() + c.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Capacities, ChannelStress, ::testing::Values(0, 1, 7, 1024));

// ---- waits on null cases

TEST(SelectStress, AwaitedSelectsOfNullCasesEndByTheirLimitsOnAnyThread) {
  // Without a channel there is no lock that delays the clock's thread until the wait is set up.
  constexpr int waits = 5'000;
  const auto seed = sluice::testing::seed(sluice::testing::test_name());
  std::atomic<int> left{2};
  std::atomic<int> timed_out{0};
  const auto wait = [&](std::uint64_t own_seed) -> detached {
    sluice::random pick(own_seed);
    for (int i = 0; i < waits; ++i) {
      const auto soon = sluice::deadline::after(std::chrono::microseconds(pick.below(20)));
      const auto s = co_await async_select({soon, {}}, on_receive(receive_only<int>(), ignore),
                                           on_send(send_only<int>(), i));
      if (s.status == status::timed_out) ++timed_out;
    }
    --left;
  };
  wait(seed);
  wait(seed + 1);
  eventually([&] { return left == 0; });
  EXPECT_EQ(timed_out, 2 * waits);
}

// ---- select without waiting

TEST(SelectRace, OneOfTwoChannelsIsAlwaysReadySoTheDefaultIsNeverTaken) {
  // A token moves between the channels: it is sent to one before its copy is taken from the other.
  constexpr int looks = 300'000;
  const auto seed = sluice::testing::seed(sluice::testing::test_name());
  std::deque<channel<int>> pair;
  pair.emplace_back(4);
  pair.emplace_back(4);
  ASSERT_TRUE(pair[0].send(1));
  std::atomic<bool> over{false};
  std::uint64_t moved = 0;
  std::jthread mover([&] {
    for (sluice::random pick(seed); !over; ++moved) {
      auto& target = pair[pick.below(2)];
      auto& source = &target == &pair[0] ? pair[1] : pair[0];
      EXPECT_TRUE(target.send(1));
      while (!source.try_receive() && !target.try_receive()) {  // unless the select holds one
      }
    }
  });
  int missed = 0;
  for (int i = 0; i < looks; ++i) {
    const auto s = try_select(on_receive(pair[0], ignore), on_receive(pair[1], ignore));
    if (!s) {
      ++missed;
    } else {
      EXPECT_TRUE(pair[s.index].send(1));
    }
  }
  over = true;
  mover.join();
  std::printf("%d looks, %" PRIu64 " moves\n", looks, moved);
  EXPECT_EQ(missed, 0);
}

TEST(SelectRace, AChannelThatClosesBeforeTheOtherIsDrainedLeavesNoGap) {
  struct pair {
    channel<int> item{1};
    channel<int> end;
  };
  constexpr int rounds = 4'000;
  std::deque<pair> pairs(rounds);
  for (auto& p : pairs) ASSERT_TRUE(p.item.send(1));
  std::atomic<int> looker_at{-1};
  std::atomic<int> closer_at{-1};
  std::jthread closer([&] {
    for (int i = 0; i < rounds; ++i) {
      closer_at = i;
      while (looker_at < i) std::this_thread::yield();
      auto& p = pairs[static_cast<std::size_t>(i)];
      p.end.close();
      (void)p.item.try_receive();
    }
  });
  int missed = 0;
  for (int i = 0; i < rounds; ++i) {
    while (closer_at < i) std::this_thread::yield();
    looker_at = i;
    auto& p = pairs[static_cast<std::size_t>(i)];
    if (!try_select(on_receive(p.item, ignore), on_receive(p.end, ignore))) ++missed;
  }
  closer.join();
  std::printf("%d rounds (no seed: nothing is drawn)\n", rounds);
  EXPECT_EQ(missed, 0);
}

TEST(SelectRace, ATrySendNeverMissesAWaitingReceiver) {
  constexpr int rounds = 5'000;
  channel<int> c;
  std::jthread receiver([&] {
    for (int i = 0; i < rounds; ++i) EXPECT_EQ(*c.receive(), i);
  });
  for (int i = 0; i < rounds; ++i) {
    eventually([&] { return c.waiting_to_receive() == 1; });
    ASSERT_EQ(i % 2 == 0 ? c.try_send(i) : try_select(on_send(c, i)).status, status::ok);
  }
  std::printf("%d rounds (no seed: nothing is drawn)\n", rounds);
}

}  // namespace
}  // namespace channel_stress_test
