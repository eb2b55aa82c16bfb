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

// Owns an account and records its notices.
class party {
 public:
  explicit party(client_memory& all, bool has_tls = false) : memory(all) {
    memory.open(has_tls, [this](notice received) {
      received == notice::close ? is_to_close = true : is_to_proceed = true;
    });
  }

  bool took_notice() { return std::exchange(is_to_proceed, false); }

  account memory;
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
    plain.memory.report({.input = 20 * kb, .output = 30 * kb});
    EXPECT_EQ(all.bytes(), 2 * fixed + client_memory::tls_session_bytes + 50 * kb);
    plain.memory.report({.input = 1, .output = 1});
    EXPECT_EQ(all.bytes(), 2 * fixed + client_memory::tls_session_bytes);
    plain.memory.close();
    plain.memory.report({.input = 20 * kb});
    EXPECT_EQ(all.bytes(), fixed + client_memory::tls_session_bytes);
  }
  EXPECT_EQ(all.bytes(), 0U);
}

TEST(ClientMemory, NeverCountsLessThanIsHeld) {
  client_memory all(1000 * kb);
  party a(all);
  for (std::uint64_t input = 0; input < 10 * kb; input += 100) {
    for (std::uint64_t output = 0; output < 10 * kb; output += 100) {
      a.memory.report({.input = input, .output = output});
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
  EXPECT_TRUE(a.memory.reserve(60 * kb));
  EXPECT_TRUE(b.memory.reserve(40 * kb));
  EXPECT_FALSE(c.memory.reserve(1));
  EXPECT_FALSE(c.memory.has_reservation());
  b.memory.cancel_reservation();
  EXPECT_TRUE(c.memory.has_reservation());
  EXPECT_TRUE(c.took_notice());
  a.memory.close();
  c.memory.cancel_reservation();
  EXPECT_TRUE(b.memory.reserve(100 * kb));
  EXPECT_FALSE(b.took_notice());
}

TEST(ClientMemory, GrantsReservationsInTheirOrder) {
  client_memory all(200 * kb);  // half of it for reservations
  party a(all);
  party large(all);
  party small(all);
  EXPECT_TRUE(a.memory.reserve(60 * kb));
  EXPECT_FALSE(large.memory.reserve(90 * kb));
  EXPECT_FALSE(small.memory.reserve(10 * kb)) << "it fits, but would delay the large one for ever";
  a.memory.cancel_reservation();
  EXPECT_TRUE(large.took_notice());
  EXPECT_TRUE(small.took_notice());
}

TEST(ClientMemory, GrantsMoreThanTheBudgetIfThereIsNoOther) {
  client_memory all(100 * kb);
  party a(all);
  party b(all);
  EXPECT_TRUE(a.memory.reserve(1));
  EXPECT_FALSE(b.memory.reserve(500 * kb));
  EXPECT_TRUE(all.is_wanted());
  a.memory.cancel_reservation();
  EXPECT_TRUE(b.took_notice());
  EXPECT_FALSE(a.memory.reserve(1));
  EXPECT_FALSE(a.memory.may_read());
  EXPECT_TRUE(b.memory.may_read()) << "its body ends the excess";
  // An unused reservation closes no connection.
  const auto now = seam::now();
  all.enforce(now);
  all.enforce(now + client_memory::enforce_every);
  EXPECT_FALSE(a.is_to_close || b.is_to_close);
  b.memory.cancel_reservation();
  EXPECT_TRUE(a.memory.has_reservation());
}

TEST(ClientMemory, SkipsACancelledReservation) {
  client_memory all(200 * kb);  // half of it for reservations
  party a(all);
  party b(all);
  party c(all);
  EXPECT_TRUE(a.memory.reserve(50 * kb));
  EXPECT_FALSE(all.is_wanted());
  EXPECT_FALSE(b.memory.reserve(90 * kb));
  EXPECT_FALSE(c.memory.reserve(50 * kb));
  EXPECT_TRUE(all.is_wanted());
  b.memory.cancel_reservation();
  EXPECT_TRUE(c.memory.has_reservation()) << "only the reservation before it was in the way";
  EXPECT_FALSE(b.took_notice());
  EXPECT_FALSE(all.is_wanted());
}

TEST(ClientMemory, StopsReadersWhileItIsExceededAndWakesThemOneAfterTheOther) {
  client_memory all(100 * kb);
  party full(all);
  party a(all);
  party b(all);
  full.memory.report({.output = 100 * kb});
  EXPECT_TRUE(all.is_exceeded());
  EXPECT_FALSE(a.memory.may_read());
  a.memory.wait_to_read();
  b.memory.wait_to_read();
  EXPECT_TRUE(all.is_wanted());
  full.memory.report({.output = 50 * kb});
  EXPECT_TRUE(a.memory.may_read());
  EXPECT_TRUE(a.took_notice());
  EXPECT_FALSE(b.took_notice());
  a.memory.pass_on();
  EXPECT_TRUE(b.took_notice());
  EXPECT_FALSE(all.is_wanted());
  // The notice is immediate if reading is allowed already.
  a.memory.wait_to_read();
  EXPECT_TRUE(a.took_notice());
}

TEST(ClientMemory, AWokenReaderThatClosesWakesTheNext) {
  client_memory all(100 * kb);
  party full(all);
  party a(all);
  party b(all);
  full.memory.report({.output = 100 * kb});
  a.memory.wait_to_read();
  b.memory.wait_to_read();
  full.memory.report({});
  EXPECT_TRUE(a.took_notice());
  a.memory.close();
  EXPECT_TRUE(b.took_notice());
}

TEST(ClientMemory, DelaysLongRequestsAndNoReadersForRepliesOfUnknownLength) {
  client_memory all(100 * kb + 2 * fixed);
  party a(all);
  party b(all);
  EXPECT_TRUE(a.memory.may_request()) << "one alone may always ask";
  a.memory.report({.expected = 200 * kb});
  EXPECT_FALSE(b.memory.may_request());
  EXPECT_TRUE(b.memory.may_read());
  b.memory.wait_to_request();
  EXPECT_FALSE(b.took_notice());
  a.memory.report({.output = 50 * kb});
  EXPECT_TRUE(b.took_notice());
  EXPECT_TRUE(b.memory.may_request());
  a.memory.report({.expected = 10 * kb});
  EXPECT_TRUE(b.memory.may_request());
  a.memory.close();
  EXPECT_EQ(all.bytes(), fixed);
}

TEST(ClientMemory, ClosesTheLargestIdleAndOnlyAsManyAsNeeded) {
  client_memory all(100 * kb + 4 * fixed);
  party busy(all);
  party large(all);
  party medium(all);
  party small(all);
  const auto now = seam::now();
  busy.memory.report({.output = 90 * kb});
  large.memory.report({.output = 60 * kb});
  medium.memory.report({.output = 40 * kb});
  small.memory.report({.output = 8 * kb});  // 98 too many
  all.enforce(now);
  busy.memory.moved(client_memory::busy_bytes);
  large.memory.moved(client_memory::busy_bytes - 1);
  all.enforce(now + client_memory::enforce_every / 2);
  EXPECT_FALSE(large.is_to_close) << "too early";
  all.enforce(seam::now() + client_memory::enforce_every);
  EXPECT_TRUE(large.is_to_close);
  EXPECT_TRUE(medium.is_to_close);
  EXPECT_FALSE(small.is_to_close || busy.is_to_close);
  EXPECT_EQ(all.closed(), 2U);
  // An account that has its close notice is not closed again.
  all.enforce(seam::now() + 3 * client_memory::enforce_every);
  EXPECT_EQ(all.closed(), 2U);
  large.memory.close();
  medium.memory.close();
  EXPECT_FALSE(all.is_exceeded());
}

// A client that reads slowly on purpose is never idle; a worker that waits for a job is.
TEST(ClientMemory, ClosesTheLargestBusyBeforeConnectionsWithoutBuffers) {
  client_memory all(212 * kb);
  std::vector<std::unique_ptr<party>> workers;
  for (int i = 0; i < 20; ++i) workers.push_back(std::make_unique<party>(all));
  party idle(all);
  party uploads(all);
  party large(all);
  party small(all);
  EXPECT_TRUE(uploads.memory.reserve(70 * kb));
  uploads.memory.report({.input = 70 * kb});
  large.memory.report({.output = 60 * kb});
  small.memory.report({.output = 50 * kb});
  idle.memory.report({.output = 8 * kb});
  auto now = seam::now();
  const auto check = [&] {
    for (party* const p : {&uploads, &large, &small}) p->memory.moved(client_memory::busy_bytes);
    now += 2 * client_memory::enforce_every;
    all.enforce(now);
  };
  check();
  check();
  EXPECT_TRUE(idle.is_to_close) << "idle connections with buffers come first";
  EXPECT_TRUE(large.is_to_close);
  EXPECT_FALSE(small.is_to_close || uploads.is_to_close);
  small.memory.report({.output = 150 * kb});
  check();
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
  all.enforce(now);
  all.enforce(now + 2 * client_memory::enforce_every);
  for (std::size_t i = 0; i < parties.size(); ++i) {
    EXPECT_LE(parties[i]->is_to_close, i % 2 == 0) << "a TLS session counts for more";
  }
  EXPECT_EQ(all.closed(), 4U);
}

TEST(ClientMemory, AllowsALongRequestBesideAReservationLargerThanTheBudget) {
  client_memory all(100 * kb);
  party large(all);
  party other(all);
  EXPECT_TRUE(large.memory.reserve(500 * kb));
  EXPECT_FALSE(other.memory.may_request());
  EXPECT_TRUE(large.memory.may_request());
  other.memory.report({.expected = 10 * kb});
  EXPECT_FALSE(large.memory.may_request());
  other.memory.wait_to_request();
  large.memory.wait_to_request();
  other.memory.report({});
  EXPECT_TRUE(large.took_notice());
  EXPECT_FALSE(other.took_notice());
  large.memory.cancel_reservation();
  EXPECT_TRUE(other.took_notice());
}

TEST(ClientMemory, MeasuresIdlenessFromWhenItIsExceeded) {
  client_memory all(100 * kb);
  party a(all);
  a.memory.report({.output = 200 * kb});
  all.enforce(seam::now() + client_memory::enforce_every);
  EXPECT_TRUE(a.is_to_close);
  a.memory.report({});
  party b(all);
  b.memory.report({.output = 200 * kb});
  all.enforce(seam::now());
  EXPECT_FALSE(b.is_to_close) << "it has not been idle for long enough";
}

}  // namespace
}  // namespace sluice::jobs::net::client_memory_test
