#include "sluice/base/check.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace check_test {
namespace {

using sluice::check;
using sluice::check_named;

TEST(Check, SaysNothingWhileTheContractHolds) {
  check(true, "queue", "anything");
  check_named(true, "queue", "mails", "anything");
  check_named(true, "queue", nullptr, "anything");
}

void broken_by_this_function() { check(false, "sluice::gate", "to be open"); }

TEST(CheckDeathTest, NamesTheObjectWhatWasExpectedAndThePlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(broken_by_this_function(),
               "sluice: contract broken on sluice::gate: expected to be open\n"
               ".*checked in .*broken_by_this_function.*check_test.cpp:[0-9]+");
}

TEST(CheckDeathTest, CarriesTheNameTheUserGave) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(check_named(false, "sluice::queue", "mails", "to be empty"),
               "contract broken on sluice::queue \"mails\": expected to be empty");
}

TEST(CheckDeathTest, LeavesTheQuotesOutWhenThereIsNoName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto said = "contract broken on sluice::queue: expected to be empty";
  EXPECT_DEATH(check_named(false, "sluice::queue", nullptr, "to be empty"), said);
  EXPECT_DEATH(check_named(false, "sluice::queue", "", "to be empty"), said);
}

TEST(CheckDeathTest, EndsByAbortSoThatACoreIsLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(check(false, "a", "b"), ::testing::KilledBySignal(SIGABRT), "expected b");
}

}  // namespace
}  // namespace check_test
