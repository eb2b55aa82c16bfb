#include "jobs/net/client_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/seam.hpp"

namespace sluice::jobs::net::client_memory_test {
namespace {

using account = client_memory::account;
using notice = account::notice;

constexpr std::uint64_t kb = 1024;
constexpr std::uint64_t fixed = client_memory::connection_bytes;

// An account that notes its notices.
class party {
 public:
  explicit party(client_memory& all, bool has_tls = false) : mine(all) {
    mine.open(has_tls, [this](notice what) {
      what == notice::close ? is_to_close = true : is_to_proceed = true;
    });
  }

  bool took_notice() { return std::exchange(is_to_proceed, false); }

  account mine;
  bool is_to_proceed = false;
  bool is_to_close = false;
};

TEST(ClientMemory, CountsConnectionsTlsAndBuffers) {
  client_memory all(1000 * kb);
  {
    party plain(all);
    EXPECT_EQ(all.bytes(), fixed);
    party secure(all, true);
    EXPECT_EQ(all.bytes(), 2 * fixed + client_memory::tls_session_bytes);
    plain.mine.hold({.input = 20 * kb, .output = 30 * kb});
    EXPECT_EQ(all.bytes(), 2 * fixed + client_memory::tls_session_bytes + 50 * kb);
    plain.mine.hold({.input = 1, .output = 1});
    EXPECT_EQ(all.bytes(), 2 * fixed + client_memory::tls_session_bytes);
    plain.mine.close();
    plain.mine.hold({.input = 20 * kb});
    EXPECT_EQ(all.bytes(), fixed + client_memory::tls_session_bytes);
  }
  EXPECT_EQ(all.bytes(), 0U);
}

TEST(ClientMemory, NeverCountsLessThanIsHeld) {
  client_memory all(1000 * kb);
  party a(all);
  for (std::uint64_t input = 0; input < 10 * kb; input += 100) {
    for (std::uint64_t output = 0; output < 10 * kb; output += 100) {
      a.mine.hold({.input = input, .output = output});
      ASSERT_GE(all.bytes(), input + output);
      ASSERT_LE(all.bytes(), input + output + fixed);
    }
  }
}

TEST(ClientMemory, GrantsReservationsUntilItIsSpent) {
  client_memory all(200 * kb);  // half of it for reservations
  party a(all);
  party b(all);
  party c(all);
  EXPECT_TRUE(a.mine.reserve(60 * kb));
  EXPECT_TRUE(b.mine.reserve(40 * kb));
  EXPECT_FALSE(c.mine.reserve(1));
  EXPECT_FALSE(c.mine.has_reservation());
  b.mine.cancel_reservation();
  EXPECT_TRUE(c.mine.has_reservation());
  EXPECT_TRUE(c.took_notice());
  a.mine.close();
  c.mine.cancel_reservation();
  EXPECT_TRUE(b.mine.reserve(100 * kb));
  EXPECT_FALSE(b.took_notice());
}

TEST(ClientMemory, GrantsReservationsInTheirOrder) {
  client_memory all(200 * kb);  // half of it for reservations
  party a(all);
  party large(all);
  party small(all);
  EXPECT_TRUE(a.mine.reserve(60 * kb));
  EXPECT_FALSE(large.mine.reserve(90 * kb));
  EXPECT_FALSE(small.mine.reserve(10 * kb)) << "it fits, but would delay the large one for ever";
  a.mine.cancel_reservation();
  EXPECT_TRUE(large.took_notice());
  EXPECT_TRUE(small.took_notice());
}

TEST(ClientMemory, GrantsMoreThanItHasToOneAlone) {
  client_memory all(100 * kb);
  party a(all);
  party b(all);
  EXPECT_TRUE(a.mine.reserve(1));
  EXPECT_FALSE(b.mine.reserve(500 * kb));
  EXPECT_TRUE(all.is_wanted());
  a.mine.cancel_reservation();
  EXPECT_TRUE(b.took_notice());
  EXPECT_FALSE(a.mine.reserve(1));
  EXPECT_FALSE(a.mine.may_read());
  EXPECT_TRUE(b.mine.may_read()) << "its body ends the excess";
  // An unused reservation closes no connection.
  const auto now = seam::now();
  all.look(now);
  all.look(now + client_memory::look_every);
  EXPECT_FALSE(a.is_to_close || b.is_to_close);
  b.mine.cancel_reservation();
  EXPECT_TRUE(a.mine.has_reservation());
}

TEST(ClientMemory, ForgetsAReservationThatLeavesTheLine) {
  client_memory all(200 * kb);  // half of it for reservations
  party a(all);
  party b(all);
  party c(all);
  EXPECT_TRUE(a.mine.reserve(50 * kb));
  EXPECT_FALSE(all.is_wanted());
  EXPECT_FALSE(b.mine.reserve(90 * kb));
  EXPECT_FALSE(c.mine.reserve(50 * kb));
  EXPECT_TRUE(all.is_wanted());
  b.mine.cancel_reservation();
  EXPECT_TRUE(c.mine.has_reservation()) << "nothing but the reservation before it was in the way";
  EXPECT_FALSE(b.took_notice());
  EXPECT_FALSE(all.is_wanted());
}

TEST(ClientMemory, StopsReadersWhileItIsExceededAndWakesThemOneAfterTheOther) {
  client_memory all(100 * kb);
  party full(all);
  party a(all);
  party b(all);
  full.mine.hold({.output = 100 * kb});
  EXPECT_TRUE(all.is_over());
  EXPECT_FALSE(a.mine.may_read());
  a.mine.wait_to_read();
  b.mine.wait_to_read();
  EXPECT_TRUE(all.is_wanted());
  full.mine.hold({.output = 50 * kb});
  EXPECT_TRUE(a.mine.may_read());
  EXPECT_TRUE(a.took_notice());
  EXPECT_FALSE(b.took_notice());
  a.mine.pass_on();
  EXPECT_TRUE(b.took_notice());
  EXPECT_FALSE(all.is_wanted());
  // At once if there is nothing to wait for any more.
  a.mine.wait_to_read();
  EXPECT_TRUE(a.took_notice());
}

TEST(ClientMemory, AWokenReaderThatClosesWakesTheNext) {
  client_memory all(100 * kb);
  party full(all);
  party a(all);
  party b(all);
  full.mine.hold({.output = 100 * kb});
  a.mine.wait_to_read();
  b.mine.wait_to_read();
  full.mine.hold({});
  EXPECT_TRUE(a.took_notice());
  a.mine.close();
  EXPECT_TRUE(b.took_notice());
}

TEST(ClientMemory, DelaysLongRequestsAndNoReadersForRepliesOfUnknownLength) {
  client_memory all(100 * kb + 2 * fixed);
  party a(all);
  party b(all);
  EXPECT_TRUE(a.mine.may_ask()) << "one alone may always ask";
  a.mine.hold({.expected = 200 * kb});
  EXPECT_FALSE(b.mine.may_ask());
  EXPECT_TRUE(b.mine.may_read());
  b.mine.wait_to_ask();
  EXPECT_FALSE(b.took_notice());
  a.mine.hold({.output = 50 * kb});
  EXPECT_TRUE(b.took_notice());
  EXPECT_TRUE(b.mine.may_ask());
  a.mine.hold({.expected = 10 * kb});
  EXPECT_TRUE(b.mine.may_ask());
  a.mine.close();
  EXPECT_EQ(all.bytes(), fixed);
}

TEST(ClientMemory, ClosesTheLargestIdleAndNoMoreThanItMust) {
  client_memory all(100 * kb + 4 * fixed);
  party busy(all);
  party large(all);
  party medium(all);
  party small(all);
  const auto now = seam::now();
  busy.mine.hold({.output = 90 * kb});
  large.mine.hold({.output = 60 * kb});
  medium.mine.hold({.output = 40 * kb});
  small.mine.hold({.output = 8 * kb});  // 98 too many
  all.look(now);
  busy.mine.moved(client_memory::busy_bytes);
  large.mine.moved(client_memory::busy_bytes - 1);
  all.look(now + client_memory::look_every / 2);
  EXPECT_FALSE(large.is_to_close) << "too early";
  all.look(seam::now() + client_memory::look_every);
  EXPECT_TRUE(large.is_to_close);
  EXPECT_TRUE(medium.is_to_close);
  EXPECT_FALSE(small.is_to_close || busy.is_to_close);
  EXPECT_EQ(all.closed(), 2U);
  // The same are not closed twice while they are on their way.
  all.look(seam::now() + 3 * client_memory::look_every);
  EXPECT_EQ(all.closed(), 2U);
  large.mine.close();
  medium.mine.close();
  EXPECT_FALSE(all.is_over());
}

// A client that reads slowly on purpose is never idle; a worker that waits for a job is.
TEST(ClientMemory, ClosesTheLargestBusyBeforeThoseWithoutBuffers) {
  client_memory all(212 * kb);
  std::vector<std::unique_ptr<party>> workers;
  for (int i = 0; i < 20; ++i) workers.push_back(std::make_unique<party>(all));
  party idle(all);
  party uploads(all);
  party large(all);
  party small(all);
  EXPECT_TRUE(uploads.mine.reserve(70 * kb));
  uploads.mine.hold({.input = 70 * kb});
  large.mine.hold({.output = 60 * kb});
  small.mine.hold({.output = 50 * kb});
  idle.mine.hold({.output = 8 * kb});
  auto now = seam::now();
  const auto look = [&] {
    for (party* const p : {&uploads, &large, &small}) p->mine.moved(client_memory::busy_bytes);
    now += 2 * client_memory::look_every;
    all.look(now);
  };
  look();
  look();
  EXPECT_TRUE(idle.is_to_close) << "idle connections with buffers come first";
  EXPECT_TRUE(large.is_to_close);
  EXPECT_FALSE(small.is_to_close || uploads.is_to_close);
  small.mine.hold({.output = 150 * kb});
  look();
  EXPECT_TRUE(small.is_to_close);
  EXPECT_FALSE(uploads.is_to_close) << "its reservation bounds it";
  for (const auto& w : workers) EXPECT_FALSE(w->is_to_close);
  EXPECT_EQ(all.closed(), 3U);
}

TEST(ClientMemory, ClosesConnectionsWithoutBuffersIfThereIsNothingElse) {
  client_memory all(100 * kb);
  std::vector<std::unique_ptr<party>> parties;
  for (int i = 0; i < 10; ++i) parties.push_back(std::make_unique<party>(all, i % 2 == 0));
  const auto now = seam::now();
  all.look(now);
  all.look(now + 2 * client_memory::look_every);
  for (std::size_t i = 0; i < parties.size(); ++i) {
    EXPECT_LE(parties[i]->is_to_close, i % 2 == 0) << "a TLS session counts for more";
  }
  EXPECT_EQ(all.closed(), 4U);
}

TEST(ClientMemory, LetsAReservationThatExceedsItAsk) {
  client_memory all(100 * kb);
  party large(all);
  party other(all);
  EXPECT_TRUE(large.mine.reserve(500 * kb));
  EXPECT_FALSE(other.mine.may_ask());
  EXPECT_TRUE(large.mine.may_ask());
  other.mine.hold({.expected = 10 * kb});
  EXPECT_FALSE(large.mine.may_ask());
  other.mine.wait_to_ask();
  large.mine.wait_to_ask();
  other.mine.hold({});
  EXPECT_TRUE(large.took_notice());
  EXPECT_FALSE(other.took_notice());
  large.mine.cancel_reservation();
  EXPECT_TRUE(other.took_notice());
}

TEST(ClientMemory, MeasuresIdlenessFromWhenItIsExceeded) {
  client_memory all(100 * kb);
  party a(all);
  a.mine.hold({.output = 200 * kb});
  all.look(seam::now() + client_memory::look_every);
  EXPECT_TRUE(a.is_to_close);
  a.mine.hold({});
  party b(all);
  b.mine.hold({.output = 200 * kb});
  all.look(seam::now());
  EXPECT_FALSE(b.is_to_close) << "it has not been idle for long enough";
}

}  // namespace
}  // namespace sluice::jobs::net::client_memory_test
