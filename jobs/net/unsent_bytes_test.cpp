#include "jobs/net/unsent_bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sluice::jobs::net::unsent_bytes_test {
namespace {

std::string part(std::size_t number) {
  return std::to_string(number) + std::string(1000, static_cast<char>('a' + number % 26));
}

TEST(UnsentBytes, LeaveInOrderAndKeepTheirOffsets) {
  unsent_bytes out;
  std::string appended;
  std::string taken;
  for (std::size_t i = 0; i < 3000; ++i) {
    out.append(part(i));
    appended += part(i);
    // The backlog is large, small or empty in turn.
    const std::size_t n = std::min(out.size(), i % 700 == 699 ? out.size() : i * 37 % 2000);
    taken += out.next().substr(0, n);
    out.take(n);
    ASSERT_EQ(out.begin_offset(), taken.size());
    ASSERT_EQ(out.end_offset(), appended.size());
    ASSERT_EQ(out.size(), appended.size() - taken.size());
    ASSERT_EQ(out.empty(), appended.size() == taken.size());
  }
  taken += out.next();
  EXPECT_EQ(taken, appended);
}

TEST(UnsentBytes, FreeSentBytesOfAClientThatIsAlwaysBehind) {
  unsent_bytes out;
  out.append(std::string(1000, 'x'));
  std::size_t most = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {  // 100 MB, a thousand bytes of it always unsent
    const std::string more = part(i);
    out.append(more);
    out.take(more.size());
    most = std::max(most, out.memory());
  }
  EXPECT_EQ(out.size(), 1000U);
  EXPECT_LE(most, 4 * unsent_bytes::bytes_kept);
}

TEST(UnsentBytes, TakeTheMemoryOfALongReply) {
  unsent_bytes out;
  out.append("ab");
  out.take(2);
  std::string large(1 << 20, 'x');
  const char* const at = large.data();
  out.adopt(std::move(large));
  EXPECT_EQ(out.next().data(), at);
  EXPECT_EQ(out.begin_offset(), 2U);
  EXPECT_EQ(out.end_offset(), 2U + (1U << 20U));
  std::string more(1 << 20, 'y');
  out.adopt(std::move(more));
  EXPECT_EQ(out.size(), 2U << 20U);
  EXPECT_EQ(out.next().back(), 'y');
}

TEST(UnsentBytes, KeepLittleMemoryAfterALongReply) {
  unsent_bytes out;
  out.append(std::string(std::size_t{8} << 20, 'x'));
  out.take((std::size_t{8} << 20) - 10);
  EXPECT_EQ(out.size(), 10U);
  EXPECT_LE(out.memory(), unsent_bytes::bytes_kept);
  out.take(10);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace sluice::jobs::net::unsent_bytes_test
