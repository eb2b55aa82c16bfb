#include "jobs/json/text.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sluice/base/random.hpp"

namespace sluice::jobs::text_test {
namespace {

using namespace std::chrono_literals;

void expect_duration(std::string_view text, milliseconds expected) {
  const auto parsed = parse_duration(text);
  ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
  EXPECT_EQ(*parsed, expected) << text;
}

void expect_time(std::string_view text, std::int64_t expected_ms) {
  const auto parsed = parse_time(text);
  ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
  EXPECT_EQ(parsed->ms, expected_ms) << text;
}

TEST(Duration, IsANumberAndAUnit) {
  expect_duration("500ms", 500ms);
  expect_duration("30s", 30s);
  expect_duration("5m", 5min);
  expect_duration("1h", 1h);
  expect_duration("7d", 168h);
  expect_duration("0s", 0ms);
  expect_duration("1.5h", 90min);
  expect_duration("0.25s", 250ms);
}

TEST(Duration, IsSecondsWithoutAUnit) {
  expect_duration("5", 5s);
  expect_duration("0.5", 500ms);
}

TEST(Duration, AcceptsSeveralUnitsInDescendingOrder) {
  expect_duration("1h30m", 90min);
  expect_duration("1d2h3m4s5ms", 93'784'005ms);
}

TEST(Duration, RefusesEverythingElse) {
  for (const std::string_view text :
       {"",       " ",
        "s",      "ms",
        "-5s",    "+5s",
        "5 s",    "5S",
        "5sec",   "1e3s",
        "1m1h",   "1h1h",
        "5s5",    ".5s",
        "5.s",    "1..5s",
        "0x10s",  "inf",
        "nan",    "99999999999d",
        "1h 30m", "99999999999999999999999999999999999999999999999"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, error_code::invalid);
    EXPECT_NE(parsed.error().message.find("\"30s\""), std::string::npos) << parsed.error().message;
  }
}

TEST(Duration, OfSecondsRejectsInvalidNumbers) {
  EXPECT_EQ(*duration_of_seconds(0.0015), 2ms);
  EXPECT_FALSE(duration_of_seconds(-1));
  EXPECT_FALSE(duration_of_seconds(1e300));
  EXPECT_FALSE(duration_of_seconds(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Duration, IsRoundedUpToWholeMilliseconds) {
  EXPECT_EQ(*duration_of_seconds(0.0001), 1ms);
  EXPECT_EQ(*duration_of_seconds(2.0004), 2001ms);
  EXPECT_EQ(*parse_duration("1.2ms"), 2ms);
  for (const double exact : {0.0, 0.001, 0.1, 1.1, 4.35, 1e6, 86400.123}) {
    EXPECT_EQ(*duration_of_seconds(exact), milliseconds(std::llround(exact * 1000))) << exact;
  }
}

TEST(Duration, IsWrittenInTheLargestUnitThatFits) {
  EXPECT_EQ(format_duration(0ms), "0s");
  EXPECT_EQ(format_duration(1ms), "1ms");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(60s), "1m");
  EXPECT_EQ(format_duration(24h), "1d");
  EXPECT_EQ(format_duration(25h), "25h");
  EXPECT_DEATH(format_duration(-1ms), "not negative");
}

TEST(Duration, ComesBackAsItWasWritten) {
  random chance(7);
  for (int i = 0; i < 20'000; ++i) {
    const milliseconds d(static_cast<std::int64_t>(chance.next() >> (23 + chance.below(40))));
    expect_duration(format_duration(d), d);
  }
}

TEST(Time, IsRfc3339) {
  expect_time("1970-01-01T00:00:00Z", 0);
  expect_time("2026-01-01T00:00:00Z", 1'767'225'600'000);
  expect_time("2026-01-01T00:00:00.5Z", 1'767'225'600'500);
  expect_time("2026-01-01T00:00:00.123999999Z", 1'767'225'600'124);
  expect_time("2026-01-01T02:30:00+02:30", 1'767'225'600'000);
  expect_time("2025-12-31T16:00:00-08:00", 1'767'225'600'000);
  expect_time("2026-01-01t00:00:00z", 1'767'225'600'000);
  expect_time("2026-01-01 00:00:00Z", 1'767'225'600'000);
  expect_time("2024-02-29T00:00:00Z", 1'709'164'800'000);
  expect_time("1969-12-31T23:59:59.999Z", -1);
  expect_time("2016-12-31T23:59:60Z", 1'483'228'799'000);
}

TEST(Time, IsRoundedUpToWholeMilliseconds) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.0001Z")->ms, 1);
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.001000Z")->ms, 1);
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.001000001Z")->ms, 2);
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.9999Z")->ms, 1000);
}

TEST(Time, RefusesEverythingElse) {
  for (const std::string_view text : {"",
                                      "now",
                                      "2026",
                                      "2026-01-01",
                                      "2026-01-01T00:00:00",
                                      "2026-01-01T00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-01-32T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "2026-01-01T00:00:61Z",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00+0200",
                                      "2026-01-01T00:00:00+24:00",
                                      "2026-01-01T00:00:00Z ",
                                      " 2026-01-01T00:00:00Z",
                                      "+026-01-01T00:00:00Z",
                                      "1767225600"}) {
    const auto parsed = parse_time(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("RFC 3339"), std::string::npos);
  }
}

TEST(Time, IsWrittenInUtcWithMilliseconds) {
  EXPECT_EQ(format_time({0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time({1'767'225'600'007}), "2026-01-01T00:00:00.007Z");
  EXPECT_EQ(format_time({-1}), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time({std::numeric_limits<std::int64_t>::max()}), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time({std::numeric_limits<std::int64_t>::min()}), "0000-01-01T00:00:00.000Z");
}

TEST(Time, ComesBackAsItWasWritten) {
  random chance(11);
  for (int i = 0; i < 20'000; ++i) {
    const unix_time t{static_cast<std::int64_t>(chance.next() % 253'402'300'799'999U)};
    expect_time(format_time(t), t.ms);
  }
}

}  // namespace
}  // namespace sluice::jobs::text_test
