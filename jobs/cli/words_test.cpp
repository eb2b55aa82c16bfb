// Tables and text formatting.
#include "jobs/cli/words.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "jobs/cli/exit_code.hpp"

namespace sluice::jobs::cli::words_test {
namespace {

using namespace std::chrono_literals;

TEST(Words, GroupNumbersByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "job", "jobs"), "1 job");
  EXPECT_EQ(counted(2000, "job", "jobs"), "2,000 jobs");
}

TEST(Words, FormatSizesInTheLargestUnit) {
  EXPECT_EQ(byte_size(0), "0 B");
  EXPECT_EQ(byte_size(1023), "1023 B");
  EXPECT_EQ(byte_size(1536), "1.5 kB");
  EXPECT_EQ(byte_size(std::uint64_t{64} << 30), "64.0 GB");
  EXPECT_EQ(byte_size(~std::uint64_t{0}), "16384.0 PB");
}

TEST(Words, RoundDurations) {
  EXPECT_EQ(short_duration(12ms), "12ms");
  EXPECT_EQ(short_duration(3400ms), "3.4s");
  EXPECT_EQ(short_duration(90s), "90s");
  EXPECT_EQ(short_duration(5min), "5m");
  EXPECT_EQ(short_duration(5h), "5h");
  EXPECT_EQ(short_duration(100h), "4d");
}

TEST(Words, FormatTheDistanceToNow) {
  const unix_time now{1'000'000};
  EXPECT_EQ(ago({}, now), "-");
  EXPECT_EQ(ago(now - 5min, now), "5m ago");
  EXPECT_EQ(ago(now + 20s, now), "in 20s");
}

TEST(Words, ShortenToOneLine) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcdefgh", 6), "abc...");
  EXPECT_EQ(shortened("a\nb", 5), "a b");
  EXPECT_EQ(shortened("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC", 4), "\xC3\xBC...");
}

TEST(Words, ColourAStateOnlyWithColours) {
  EXPECT_EQ(coloured(job_state::dead, {}), "dead");
  EXPECT_EQ(coloured(job_state::dead, {.colours = true}), "\033[31mdead\033[0m");
}

TEST(Table, FitsItsContent) {
  table t({{"NAME"}, {"COUNT", table::align::right}, {"NOTE"}});
  t.add({"default", "1,000", ""});
  t.add({"\xC3\xBC", "2", "paused"});
  EXPECT_EQ(t.text(),
            "NAME     COUNT  NOTE\n"
            "default  1,000\n"
            "\xC3\xBC            2  paused\n");
}

TEST(Table, RequiresOneCellPerColumn) {
  table t({{"A"}, {"B"}});
  EXPECT_DEATH(t.add({"only one"}), "one cell per column");
}

TEST(ExitCode, IsDifferentForWhatAScriptHandlesDifferently) {
  EXPECT_EQ(exit_code_for(error_code::not_found), exit_code::not_found);
  EXPECT_EQ(exit_code_for(error_code::queue_full), exit_code::try_later);
  EXPECT_EQ(exit_code_for(error_code::disk_full), exit_code::try_later);
  EXPECT_EQ(exit_code_for(error_code::unavailable), exit_code::unavailable);
  EXPECT_EQ(exit_code_for(error_code::timed_out), exit_code::timed_out);
  EXPECT_EQ(exit_code_for(error_code::wrong_state), exit_code::failed);
  EXPECT_EQ(exit_code_for(error_code::invalid), exit_code::bad_usage);
}

}  // namespace
}  // namespace sluice::jobs::cli::words_test
