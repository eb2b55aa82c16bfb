#include "sluice/base/overflow.hpp"

#include <gtest/gtest.h>

namespace overflow_test {
namespace {

using sluice::overflow;

TEST(Overflow, HasTheSameWordInTextAsInCode) {
  EXPECT_EQ(to_string(overflow::block), "block");
  EXPECT_EQ(to_string(overflow::reject), "reject");
  EXPECT_EQ(to_string(overflow::drop_newest), "drop_newest");
  EXPECT_EQ(to_string(overflow::drop_oldest), "drop_oldest");
  EXPECT_EQ(to_string(overflow::latest), "latest");
  EXPECT_EQ(to_string(overflow::caller_runs), "caller_runs");
  EXPECT_EQ(to_string(static_cast<overflow>(99)), "unknown");
}

TEST(Overflow, BlockIsTheFirstAndSoTheDefault) { EXPECT_EQ(overflow{}, overflow::block); }

}  // namespace
}  // namespace overflow_test
