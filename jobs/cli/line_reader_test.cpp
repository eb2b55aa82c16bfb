// Lines from a pipe, as they arrive.
#include "jobs/cli/line_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace sluice::jobs::cli::line_reader_test {
namespace {

class LineReader : public ::testing::Test {
 protected:
  ~LineReader() override {
    finish();
    ::close(ends_[0]);
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void finish() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string next() {
    const auto line = lines_.next();
    if (!line) return "error: " + line.error().message;
    return *line ? **line : "(end)";
  }

  static std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }

  std::array<int, 2> ends_ = make_pipe();
  line_reader lines_{ends_[0], 100};
};

TEST_F(LineReader, ReturnsLinesWithoutTheirEnds) {
  write("one\n\nthree\r\nfour");
  finish();
  EXPECT_EQ(next(), "one");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(next(), "three");
  EXPECT_EQ(next(), "four");
  EXPECT_EQ(next(), "(end)");
  EXPECT_EQ(next(), "(end)");
}

TEST_F(LineReader, DetectsThatItWouldBlock) {
  EXPECT_TRUE(lines_.would_wait());
  write("one\ntwo\n");
  EXPECT_FALSE(lines_.would_wait());
  EXPECT_EQ(next(), "one");
  EXPECT_FALSE(lines_.would_wait());
  EXPECT_EQ(next(), "two");
  EXPECT_TRUE(lines_.would_wait());
  finish();
  EXPECT_FALSE(lines_.would_wait());
  EXPECT_EQ(next(), "(end)");
}

TEST_F(LineReader, RejectsALineThatIsTooLong) {
  write(std::string(101, 'x'));
  EXPECT_NE(next().find("longer than the limit of 100 bytes"), std::string::npos);
}

}  // namespace
}  // namespace sluice::jobs::cli::line_reader_test
