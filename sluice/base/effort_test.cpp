// Counts and seeds are read from the environment, printed, and rejected unless they are numbers.

#include "sluice/base/testing/effort.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/base/testing/test_name.hpp"

namespace effort_test {
namespace {

using sluice::testing::count_of;
using sluice::testing::effort;
using sluice::testing::effort_counts;
using sluice::testing::is_long_run;
using sluice::testing::is_sanitized;
using sluice::testing::seed;
using sluice::testing::seeds;

// Sets or unsets a variable, and restores it.
class variable {
 public:
  variable(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* const now = std::getenv(name)) before_ = now;
    set(value);
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() { set(before_); }

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

constexpr effort_counts kills{.ci = 20, .full = 500};
constexpr effort_counts fewer{.ci = 20, .full = 500, .sanitized = 5};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  return "no error";
}

TEST(effort_test, TheCountIsThatOfCiUnlessTheRunIsLong) {
  EXPECT_EQ(count_of(kills, false, false), 20U);
  EXPECT_EQ(count_of(kills, true, false), 500U);
}

TEST(effort_test, ASanitizedRunIsSmallerOnlyIfTheSuiteRequestsIt) {
  EXPECT_EQ(count_of(kills, false, true), 20U);
  EXPECT_EQ(count_of(kills, true, true), 500U);
  EXPECT_EQ(count_of(fewer, false, true), 5U);
  EXPECT_EQ(count_of(fewer, true, true), 125U);
  EXPECT_EQ(count_of(fewer, false, false), 20U);
}

TEST(effort_test, TheFullCountOfASanitizedRunIsNeverBelowThatOfCi) {
  EXPECT_EQ(count_of({.ci = 10, .full = 10, .sanitized = 3}, true, true), 3U);
  EXPECT_EQ(count_of({.ci = 10, .full = 11, .sanitized = 1}, true, true), 1U);
}

TEST(effort_test, InconsistentCountsAreRejected) {
  EXPECT_THROW((void)count_of({}, false, false), std::invalid_argument);
  EXPECT_THROW((void)count_of({.ci = 2, .full = 1}, false, false), std::invalid_argument);
  EXPECT_THROW((void)count_of({.ci = 2, .full = 9, .sanitized = 3}, false, false),
               std::invalid_argument);
}

TEST(effort_test, TheVariableSelectsTheFullCount) {
  {
    const variable unset("SLUICE_LONG", std::nullopt);
    EXPECT_EQ(effort("here", "kills", kills), 20U);
  }
  {
    const variable off("SLUICE_LONG", "0");
    EXPECT_EQ(effort("here", "kills", kills), 20U);
  }
  const variable on("SLUICE_LONG", "1");
  EXPECT_EQ(effort("here", "kills", kills), 500U);
}

TEST(effort_test, TheCountIsPrintedWithTheSuiteAndTheFullCount) {
  std::string text;
  {
    const variable unset("SLUICE_LONG", std::nullopt);
    ::testing::internal::CaptureStdout();
    (void)effort(sluice::testing::test_name(), "kills", kills);
    (void)effort("same", "kills", {.ci = 3, .full = 3});
    text = ::testing::internal::GetCapturedStdout();
  }
  EXPECT_EQ(text,
            "[  EFFORT  ] effort_test.TheCountIsPrintedWithTheSuiteAndTheFullCount: "
            "20 kills (of 500 with --long)\n"
            "[  EFFORT  ] same: 3 kills\n");
  const variable on("SLUICE_LONG", "1");
  ::testing::internal::CaptureStdout();
  (void)effort("here", "kills", kills);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "[  EFFORT  ] here: 500 kills (--long)\n");
}

TEST(effort_test, AnInvalidSluiceLongIsRejected) {
  for (const char* const wrong : {"", "yes", "true", "2", "-1", "1 ", "01x"}) {
    const variable set("SLUICE_LONG", wrong);
    EXPECT_THROW((void)is_long_run(), std::invalid_argument) << wrong;
    EXPECT_THROW((void)effort("here", "kills", kills), std::invalid_argument) << wrong;
  }
  const variable set("SLUICE_LONG", "yes");
  EXPECT_EQ(error_of([] { (void)is_long_run(); }),
            "SLUICE_LONG='yes': expected a number from 0 to 1");
}

TEST(effort_test, ASeedIsTheVariableElseTheUsualOneElseFreshInALongRun) {
  {
    const variable set("SLUICE_SEED", "18446744073709551615");
    EXPECT_EQ(seed("here"), 18446744073709551615U);
    EXPECT_EQ(seed("here", 7), 18446744073709551615U);
  }
  const variable unset("SLUICE_SEED", std::nullopt);
  EXPECT_EQ(seed("here", 7), 7U);
  {
    const variable off("SLUICE_LONG", std::nullopt);
    EXPECT_EQ(seed("here"), 1U);
  }
  const variable on("SLUICE_LONG", "1");
  EXPECT_EQ(seed("here", 7), 7U);
  bool differs = false;
  for (const auto first = seed("here"); !differs;) differs = seed("here") != first;
}

TEST(effort_test, TheSeedIsPrintedAsTheVariableThatRepeatsIt) {
  const variable unset("SLUICE_SEED", std::nullopt);
  const variable on("SLUICE_LONG", "1");
  ::testing::internal::CaptureStdout();
  const auto fresh = seed("here");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "[   SEED   ] here: SLUICE_SEED=" + std::to_string(fresh) + "\n");
}

TEST(effort_test, AnInvalidSeedIsRejected) {
  for (const char* const wrong :
       {"", "x", "12x", "-1", "+1", " 1", "0x10", "1.5", "18446744073709551616"}) {
    const variable set("SLUICE_SEED", wrong);
    EXPECT_THROW((void)seed("here"), std::invalid_argument) << wrong;
    EXPECT_THROW((void)seed("here", 7), std::invalid_argument) << wrong;
    EXPECT_THROW((void)seeds("here", kills), std::invalid_argument) << wrong;
  }
  const variable set("SLUICE_SEED", "12x");
  EXPECT_EQ(error_of([] { (void)seed("here"); }),
            "SLUICE_SEED='12x': expected a number from 0 to 18446744073709551615");
}

TEST(effort_test, TheVariableReplacesTheSeedsOfASuite) {
  const variable not_long("SLUICE_LONG", std::nullopt);
  {
    const variable unset("SLUICE_SEED", std::nullopt);
    const auto all = seeds("here", {.ci = 4, .full = 9});
    EXPECT_EQ(all.first, 1U);
    EXPECT_EQ(all.count, 4U);
  }
  const variable set("SLUICE_SEED", "37");
  const auto one = seeds("here", {.ci = 4, .full = 9});
  EXPECT_EQ(one.first, 37U);
  EXPECT_EQ(one.count, 1U);
}

TEST(effort_test, TheCountOfASanitizedBuildIsTheSanitizedOne) {
  const variable unset("SLUICE_LONG", std::nullopt);
  EXPECT_EQ(effort("here", "kills", fewer), is_sanitized ? 5U : 20U);
}

}  // namespace
}  // namespace effort_test
