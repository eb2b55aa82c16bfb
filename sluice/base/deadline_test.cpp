#include "sluice/base/deadline.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

#include "sluice/base/clock.hpp"

namespace deadline_test {
namespace {

using namespace std::chrono_literals;
using sluice::deadline;
using sluice::manual_clock;
using sluice::time_point;
using std::chrono::duration;
using std::chrono::steady_clock;
using std::chrono::system_clock;

static_assert(std::is_trivially_copyable_v<deadline>);
static_assert(deadline().is_never() && deadline::never().is_never());

TEST(Deadline, NeverHasNotPassed) {
  EXPECT_TRUE(deadline().is_never());
  EXPECT_FALSE(deadline::never().passed());
  EXPECT_EQ(deadline().on(), nullptr);
}

TEST(Deadline, ZeroAndNegativeHavePassedAlready) {
  EXPECT_TRUE(deadline::after(0s).passed());
  EXPECT_TRUE(deadline::after(0ns).passed());
  EXPECT_TRUE(deadline::after(-1ns).passed());
  EXPECT_TRUE(deadline::after(-1h).passed());
  EXPECT_TRUE(deadline::after(std::chrono::hours::min()).passed());
  EXPECT_TRUE(deadline::after(std::chrono::nanoseconds::min()).passed());
  EXPECT_TRUE(deadline::after(duration<double>(-0.5)).passed());
  EXPECT_TRUE(deadline::after(duration<double>(-0.0)).passed());
  for (const auto d : {0s, -1s}) EXPECT_FALSE(deadline::after(d).is_never());
}

TEST(Deadline, NotANumberHasPassedAndInfinityIsNever) {
  EXPECT_TRUE(deadline::after(duration<double>(std::nan(""))).passed());
  EXPECT_TRUE(deadline::after(duration<float>(std::nanf(""))).passed());
  EXPECT_TRUE(deadline::after(duration<double>(-HUGE_VAL)).passed());
  EXPECT_TRUE(deadline::after(duration<double>(HUGE_VAL)).is_never());
  EXPECT_TRUE(deadline::after(duration<float>(HUGE_VALF)).is_never());
}

TEST(Deadline, TooLongToRepresentIsNever) {
  EXPECT_TRUE(deadline::after(std::chrono::hours::max()).is_never());
  EXPECT_TRUE(deadline::after(std::chrono::seconds::max()).is_never());
  EXPECT_TRUE(deadline::after(std::chrono::nanoseconds::max()).is_never());
  EXPECT_TRUE(deadline::after(duration<std::uint64_t>::max()).is_never());
  EXPECT_TRUE((deadline::after(duration<std::int64_t, std::giga>::max()).is_never()));
  EXPECT_TRUE(deadline::after(duration<double>(1e30)).is_never());
  EXPECT_TRUE(deadline::at(time_point::max()).is_never());
}

TEST(Deadline, ALongDurationIsRepresentedExactly) {
  const auto century = std::chrono::hours(24 * 365 * 100);
  const auto before = steady_clock::now();
  const auto d = deadline::after(century);
  EXPECT_FALSE(d.is_never());
  EXPECT_FALSE(d.passed());
  EXPECT_GE(d.when(), before + century);
  EXPECT_LE(d.when(), steady_clock::now() + century);
}

TEST(Deadline, IsMeasuredFromNowInAnyUnit) {
  manual_clock clock;
  const auto start = clock.now();
  EXPECT_EQ(deadline::after(250ms, clock).when(), start + 250ms);
  EXPECT_EQ(deadline::after(1ns, clock).when(), start + 1ns);
  EXPECT_EQ(deadline::after(duration<double>(0.25), clock).when(), start + 250ms);
  EXPECT_EQ((deadline::after(duration<int, std::ratio<60>>(2), clock).when()), start + 2min);
  EXPECT_EQ(deadline::after(duration<unsigned>(3), clock).when(), start + 3s);
}

TEST(Deadline, PassesAtItsTimeNotBefore) {
  manual_clock clock;
  const auto d = deadline::after(10s, clock);
  EXPECT_EQ(d.on(), &clock);
  EXPECT_FALSE(d.passed());
  clock.advance(10s - 1ns);
  EXPECT_FALSE(d.passed());
  clock.advance(1ns);
  EXPECT_TRUE(d.passed());
  clock.advance(1h);
  EXPECT_TRUE(d.passed());
}

TEST(Deadline, SaturatesOnAnyClockAtAnyTime) {
  for (const auto start : {time_point::min() + 1h, time_point{} - 1h, time_point{},
                           time_point{} + 1h, time_point::max() - 1h}) {
    manual_clock clock(start);
    const auto at = start.time_since_epoch().count();
    EXPECT_FALSE(deadline::after(1s, clock).is_never()) << at;
    EXPECT_FALSE(deadline::after(1s, clock).passed()) << at;
    EXPECT_EQ(deadline::after(1s, clock).when(), start + 1s) << at;
    EXPECT_TRUE(deadline::after(0s, clock).passed()) << at;
    EXPECT_TRUE(deadline::after(-1s, clock).passed()) << at;
    EXPECT_TRUE(deadline::after(std::chrono::hours::max(), clock).is_never()) << at;
  }
  manual_clock late(time_point::max() - 1h);
  EXPECT_TRUE(deadline::after(1h, late).is_never());
  EXPECT_TRUE(deadline::after(2h, late).is_never());
}

TEST(Deadline, ATimePointOfTheSteadyClockIsNotConverted) {
  const auto when = steady_clock::now() + 5s;
  EXPECT_EQ(deadline::at(when).when(), when);
  EXPECT_EQ(deadline::at(when).on(), nullptr);
  EXPECT_TRUE(deadline::at(steady_clock::now()).passed());
  EXPECT_TRUE(deadline::at(time_point{}).passed());
  EXPECT_TRUE(deadline::at(time_point::min()).passed());
  EXPECT_FALSE(deadline::at(time_point::max()).passed());
  using coarse = std::chrono::time_point<steady_clock, std::chrono::hours>;
  EXPECT_TRUE(deadline::at(coarse::max()).is_never());
  EXPECT_TRUE(deadline::at(coarse::min()).passed());
}

TEST(Deadline, ATimePointOfAnotherClockIsMeasuredAgainstThatClock) {
  EXPECT_TRUE(deadline::at(system_clock::now()).passed());
  EXPECT_TRUE(deadline::at(system_clock::now() - 1h).passed());
  EXPECT_TRUE(deadline::at(system_clock::time_point::min()).passed());
  EXPECT_FALSE(deadline::at(system_clock::now() + 1h).passed());
  // Either clock may overflow first, in about two hundred years: it has not passed in either case.
  EXPECT_FALSE(deadline::at(system_clock::time_point::max()).passed());
  using days = std::chrono::time_point<system_clock, std::chrono::days>;
  EXPECT_TRUE(deadline::at(days::max()).is_never());
  EXPECT_TRUE(deadline::at(days::min()).passed());

  const auto before = steady_clock::now();
  const auto d = deadline::at(system_clock::now() + 1h);
  // The two clocks are read at different moments, so the result may differ a little.
  EXPECT_GT(d.when(), before + 59min);
  EXPECT_LT(d.when(), steady_clock::now() + 61min);
}

TEST(Deadline, AtATimeOfAManualClock) {
  manual_clock clock;
  const auto d = deadline::at(clock.now() + 1min, clock);
  EXPECT_FALSE(d.passed());
  clock.advance(1min);
  EXPECT_TRUE(d.passed());
  EXPECT_TRUE(deadline::at(time_point::max(), clock).is_never());
  EXPECT_TRUE(deadline::at(time_point::min(), clock).passed());
}

}  // namespace
}  // namespace deadline_test
