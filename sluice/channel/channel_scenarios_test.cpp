// Complete programs that use channels, checked by their results.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/channel/testing/print.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace channel_scenarios_test {
namespace {

using namespace std::chrono_literals;
using sluice::async_select;
using sluice::channel;
using sluice::deadline;
using sluice::on_receive;
using sluice::on_send;
using sluice::outcome;
using sluice::overflow;
using sluice::receive_only;
using sluice::select;
using sluice::send_only;
using sluice::status;
using sluice::try_select;
using sluice::wait_limits;
using sluice::testing::detached;
using sluice::testing::eventually;

constexpr auto ignore = [](auto&&) {};

// ---- daisy chain: each party adds one to the number from its right and sends it to its left

TEST(ChannelScenario, AnItemPassesThroughTenThousandCoroutines) {
  constexpr std::size_t links = 10'000;
  std::deque<channel<std::size_t>> chain(links + 1);
  const auto link = [](receive_only<std::size_t> right, send_only<std::size_t> left) -> detached {
    auto whisper = co_await right.async_receive();
    auto sent = co_await left.async_send(*whisper + 1);
    EXPECT_TRUE(sent);
  };
  for (std::size_t i = 0; i < links; ++i) link(chain[i + 1], chain[i]);
  EXPECT_EQ(chain.back().send(0), status::ok);
  EXPECT_EQ(*chain.front().receive(), links);
}

TEST(ChannelScenario, AnItemPassesThroughAHundredThreads) {
  constexpr std::size_t links = 100;
  std::deque<channel<std::size_t>> chain(links + 1);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < links; ++i) {
    threads.emplace_back([right = chain[i + 1].receiver(), left = chain[i].sender()]() mutable {
      EXPECT_TRUE(left.send(*right.receive() + 1));
    });
  }
  EXPECT_EQ(chain.back().send(0), status::ok);
  EXPECT_EQ(*chain.front().receive(), links);
}

TEST(ChannelScenario, AnItemPassesThroughThreadsAndCoroutinesInTurn) {
  constexpr std::size_t links = 60;
  std::deque<channel<std::size_t>> chain(links + 1);
  std::vector<std::jthread> threads;
  const auto link = [](receive_only<std::size_t> right, send_only<std::size_t> left) -> detached {
    for (;;) {
      auto whisper = co_await right.async_receive();
      if (!whisper) break;
      auto sent = co_await left.async_send(*whisper + 1);
      EXPECT_TRUE(sent);
    }
    left.close();
  };
  for (std::size_t i = 0; i < links; i += 2) {
    link(chain[i + 1], chain[i]);
    threads.emplace_back([right = chain[i + 2].receiver(), left = chain[i + 1].sender()]() mutable {
      for (auto whisper : right) EXPECT_TRUE(left.send(whisper + 1));
      left.close();
    });
  }
  for (std::size_t n = 0; n < 50; ++n) {
    EXPECT_EQ(chain.back().send(n), status::ok);
    EXPECT_EQ(*chain.front().receive(), n + links);
  }
  chain.back().close();
  EXPECT_EQ(chain.front().receive().status(), status::closed);
}

// ---- prime sieve: a chain that grows by one filter for every prime

TEST(ChannelScenario, CoroutinesSieveTheFirstFourHundredPrimes) {
  std::stop_source stop;
  const wait_limits until_stopped{{}, stop.get_token()};
  std::deque<channel<int>> pipes(1);
  const auto count_up = [&](send_only<int> out) -> detached {
    for (int i = 2;; ++i) {
      const auto sent = co_await out.async_send(int(i), until_stopped);
      if (!sent) break;
    }
  };
  const auto filter = [&](receive_only<int> in, send_only<int> out, int prime) -> detached {
    for (;;) {
      auto number = co_await in.async_receive(until_stopped);
      if (!number) break;
      if (*number % prime == 0) continue;
      const auto sent = co_await out.async_send(*number, until_stopped);
      if (!sent) break;
    }
  };
  count_up(pipes.front());
  std::vector<int> primes;
  while (primes.size() < 400) {
    auto& in = pipes.back();
    primes.push_back(*in.receive());
    filter(in, pipes.emplace_back(), primes.back());
  }
  stop.request_stop();
  EXPECT_EQ(primes[0], 2);
  EXPECT_EQ(primes[99], 541);
  EXPECT_EQ(primes[399], 2741);
  for (auto& p : pipes) EXPECT_EQ(p.waiting_to_send() + p.waiting_to_receive(), 0U);
}

TEST(ChannelScenario, ThreadsSieveTheFirstForty) {
  std::stop_source stop;
  const auto token = stop.get_token();
  std::deque<channel<int>> pipes(1);
  std::vector<std::jthread> threads;
  threads.emplace_back([&out = pipes.front(), token] {
    for (int i = 2; out.send(int(i), token); ++i) {
    }
  });
  std::vector<int> primes;
  while (primes.size() < 40) {
    auto& in = pipes.back();
    primes.push_back(*in.receive());
    auto& out = pipes.emplace_back();
    threads.emplace_back([&in, &out, token, prime = primes.back()] {
      while (auto number = in.receive(token)) {
        if (*number % prime != 0 && !out.send(std::move(*number), token)) break;
      }
    });
  }
  stop.request_stop();
  threads.clear();
  EXPECT_EQ(primes.back(), 173);
}

// ---- power series: a series is a channel of coefficients, computed on demand

struct fraction {
  std::int64_t over = 0;
  std::int64_t under = 1;

  fraction reduced() const {
    const auto common = std::gcd(over, under);
    return under < 0 ? fraction{-over / common, -under / common}
                     : fraction{over / common, under / common};
  }
  friend fraction operator+(fraction a, fraction b) {
    return fraction{a.over * b.under + b.over * a.under, a.under * b.under}.reduced();
  }
  friend fraction operator*(fraction a, fraction b) {
    return fraction{a.over * b.over, a.under * b.under}.reduced();
  }
  friend bool operator==(const fraction&, const fraction&) = default;
};

// Owns the channels; its stop source ends every coroutine that uses them.
class series_workshop {
 public:
  using series = receive_only<fraction>;
  ~series_workshop() { stop_.request_stop(); }

  // Each copy is sent as soon as its reader receives: neither reader waits for the other.
  std::array<series, 2> split(series in) {
    auto& a = pipe();
    auto& b = pipe();
    run_split(in, a, b);
    return {a.receiver(), b.receiver()};
  }
  series integral(fraction constant, series in) {
    auto& out = pipe();
    run_integral(constant, in, out);
    return out.receiver();
  }
  series scaled(fraction by, series in) {
    auto& out = pipe();
    run_scaled(by, in, out);
    return out.receiver();
  }
  series sum(series a, series b) {
    auto& out = pipe();
    run_sum(a, b, out);
    return out.receiver();
  }
  series product(series a, series b) {
    auto& out = pipe();
    run_product(a, b, out);
    return out.receiver();
  }
  // For a series that is defined in terms of itself: creates its channel; `feed` sets its source.
  channel<fraction>& pipe() { return pipes_.emplace_back(); }
  void feed(series in, send_only<fraction> out) { run_scaled({1, 1}, in, out); }

 private:
  wait_limits limits() { return {{}, stop_.get_token()}; }

  detached run_split(series in, send_only<fraction> a, send_only<fraction> b) {
    for (;;) {
      auto next = co_await in.async_receive(limits());
      if (!next) co_return;
      auto left_a = a;
      auto left_b = b;
      while (left_a || left_b) {
        const auto s = co_await async_select(
            limits(), on_send(left_a, fraction(*next), [&](status) { left_a = {}; }),
            on_send(left_b, fraction(*next), [&](status) { left_b = {}; }));
        if (!s) co_return;
      }
    }
  }
  detached run_integral(fraction constant, series in, send_only<fraction> out) {
    auto sent = co_await out.async_send(constant, limits());
    for (std::int64_t n = 1; sent; ++n) {
      auto next = co_await in.async_receive(limits());
      if (!next) co_return;
      sent = co_await out.async_send(*next * fraction{1, n}, limits());
    }
  }
  detached run_scaled(fraction by, series in, send_only<fraction> out) {
    for (;;) {
      auto next = co_await in.async_receive(limits());
      if (!next) co_return;
      const auto sent = co_await out.async_send(*next * by, limits());
      if (!sent) co_return;
    }
  }
  // Receives the two coefficients in any order.
  detached run_sum(series a, series b, send_only<fraction> out) {
    for (;;) {
      fraction total;
      for (auto from_a = a, from_b = b; from_a || from_b;) {
        const auto add = [&](auto& from) {
          return [&](outcome<fraction> got) {
            total = total + *got;
            from = {};
          };
        };
        const auto s = co_await async_select(limits(), on_receive(from_a, add(from_a)),
                                             on_receive(from_b, add(from_b)));
        if (!s) co_return;
      }
      const auto sent = co_await out.async_send(total, limits());
      if (!sent) co_return;
    }
  }
  detached run_product(series a, series b, send_only<fraction> out) {
    std::vector<fraction> f;
    std::vector<fraction> g;
    for (std::size_t n = 0;; ++n) {
      auto x = co_await a.async_receive(limits());
      if (!x) co_return;
      auto y = co_await b.async_receive(limits());
      if (!y) co_return;
      f.push_back(*x);
      g.push_back(*y);
      fraction total;
      for (std::size_t i = 0; i <= n; ++i) total = total + f[i] * g[n - i];
      const auto sent = co_await out.async_send(total, limits());
      if (!sent) co_return;
    }
  }

  std::deque<channel<fraction>> pipes_;
  std::stop_source stop_;
};

TEST(ChannelScenario, ThePowerSeriesOfSineAndCosineFeedEachOther) {
  series_workshop w;
  // sin = integral of cos; cos = 1 - integral of sin.
  auto& cosine = w.pipe();
  const auto [cos_out, cos_loop] = w.split(cosine.receiver());
  const auto [sin_out, sin_loop] = w.split(w.integral({0, 1}, cos_loop));
  w.feed(w.integral({1, 1}, w.scaled({-1, 1}, sin_loop)), cosine);
  const auto [cos_a, cos_rest] = w.split(cos_out);
  const auto [cos_b, cos_c] = w.split(cos_rest);
  const auto [sin_a, sin_rest] = w.split(sin_out);
  const auto [sin_b, sin_c] = w.split(sin_rest);
  auto one = w.sum(w.product(cos_a, cos_b), w.product(sin_a, sin_b));
  auto sine = receive_only<fraction>(sin_c);
  auto cosine_copy = receive_only<fraction>(cos_c);
  const std::array<fraction, 8> sines{
      {{0, 1}, {1, 1}, {0, 1}, {-1, 6}, {0, 1}, {1, 120}, {0, 1}, {-1, 5040}}};
  const std::array<fraction, 8> cosines{
      {{1, 1}, {0, 1}, {-1, 2}, {0, 1}, {1, 24}, {0, 1}, {-1, 720}, {0, 1}}};
  for (std::size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(*sine.receive(), sines[n]) << n;
    EXPECT_EQ(*cosine_copy.receive(), cosines[n]) << n;
    EXPECT_EQ(*one.receive(), (fraction{n == 0 ? 1 : 0, 1})) << n;  // sin^2 + cos^2
  }
}

// ---- patterns

TEST(ChannelScenario, AMergeDisablesEachSourceThatEnds) {
  channel<int> a;
  channel<int> b(3);
  std::vector<std::jthread> sources;
  sources.emplace_back([&] {
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(a.send(i));
    a.close();
  });
  sources.emplace_back([&] {
    for (int i = 1000; i < 1700; ++i) EXPECT_TRUE(b.send(i));
    b.close();
  });
  receive_only<int> from_a = a;
  receive_only<int> from_b = b;
  int next_a = 0;
  int next_b = 1000;
  while (from_a || from_b) {
    EXPECT_TRUE(select(on_receive(from_a,
                                  [&](outcome<int> got) {
                                    if (!got) {
                                      from_a = {};
                                    } else {
                                      EXPECT_EQ(*got, next_a++);
                                    }
                                  }),
                       on_receive(from_b, [&](outcome<int> got) {
                         if (!got) {
                           from_b = {};
                         } else {
                           EXPECT_EQ(*got, next_b++);
                         }
                       })));
  }
  EXPECT_EQ(next_a, 500);
  EXPECT_EQ(next_b, 1700);
}

TEST(ChannelScenario, ARequestCarriesTheChannelForItsReply) {
  struct request {
    int number = 0;
    send_only<int> answer;
  };
  channel<request> requests;
  channel<int> quit;
  std::jthread server([&] {
    for (bool on = true; on;) {
      EXPECT_TRUE(select(on_receive(requests,
                                    [](outcome<request> r) {
                                      EXPECT_TRUE(r->answer.send(r->number * r->number));
                                    }),
                         on_receive(quit, [&](outcome<int>) { on = false; })));
    }
  });
  std::vector<std::jthread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      channel<int> replies(static_cast<std::size_t>(c % 2));
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(requests.send({c * 1000 + i, replies}));
        EXPECT_EQ(*replies.receive(), (c * 1000 + i) * (c * 1000 + i));
      }
    });
  }
  clients.clear();
  quit.close();
}

TEST(ChannelScenario, ABufferOfTokensBoundsConcurrency) {
  channel<int> tokens(3);
  std::atomic<int> working{0};
  std::atomic<int> most{0};
  std::vector<std::jthread> workers;
  for (int w = 0; w < 8; ++w) {
    workers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(tokens.send(1));
        const int now = ++working;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --working;
        EXPECT_TRUE(tokens.receive());
      }
    });
  }
  workers.clear();
  EXPECT_LE(most, 3);
  EXPECT_EQ(tokens.size(), 0U);
}

TEST(ChannelScenario, WorkersShareJobsUntilTheyAreClosedAndTheResultsAddUp) {
  constexpr int jobs_count = 5'000;
  channel<int> jobs(16);
  channel<std::int64_t> results(4);
  std::atomic<int> workers_left{6};
  std::vector<std::jthread> workers;
  const auto awaiting_worker = [&]() -> detached {
    for (;;) {
      auto job = co_await jobs.async_receive();
      if (!job) break;
      auto sent = co_await results.async_send(std::int64_t{*job} * 2);
      EXPECT_TRUE(sent);
    }
    if (--workers_left == 0) results.close();
  };
  for (int w = 0; w < 3; ++w) {
    awaiting_worker();
    workers.emplace_back([&] {
      for (int job : jobs) EXPECT_TRUE(results.send(std::int64_t{job} * 2));
      if (--workers_left == 0) results.close();
    });
  }
  std::jthread maker([&] {
    for (int i = 0; i < jobs_count; ++i) EXPECT_TRUE(jobs.send(i));
    jobs.close();
  });
  std::int64_t total = 0;
  int count = 0;
  for (auto r : results) {
    total += r;
    ++count;
  }
  EXPECT_EQ(count, jobs_count);
  EXPECT_EQ(total, std::int64_t{jobs_count} * (jobs_count - 1));
}

TEST(ChannelScenario, RandomBitsComeFromASelectOfTwoSendsOnOneChannel) {
  constexpr int bits = 4'000;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{64}}) {
    channel<int> c(capacity);
    int ones = 0;
    const auto send = [&]() -> detached {
      for (int i = 0; i < bits; ++i) {
        const auto s = co_await async_select({}, on_send(c, 0), on_send(c, 1));
        EXPECT_TRUE(s);
      }
    };
    send();  // without a buffer it waits with both bits every time
    for (int i = 0; i < bits; ++i) ones += *c.receive();
    std::printf("capacity %zu: %d ones of %d\n", capacity, ones, bits);
    EXPECT_NEAR(ones, bits / 2, 6 * 32);  // six standard deviations
  }
}

TEST(ChannelScenario, TenThousandSelectsOnTwoChannelsAreServedInOrderAndUnlinked) {
  constexpr std::size_t many = 10'000;
  channel<std::size_t> wanted;
  channel<std::size_t> never;
  std::size_t served = 0;
  std::size_t out_of_turn = 0;
  const auto wait = [&](std::size_t me) -> detached {
    auto s = co_await async_select({}, on_receive(never, ignore),
                                   on_receive(wanted, [&, me](outcome<std::size_t> got) {
                                     ++served;
                                     if (!got || *got != me) ++out_of_turn;
                                   }));
    EXPECT_EQ(s.index, 1U);
  };
  for (std::size_t i = 0; i < many; ++i) wait(i);
  EXPECT_EQ(never.waiting_to_receive(), many);
  for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(wanted.try_send(i), status::ok);
  EXPECT_EQ(served, many);
  EXPECT_EQ(out_of_turn, 0U);
  EXPECT_EQ(never.waiting_to_receive(), 0U);
}

// ---- policies other than block

struct drop_row {
  overflow policy;
  std::vector<status> answers;  // of sending 1..5 with capacity 3
  std::vector<int> inside;
  std::vector<int> dropped;
};

class ChannelOverflow : public ::testing::TestWithParam<drop_row> {};

TEST_P(ChannelOverflow, TheSendNeverWaitsAndTheCallbackGetsTheDroppedItems) {
  const drop_row& row = GetParam();
  for (const bool blocking_form : {true, false}) {
    std::vector<int> dropped;
    channel<int> c({.capacity = 3, .overflow = row.policy, .on_drop = [&](int&& item) {
                      EXPECT_LE(c.size(), 3U);  // without the lock: may use the channel
                      dropped.push_back(item);
                    }});
    for (int i = 1; i <= 5; ++i) {
      const auto answer = blocking_form ? c.send(i) : c.try_send(i);
      EXPECT_EQ(answer, row.answers[static_cast<std::size_t>(i) - 1]) << i;
    }
    EXPECT_EQ(c.stats().dropped, row.dropped.size());
    EXPECT_EQ(dropped, row.dropped);
    c.close();
    EXPECT_EQ(c.send(6), status::closed);  // a closed channel drops nothing
    std::vector<int> inside;
    for (int item : c) inside.push_back(item);
    EXPECT_EQ(inside, row.inside);
    EXPECT_EQ(dropped, row.dropped);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ChannelOverflow,
    ::testing::Values(drop_row{overflow::reject,
                               {status::ok, status::ok, status::ok, status::full, status::full},
                               {1, 2, 3},
                               {}},
                      drop_row{
                          overflow::drop_newest,
                          {status::ok, status::ok, status::ok, status::dropped, status::dropped},
                          {1, 2, 3},
                          {4, 5}},
                      drop_row{overflow::drop_oldest,
                               {status::ok, status::ok, status::ok, status::ok, status::ok},
                               {3, 4, 5},
                               {1, 2}},
                      drop_row{overflow::latest,
                               {status::ok, status::ok, status::ok, status::ok, status::ok},
                               {1, 2, 5},
                               {3, 4}}),
    [](const auto& row) { return std::string(to_string(row.param.policy)); });

TEST(ChannelDrops, ADroppingChannelHandsToAWaitingReceiverBeforeItDrops) {
  for (const auto policy : {overflow::drop_newest, overflow::drop_oldest, overflow::latest}) {
    channel<int> c({.capacity = 1, .overflow = policy});
    std::vector<int> got;
    const auto receive = [&]() -> detached {
      auto item = co_await c.async_receive();
      got.push_back(*item);
    };
    receive();
    receive();
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(c.send(i), status::ok);
    EXPECT_EQ(got, (std::vector<int>{1, 2}));
    EXPECT_EQ(*c.try_receive(), 3);
    EXPECT_EQ(c.stats().dropped, 0U);
  }
}

TEST(ChannelDrops, AwaitedSendsFollowThePolicyToo) {
  std::vector<int> dropped;
  channel<int> c({.capacity = 1, .overflow = overflow::drop_oldest, .on_drop = [&](int&& item) {
                    dropped.push_back(item);
                  }});
  std::vector<status> answers;
  const auto send = [&](int item) -> detached { answers.push_back(co_await c.async_send(item)); };
  send(1);
  send(2);
  EXPECT_EQ(answers, (std::vector<status>{status::ok, status::ok}));
  EXPECT_EQ(dropped, std::vector<int>{1});
  EXPECT_EQ(*c.receive(), 2);
}

TEST(ChannelDrops, ManySlowReadersGetEveryItemThatWasNotDropped) {
  for (const auto policy : {overflow::drop_newest, overflow::drop_oldest, overflow::latest}) {
    constexpr std::uint64_t items = 20'000;
    std::atomic<std::uint64_t> called{0};
    channel<std::uint64_t> c(
        {.capacity = 8, .overflow = policy, .on_drop = [&](std::uint64_t&&) { ++called; }});
    std::atomic<std::uint64_t> read{0};
    {
      std::vector<std::jthread> readers;
      for (int r = 0; r < 3; ++r) {
        readers.emplace_back([&] {
          std::optional<std::uint64_t> last;
          for (const auto item : c) {
            EXPECT_TRUE(!last || item > *last);
            last = item;
            ++read;
          }
        });
      }
      for (std::uint64_t i = 0; i < items; ++i) {
        const auto sent = c.send(i);
        EXPECT_TRUE(sent || sent == status::dropped);
        if (i % 16 == 0) std::this_thread::yield();
      }
      c.close();
    }
    std::printf("%s: %llu items, %llu read, %llu dropped (no seed: nothing is drawn)\n",
                std::string(to_string(policy)).c_str(), static_cast<unsigned long long>(items),
                static_cast<unsigned long long>(read.load()),
                static_cast<unsigned long long>(called.load()));
    EXPECT_EQ(read + called, items);
    EXPECT_EQ(c.stats().dropped, called);
    EXPECT_EQ(c.stats().popped, read);
  }
}

}  // namespace
}  // namespace channel_scenarios_test
