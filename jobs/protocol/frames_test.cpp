#include "jobs/protocol/frames.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::protocol::frames_test {
namespace {

using is_line = line_cut::kind;
using is_bulk = bulk_cut::kind;

TEST(Frames, ALineEndsWithLfAndACrBeforeItIsNotPartOfIt) {
  const line_cut with_cr = cut_line("stats\r\nmore", 100);
  EXPECT_EQ(with_cr.is, is_line::line);
  EXPECT_EQ(with_cr.text, "stats");
  EXPECT_EQ(with_cr.used, 7U);
  const line_cut without = cut_line("stats\nmore", 100);
  EXPECT_EQ(without.text, "stats");
  EXPECT_EQ(without.used, 6U);
  EXPECT_EQ(cut_line("a\rb\r\n", 100).text, "a\rb");
  EXPECT_EQ(cut_line("\n", 100).used, 1U);
}

TEST(Frames, ALineWithoutItsEndIsIncomplete) {
  EXPECT_EQ(cut_line("", 10).is, is_line::incomplete);
  EXPECT_EQ(cut_line("stats\r", 10).is, is_line::incomplete);
  EXPECT_EQ(cut_line("123456789", 10).is, is_line::incomplete);
}

TEST(Frames, SearchedBytesAreNotSearchedAgain) {
  // A line end in the searched bytes is not found: they are not searched again.
  EXPECT_EQ(cut_line("a\nbc", 10, 3).is, is_line::incomplete);
  const line_cut found = cut_line("abc\r\nd", 10, 4);
  EXPECT_EQ(found.text, "abc");
  EXPECT_EQ(found.used, 5U);
  EXPECT_EQ(cut_line("1234567890", 10, 9).is, is_line::too_long);
}

TEST(Frames, TheEndOfALineCountsAgainstItsBound) {
  EXPECT_EQ(cut_line("12345678\r\n", 10).is, is_line::line);
  EXPECT_EQ(cut_line("123456789\r\n", 10).is, is_line::too_long);
}

TEST(Frames, ATooLongLineIsUsedUpToItsEndIfPresent) {
  EXPECT_EQ(cut_line("1234567890", 10).used, 10U);
  EXPECT_EQ(cut_line("1234567890123", 10).used, 13U);
  EXPECT_EQ(cut_line("1234567890123\nput", 10).used, 14U);
}

TEST(Frames, ABulkIsACountOfBytesAndThenCrLf) {
  const bulk_cut whole = cut_bulk("a\r\nb\r\nrest", 4);
  EXPECT_EQ(whole.is, is_bulk::whole);
  EXPECT_EQ(whole.bytes, "a\r\nb");
  EXPECT_EQ(whole.used, 6U);
  EXPECT_EQ(cut_bulk("\r\n", 0).is, is_bulk::whole);
  EXPECT_EQ(cut_bulk("abcd\r", 4).is, is_bulk::incomplete);
  EXPECT_EQ(cut_bulk("abcdxy", 4).is, is_bulk::unended);
  EXPECT_EQ(cut_bulk("abcd\rx", 4).is, is_bulk::unended);
}

TEST(Frames, WordsAreCutAtOneSpace) {
  std::string_view line = "use  x";
  EXPECT_EQ(cut_word(line), "use");
  EXPECT_EQ(cut_word(line), "");
  EXPECT_EQ(cut_word(line), "x");
  EXPECT_EQ(line, "");
  EXPECT_EQ(cut_word(line), "");
}

TEST(Frames, ANumberIsDigitsOnlyUpToItsBound) {
  EXPECT_EQ(parse_number("0"), 0U);
  EXPECT_EQ(parse_number("007"), 7U);
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number("4294967296", UINT32_MAX), std::nullopt);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "1.0"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(Frames, RepliesHaveTheFormatOfRedis) {
  std::string out;
  resp::ok(out);
  resp::simple(out, "HI");
  resp::failed(out, "ERR", "no such queue");
  resp::bulk(out, "a\r\nb");
  resp::bulk(out, "");
  resp::null(out);
  EXPECT_EQ(out, "+OK\r\n+HI\r\n-ERR no such queue\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n");
}

TEST(Frames, TheTextOfAOneLineReplyCannotEndIt) {
  std::string out;
  resp::failed(out, "ERR", "bad\r\n+OK\n\x7f");
  EXPECT_EQ(out, "-ERR bad  +OK  \r\n");
}

}  // namespace
}  // namespace sluice::jobs::protocol::frames_test
