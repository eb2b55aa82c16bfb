#pragma once

// The name of the running GoogleTest, such as kill_test.NothingAcknowledgedIsLost.

#include <gtest/gtest.h>

#include <string>

namespace sluice::testing {

inline std::string test_name() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return "?";
  return std::string(test->test_suite_name()) + "." + test->name();
}

}  // namespace sluice::testing
