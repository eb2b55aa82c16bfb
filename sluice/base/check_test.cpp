#include "sluice/base/check.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "sluice/base/outcome.hpp"

namespace check_test {
namespace {

using sluice::check;
using sluice::check_named;

TEST(Check, PrintsNothingIfTheContractHolds) {
  check(true, "queue", "anything");
  check_named(true, "queue", "mails", "anything");
  check_named(true, "queue", nullptr, "anything");
}

void broken_by_this_function() { check(false, "sluice::gate", "to be open"); }

TEST(CheckDeathTest, NamesTheObjectTheExpectationAndThePlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(broken_by_this_function(),
               "sluice: contract broken on sluice::gate: expected to be open\n"
               ".*checked in .*broken_by_this_function.*check_test.cpp:[0-9]+");
}

void broken_by_a_caller(sluice::call_site at = {}) { check(false, "sluice::gate", "open", at); }

// Compilers differ in the line of a call in the argument of a macro.
const std::string line_of_call = std::to_string(__LINE__ + 1);
void call_it() { broken_by_a_caller(); }

TEST(CheckDeathTest, NamesThePlaceOfTheCallerBeforeThatOfTheCheck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(call_it(), "expected open\n  called at .*check_test.cpp:" + line_of_call +
                              " \\(.*\n  checked in .*broken_by_a_caller");
}

[[gnu::noinline]] void lose_money() {
  check(false, "sluice::gate", "open");
  std::puts("not reached");
}

TEST(CheckDeathTest, NamesTheFunctionOfTheCallerIfThePlaceIsUnknown) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(lose_money(), "expected open\n  called at .*lose_money\\(\\).*\n  checked in ");
}

TEST(CheckDeathTest, AnOutcomeWithoutAValueNamesThePlaceThatReadIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  sluice::outcome<int> none(sluice::status::empty);
  const std::string line = std::to_string(__LINE__ + 1);
  EXPECT_DEATH((void)none.value(), "expected a value; .*\n  called at .*check_test.cpp:" + line);
  EXPECT_DEATH((void)*none, "expected a value; .*\n  called at .*TestBody.*\n  checked in");
}

TEST(CheckDeathTest, PrintsTheNameOfTheObject) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(check_named(false, "sluice::queue", "mails", "to be empty"),
               "contract broken on sluice::queue \"mails\": expected to be empty");
}

TEST(CheckDeathTest, PrintsNoQuotesWithoutAName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto message = "contract broken on sluice::queue: expected to be empty";
  EXPECT_DEATH(check_named(false, "sluice::queue", nullptr, "to be empty"), message);
  EXPECT_DEATH(check_named(false, "sluice::queue", "", "to be empty"), message);
}

TEST(CheckDeathTest, AbortsAndSoLeavesACoreFile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(check(false, "a", "b"), ::testing::KilledBySignal(SIGABRT), "expected b");
}

}  // namespace
}  // namespace check_test
