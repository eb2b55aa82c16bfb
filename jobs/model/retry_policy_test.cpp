#include "jobs/model/retry_policy.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "sluice/base/random.hpp"

namespace sluice::jobs::retry_policy_test {
namespace {

using namespace std::chrono_literals;

constexpr double almost_one = 1.0 - 1e-12;

std::string message_of(const retry_policy& p) {
  const auto valid = validate(p);
  if (valid) return "";
  EXPECT_EQ(valid.error().code, error_code::invalid);
  return valid.error().message;
}

TEST(RetryPolicy, GrowsByItsFactor) {
  const retry_policy p{.attempts_max = 5, .first = 1s, .factor = 2.0, .jitter = 0};
  EXPECT_EQ(pause_after(p, 1, 0), 1s);
  EXPECT_EQ(pause_after(p, 2, 0), 2s);
  EXPECT_EQ(pause_after(p, 3, 0), 4s);
  EXPECT_EQ(pause_after(p, 4, 0), 8s);
}

TEST(RetryPolicy, StaysTheSameWithAFactorOfOne) {
  const retry_policy p{.first = 7s, .factor = 1.0, .jitter = 0};
  EXPECT_EQ(pause_after(p, 1, 0), 7s);
  EXPECT_EQ(pause_after(p, 1'000'000, 0), 7s);
}

TEST(RetryPolicy, IsNeverLongerThanItsLongest) {
  const retry_policy p{.first = 1s, .factor = 3.0, .longest = 10s, .jitter = 0};
  EXPECT_EQ(pause_after(p, 3, 0), 9s);
  EXPECT_EQ(pause_after(p, 4, 0), 10s);
  EXPECT_EQ(pause_after({.first = 1min, .longest = 1s, .jitter = 0}, 1, 0), 1s);
}

TEST(RetryPolicy, DoesNotOverflow) {
  const retry_policy p{.first = 8784h, .factor = 1000.0, .longest = 8784h, .jitter = 0};
  EXPECT_EQ(pause_after(p, 2, 0), 8784h);
  EXPECT_EQ(pause_after(p, 1'000'000, 0), 8784h);
  EXPECT_EQ(pause_after(p, std::numeric_limits<std::uint32_t>::max(), 0), 8784h);
}

// 0 * infinity is NaN, which must not become a pause.
TEST(RetryPolicy, AZeroPauseStaysZeroAfterManyFailures) {
  const retry_policy p{.first = 0ms, .factor = 1000.0};
  EXPECT_EQ(pause_after(p, 1, 0.5), 0ms);
  EXPECT_EQ(pause_after(p, 1'000'000, 0.5), 0ms);
}

TEST(RetryPolicy, TakesOffUpToItsJitter) {
  const retry_policy p{.first = 1000s, .jitter = 0.25};
  EXPECT_EQ(pause_after(p, 1, 0), 1000s);
  EXPECT_EQ(pause_after(p, 1, 0.5), 875s);
  EXPECT_EQ(pause_after(p, 1, almost_one), 750s);
  EXPECT_EQ(pause_after({.first = 1000s, .jitter = 1}, 1, almost_one), 0ms);
}

TEST(RetryPolicy, StaysWithinItsBoundsAtEveryChance) {
  random chance(5);
  for (int i = 0; i < 100'000; ++i) {
    const auto share = [&] { return static_cast<double>(chance.next() >> 11U) * 0x1p-53; };
    const retry_policy p{.first = milliseconds(chance.below(1'000'000)),
                         .factor = 1 + 9 * share(),
                         .longest = milliseconds(chance.below(100'000'000)),
                         .jitter = share()};
    ASSERT_TRUE(validate(p));
    const auto pause = pause_after(p, 1 + chance.below(100), share());
    ASSERT_GE(pause, 0ms);
    ASSERT_LE(pause, p.longest);
    ASSERT_GE(static_cast<double>(pause.count()) + 1,
              static_cast<double>(std::min(p.first, p.longest).count()) * (1 - p.jitter));
  }
}

TEST(RetryPolicy, RejectsImpossibleArguments) {
  EXPECT_DEATH(pause_after({}, 0, 0), "at least one failure");
  EXPECT_DEATH(pause_after({}, 1, 1), "chance in");
  EXPECT_DEATH(pause_after({}, 1, -0.1), "chance in");
}

TEST(RetryPolicy, IsValidByDefault) {
  EXPECT_EQ(message_of({}), "");
  EXPECT_EQ(message_of({.attempts_max = 1, .first = 0ms, .factor = 1, .longest = 0ms, .jitter = 1}),
            "");
}

TEST(RetryPolicy, NamesTheFieldThatIsOutOfRange) {
  EXPECT_EQ(message_of({.attempts_max = 0}), "retry.attempts must be from 1 (no retry) to 1000000");
  EXPECT_NE(message_of({.attempts_max = 1'000'001}), "");
  EXPECT_EQ(message_of({.first = -1ms}), "retry.first must be from 0 to 366 days");
  EXPECT_NE(message_of({.first = 8785h}), "");
  EXPECT_EQ(message_of({.factor = 0.99}), "retry.factor must be from 1 to 1000");
  EXPECT_NE(message_of({.factor = 1000.1}), "");
  EXPECT_NE(message_of({.factor = std::numeric_limits<double>::quiet_NaN()}), "");
  EXPECT_EQ(message_of({.longest = -1ms}), "retry.longest must be from 0 to 366 days");
  EXPECT_NE(message_of({.longest = 8785h}), "");
  EXPECT_EQ(message_of({.jitter = -0.1}), "retry.jitter must be from 0 to 1");
  EXPECT_NE(message_of({.jitter = 1.1}), "");
  EXPECT_NE(message_of({.jitter = std::numeric_limits<double>::quiet_NaN()}), "");
}

}  // namespace
}  // namespace sluice::jobs::retry_policy_test
