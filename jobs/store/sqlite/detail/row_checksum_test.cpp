#include "jobs/store/sqlite/detail/row_checksum.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sluice/base/random.hpp"

namespace sluice::jobs::detail::row_checksum_test {
namespace {

TEST(Crc32c, MatchesTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(Crc32c, IsEqualWithoutTheInstruction) {
  sluice::random random(1);
  for (int n = 0; n < 500; ++n) {
    std::string bytes(random.below(200), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    ASSERT_EQ(crc32c(bytes), crc32c_portable(bytes)) << bytes.size() << " bytes";
  }
}

// Another value would make every stored row look damaged.
TEST(RowChecksum, IsTheSameOnEveryMachine) {
  row_checksum sum;
  sum.number(0, 17);
  sum.real(3, 1.5);
  sum.text(8, R"({"n":1})", false, row_checksum::group::payload);
  sum.text(9, "x", true);
  row_checksum again;
  again.text(9, "x", true);
  again.real(3, 1.5);
  again.text(8, R"({"n":1})", false, row_checksum::group::payload);
  again.number(0, 17);
  EXPECT_EQ(sum.value(), again.value()) << "columns may come in any order";
  EXPECT_EQ(static_cast<std::uint64_t>(sum.value()), 0xD24AB54FA77F78FEU);
}

TEST(RowChecksum, ColumnAndTypeOfAValueChangeTheChecksum) {
  const auto of = [](auto add) {
    row_checksum sum;
    add(sum);
    return sum.value();
  };
  const auto text = of([](row_checksum& s) { s.text(1, "a"); });
  EXPECT_NE(text, of([](row_checksum& s) { s.text(2, "a"); }));
  EXPECT_NE(text, of([](row_checksum& s) { s.text(1, "a", true); }));
  EXPECT_NE(text, of([](row_checksum& s) { s.text(1, std::string("a\0", 2)); }));
  const auto swapped = of([](row_checksum& s) {
    s.text(1, "b");
    s.text(2, "a");
  });
  EXPECT_NE(swapped, of([](row_checksum& s) {
              s.text(1, "a");
              s.text(2, "b");
            }));
  EXPECT_NE(of([](row_checksum& s) { s.number(1, 1); }), of([](row_checksum& s) { s.real(1, 1); }));
}

TEST(RowChecksum, AGroupChangesOnlyItsHalf) {
  using group = row_checksum::group;
  row_checksum before;
  before.text(1, "control");
  row_checksum after = before;
  after.text(2, "payload", false, group::payload);
  EXPECT_TRUE(row_checksum::is_same(before.value(), after.value(), group::control));
  EXPECT_FALSE(row_checksum::is_same(before.value(), after.value(), group::payload));
  row_checksum undone(after.value());
  undone.text(2, "payload", false, group::payload);
  EXPECT_EQ(undone.value(), before.value());
}

TEST(RowChecksum, MinusZeroEqualsZeroAsInSqlite) {
  row_checksum zero;
  zero.real(1, 0.0);
  row_checksum minus_zero;
  minus_zero.real(1, -0.0);
  EXPECT_EQ(zero.value(), minus_zero.value());
}

}  // namespace
}  // namespace sluice::jobs::detail::row_checksum_test
