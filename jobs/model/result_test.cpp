#include "jobs/model/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace sluice::jobs::result_test {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  result<std::string> good("x");
  EXPECT_TRUE(good);
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(*good, "x");
  EXPECT_EQ(good->size(), 1U);
  const result<std::string> bad(error{error_code::not_found, "no job 7", 7});
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().code, error_code::not_found);
  EXPECT_EQ(bad.error().message, "no job 7");
  EXPECT_EQ(bad.error().job, 7U);
}

TEST(Result, CanBeMovedOutOf) {
  result<std::unique_ptr<int>> held(std::make_unique<int>(3));
  const std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 3);
  result<std::unique_ptr<int>> again(std::make_unique<int>(4));
  EXPECT_EQ(*std::move(again).value(), 4);
}

TEST(Result, HoldsAStringOrAnErrorAsItsValue) {
  const void_result fine = done{};
  EXPECT_TRUE(fine);
  const result<int> zero = 0;
  EXPECT_TRUE(zero);
}

TEST(Result, ChecksThatItHoldsTheReadAlternative) {
  result<int> bad(error{});
  result<int> good(1);
  EXPECT_DEATH(static_cast<void>(*bad), "a value; test the result");
  EXPECT_DEATH(static_cast<void>(std::as_const(bad).value()), "a value; test the result");
  EXPECT_DEATH(static_cast<void>(good.error()), "an error; test the result");
}

TEST(ErrorCode, HasAUniqueWord) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(error_code::unavailable); ++i) {
    words.insert(to_string(static_cast<error_code>(i)));
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(error_code::unavailable) + 1);
  EXPECT_FALSE(words.contains("unknown"));
  EXPECT_TRUE(words.contains("queue_full"));
  EXPECT_EQ(to_string(static_cast<error_code>(99)), "unknown");
}

}  // namespace
}  // namespace sluice::jobs::result_test
