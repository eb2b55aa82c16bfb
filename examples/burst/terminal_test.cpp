#include "examples/burst/terminal.hpp"

#include <gtest/gtest.h>

#include "examples/burst/format.hpp"

namespace burst::terminal_test {
namespace {

using namespace std::chrono_literals;

TEST(BurstBar, FillsFromTheLeftInEighths) {
  EXPECT_EQ(bar(0, 4, true), "░░░░");
  EXPECT_EQ(bar(0.5, 4, true), "██░░");
  EXPECT_EQ(bar(0.53125, 4, true), "██▏░");
  EXPECT_EQ(bar(1, 4, true), "████");
  EXPECT_EQ(bar(7, 4, true), "████");
  EXPECT_EQ(bar(0.5, 4, false), "##..");
}

TEST(BurstLevel, ShowsALittleAsMoreThanNothing) {
  EXPECT_EQ(level(0, true), " ");
  EXPECT_EQ(level(0.001, true), "▁");
  EXPECT_EQ(level(1, true), "█");
  EXPECT_EQ(level(1, false), "#");
}

TEST(BurstText, IsClippedByColumnsNotBytes) {
  EXPECT_EQ(columns_of("\x1b[31m██\x1b[0m!"), 3U);
  EXPECT_EQ(clip("████", 2), "██");
  EXPECT_EQ(clip("\x1b[31mred\x1b[0m", 2), "\x1b[31mre\x1b[0m");
  EXPECT_EQ(clip("short", 80), "short");
  EXPECT_EQ(pad_left("█", 3), "  █");
}

TEST(BurstNumbers, AreEasyToRead) {
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(50'000), "50,000");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
  EXPECT_EQ(readable(1310ms), "1.31 s");
  EXPECT_EQ(readable(640ms), "640 ms");
  EXPECT_EQ(readable(9500us), "9.5 ms");
  EXPECT_EQ(readable(70us), "70 us");
}

}  // namespace
}  // namespace burst::terminal_test
