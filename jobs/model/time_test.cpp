#include "jobs/model/time.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::jobs::time_test {
namespace {

using namespace std::chrono_literals;

TEST(UnixTime, IsComparedAndMovedInMilliseconds) {
  constexpr unix_time t{1000};
  static_assert((t + 5ms).ms == 1005);
  static_assert((t - 1s).ms == 0);
  static_assert(unix_time{1500} - t == 500ms);
  static_assert(t < unix_time{1001});
  EXPECT_EQ(unix_time{}, unix_time{0});
}

TEST(RealTime, MatchesTheSystemClock) {
  const auto since = [] {
    return std::chrono::duration_cast<milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = since();
  const unix_time now = real_time().now();
  EXPECT_GE(now.ms, before);
  EXPECT_LE(now.ms, since());
  EXPECT_EQ(&real_time().timers(), &real_clock());
}

TEST(ManualTime, StandsStillUntilItIsMoved) {
  manual_time time;
  EXPECT_EQ(time.now().ms, 1'767'225'600'000);
  EXPECT_EQ(time.now(), time.now());
  time.advance(1500us);
  EXPECT_EQ(time.now().ms, 1'767'225'600'001);
  time.advance(500us);
  EXPECT_EQ(time.now().ms, 1'767'225'600'002);
}

TEST(TimeSource, StampsAreRoundedDownAndDueTimesUp) {
  manual_time time({10'000});
  EXPECT_EQ(time.after(2s), unix_time{12'000});
  time.advance(1ns);
  EXPECT_EQ(time.now(), unix_time{10'000});
  EXPECT_EQ(time.after(0ns), unix_time{10'001});
  EXPECT_EQ(time.after(2s), unix_time{12'001});
  time.advance(999'999ns);
  EXPECT_EQ(time.after(2s), unix_time{12'001});
  EXPECT_EQ(time.after(2s + 1ns), unix_time{12'002});
}

TEST(TimeSource, ADueTimeIsReachedExactlyWhenUntilIsNotPositive) {
  manual_time time({10'000});
  time.advance(300us);
  const unix_time due = time.after(2s);
  EXPECT_EQ(time.until(due), 2s + 700us);
  time.advance(2s + 700us - 1ns);
  EXPECT_EQ(time.until(due), 1ns);
  EXPECT_LT(time.now(), due);
  time.advance(1ns);
  EXPECT_EQ(time.until(due), 0ns);
  EXPECT_EQ(time.now(), due);
  time.advance(1ms);
  EXPECT_EQ(time.until(due), -1ms);
}

TEST(TimeSource, ATimeBeyondTheClockIsFarAway) {
  manual_time time;
  EXPECT_EQ(time.until(unix_time{std::numeric_limits<std::int64_t>::max()}),
            std::chrono::years(100));
  EXPECT_LT(time.until(unix_time{0}), -50 * std::chrono::years(1));
}

TEST(ManualTime, MovesTheWallAndTheTimersTogether) {
  struct note final : timer {
    explicit note(manual_time& t) : time(t) {}
    bool claim() noexcept override { return true; }
    void fire() noexcept override { fired_at = time.now(); }
    manual_time& time;
    unix_time fired_at{};
  };
  manual_time time({10'000});
  note n(time);
  ASSERT_TRUE(time.timers().arm(n, time.timers().now() + 250ms));
  time.advance(249ms);
  EXPECT_EQ(n.fired_at, unix_time{});
  time.advance(1s);
  EXPECT_EQ(n.fired_at, unix_time{10'250});
  EXPECT_EQ(time.now(), unix_time{11'249});
}

}  // namespace
}  // namespace sluice::jobs::time_test
