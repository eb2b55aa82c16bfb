// Parsing and formatting of sizes.
#include "jobs/server/size_text.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::size_text_test {
namespace {

TEST(SizeText, IsParsedWithAndWithoutAUnit) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("12").value(), 12U);
  EXPECT_EQ(parse_size("12B").value(), 12U);
  EXPECT_EQ(parse_size("1K").value(), 1024U);
  EXPECT_EQ(parse_size("1KB").value(), 1024U);
  EXPECT_EQ(parse_size("1kib").value(), 1024U);
  EXPECT_EQ(parse_size("64 MiB").value(), std::uint64_t{64} << 20);
  EXPECT_EQ(parse_size("2tb").value(), std::uint64_t{2} << 40);
}

TEST(SizeText, IsRejectedIfInvalid) {
  for (const char* bad : {"", "MB", "-1", "1.5MB", "1XB", "1MBB", "1 M B", "0x10",
                          "99999999999999999999", "99999999TB", "1\n"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(SizeText, RoundTrips) {
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1024},
        std::uint64_t{16} << 20, (std::uint64_t{1} << 40) + 1024, ~std::uint64_t{0}}) {
    EXPECT_EQ(parse_size(format_size(size)).value(), size);
  }
  EXPECT_EQ(format_size(std::uint64_t{16} << 20), "16MB");
  EXPECT_EQ(format_size(1500), "1500B");
}

}  // namespace
}  // namespace sluice::jobs::size_text_test
