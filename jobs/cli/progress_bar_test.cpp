// Progress of long operations, as one line or as periodic lines.
#include "jobs/cli/progress_bar.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace sluice::jobs::cli::progress_bar_test {
namespace {

using namespace std::chrono_literals;

TEST(ProgressLine, HasABarARateAndTheRemainingTime) {
  const progress_state s{
      .doing = "importing", .unit = "jobs", .done = 500, .total = 1000, .per_second = 100};
  EXPECT_EQ(progress_line(s, 80),
            "importing [#############..............]  50% 500 of 1,000 jobs, 100/s, 5.0s left");
  EXPECT_EQ(s.left(), 5s);
}

TEST(ProgressLine, FitsItsColumns) {
  progress_state s{.doing = "importing", .unit = "jobs", .done = 123'456, .total = 1'000'000};
  s.per_second = 12'345;
  s.note = "3 refused";
  for (std::size_t columns = 20; columns < 120; ++columns) {
    EXPECT_LE(width_of(progress_line(s, columns)), columns);
  }
}

TEST(ProgressLine, OmitsUnknownValues) {
  const progress_state s{.doing = "importing", .unit = "jobs", .done = 500};
  EXPECT_EQ(progress_line(s, 80), "importing 500 jobs");
  EXPECT_FALSE(s.left());
}

TEST(ProgressLine, FormatsBytesAsSizes) {
  const progress_state s{.doing = "copying", .unit = "B", .done = 1 << 20, .total = 2 << 20};
  EXPECT_EQ(progress_line(s, 30), "copying  50% 1.0 MB of 2.0 MB");
}

TEST(ProgressLine, NeverExceedsTheTotal) {
  const progress_state s{.doing = "exporting", .unit = "jobs", .done = 12, .total = 10};
  EXPECT_NE(progress_line(s, 80).find("100%"), std::string::npos);
}

// Standard error as a file, like a log.
class ProgressBar : public ::testing::Test {
 protected:
  ProgressBar() : err_(std::tmpfile()), console_({.in = stdin, .out = stdout, .err = err_}) {}
  ~ProgressBar() override { std::fclose(err_); }

  std::string written() {
    std::string text;
    std::rewind(err_);
    for (int c = std::fgetc(err_); c != EOF; c = std::fgetc(err_)) text += static_cast<char>(c);
    return text;
  }

  std::FILE* err_;
  console console_;
  manual_clock clock_;
};

TEST_F(ProgressBar, WritesALineEveryFewSecondsWhereThereIsNoTerminal) {
  progress_bar bar(console_,
                   {.doing = "importing", .unit = "jobs", .total = 100, .timers = &clock_});
  for (std::uint64_t i = 1; i <= 100; ++i) {
    clock_.advance(100ms);
    bar.at(i);
  }
  bar.finish();
  EXPECT_EQ(written(),
            "importing [###############...............]  50% 50 of 100 jobs, 10/s, 5.0s left\n"
            "importing [##############################] 100% 100 of 100 jobs, 10/s\n");
}

TEST_F(ProgressBar, TakesItsRateFromTheLastSeconds) {
  progress_bar bar(console_, {.doing = "d", .unit = "jobs", .total = 100'000, .timers = &clock_});
  std::uint64_t done = 0;
  for (int i = 0; i < 100; ++i) {
    clock_.advance(1s);
    bar.at(done += 1);
  }
  for (int i = 0; i < 30; ++i) {
    clock_.advance(1s);
    bar.at(done += 1000);
  }
  const std::string text = written();
  EXPECT_NE(text.find(" 1,000/s"), std::string::npos) << text;
}

TEST_F(ProgressBar, IsSilentWhenQuiet) {
  progress_bar bar(console_, {.doing = "d", .unit = "jobs", .quiet = true, .timers = &clock_});
  clock_.advance(1min);
  bar.at(10);
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace sluice::jobs::cli::progress_bar_test
