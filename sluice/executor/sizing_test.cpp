#include "sluice/executor/sizing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::sizing_test {
namespace {

using namespace std::chrono_literals;

TEST(recommended_threads, IsCoresTimesOnePlusWaitOverCompute) {
  EXPECT_EQ(recommended_threads(4, 0.0, 1.0), 4U);
  EXPECT_EQ(recommended_threads(4, 1.0, 1.0), 8U);
  EXPECT_EQ(recommended_threads(8, 50.0, 5.0), 88U);
  EXPECT_EQ(recommended_threads(2, 9.0, 1.0), 20U);
}

TEST(recommended_threads, TakesTimesInAnyUnits) {
  EXPECT_EQ(recommended_threads(4, 50ms, 5ms), 44U);
  EXPECT_EQ(recommended_threads(4, 1s, 100ms), 44U);
  EXPECT_EQ(recommended_threads(1, 500us, 1ms), 2U) << "rounded to the nearest";
}

TEST(recommended_threads, RoundsToTheNearest) {
  EXPECT_EQ(recommended_threads(4, 0.1, 1.0), 4U);
  EXPECT_EQ(recommended_threads(4, 0.2, 1.0), 5U);
}

TEST(recommended_threads, HasAnAnswerForEveryInput) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(recommended_threads(0, 1.0, 1.0), 2U) << "no cores count as one";
  EXPECT_EQ(recommended_threads(4, 0.0, 0.0), 4U) << "no time at all";
  EXPECT_EQ(recommended_threads(4, -1.0, 1.0), 4U) << "a negative time counts as zero";
  EXPECT_EQ(recommended_threads(4, -1.0, -1.0), 4U);
  EXPECT_EQ(recommended_threads(4, nan, 1.0), 4U) << "not-a-number counts as zero";
  EXPECT_EQ(recommended_threads(4, nan, nan), 4U);
  EXPECT_EQ(recommended_threads(4, inf, inf), 4U);
  EXPECT_EQ(recommended_threads(4, 1.0, inf), 4U);
  EXPECT_EQ(recommended_threads(4, 1.0, 0.0), recommended_threads_max) << "nothing but waiting";
  EXPECT_EQ(recommended_threads(4, 1.0, -1.0), recommended_threads_max);
  EXPECT_EQ(recommended_threads(4, 1.0, nan), recommended_threads_max);
  EXPECT_EQ(recommended_threads(4, inf, 1.0), recommended_threads_max);
  EXPECT_EQ(recommended_threads(4, huge, 1e-300), recommended_threads_max);
  EXPECT_EQ(recommended_threads(std::numeric_limits<std::size_t>::max(), 0.0, 1.0),
            recommended_threads_max);
  EXPECT_EQ(recommended_threads(4, std::chrono::hours::max(), std::chrono::nanoseconds(1)),
            recommended_threads_max);
}

seam::thread_times took(std::chrono::nanoseconds wall, std::chrono::nanoseconds computing,
                        std::chrono::nanoseconds runnable = 0ns) {
  return {.wall = wall, .computing = computing, .runnable = runnable};
}

TEST(sizing_meter, BeginsWithAsManyAsCores) {
  EXPECT_EQ(sizing::meter({.cores = 4}, 1, 16).threads(), 4U);
  EXPECT_EQ(sizing::meter({.cores = 4}, 6, 16).threads(), 6U);
  EXPECT_EQ(sizing::meter({.cores = 4}, 1, 2).threads(), 2U);
  EXPECT_EQ(sizing::meter({}, 1, 1U << 16).threads(), seam::usable_cpus().size());
}

TEST(sizing_meter, RaisesAtOnceAndLowersAfterAWindowOfAgreement) {
  sizing::meter meter({.cores = 2, .window = 3}, 1, 100);
  EXPECT_EQ(meter.add(took(10ms, 1ms)), 20U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(meter.add(took(10ms, 1ms)), 20U);
  EXPECT_EQ(meter.add(took(10ms, 10ms)), 20U);
  EXPECT_EQ(meter.add(took(10ms, 10ms)), 20U);
  EXPECT_LT(meter.add(took(10ms, 10ms)), 20U) << "the third in a row";
}

TEST(sizing_meter, ARequestForMoreThreadsEndsARowOfRequestsForFewer) {
  sizing::meter meter({.cores = 1, .window = 2}, 1, 100);
  EXPECT_EQ(meter.add(took(10ms, 1ms)), 10U);
  EXPECT_EQ(meter.add(took(10ms, 10ms)), 10U);
  EXPECT_EQ(meter.add(took(1s, 1ms)), 100U);
  EXPECT_EQ(meter.add(took(10ms, 10ms)), 100U);
}

TEST(sizing_meter, TimeWithoutAProcessorIsNotWaiting) {
  sizing::meter meter({.cores = 2, .window = 1}, 1, 100);
  EXPECT_EQ(meter.add(took(100ms, 10ms, 90ms)), 2U) << "it was runnable, not waiting";
  EXPECT_EQ(meter.add(took(100ms, 10ms, 80ms)), 4U);
}

TEST(sizing_meter, TimesThatContradictEachOtherCountAsNone) {
  sizing::meter meter({.cores = 2, .window = 1}, 1, 100);
  EXPECT_EQ(meter.add(took(1ms, 2ms)), 2U) << "clocks of different grain";
  EXPECT_EQ(meter.add(took(-1ms, -2ms)), 100U) << "a millisecond passed without computing";
  EXPECT_EQ(meter.add(took(0ms, 0ms)), 2U);
}

TEST(sizing_meter, AveragesByTimeNotByNumber) {
  sizing::meter meter({.cores = 1, .window = 1000}, 1, 100);
  // A hundred short functions that compute, and one long wait, as long as all of them together.
  for (int i = 0; i < 100; ++i) meter.add(took(1ms, 1ms));
  EXPECT_EQ(meter.add(took(100ms, 0ms)), 2U);
  EXPECT_NEAR(static_cast<double>(meter.wait().count()),
              static_cast<double>(meter.compute().count()), 1e5);
}

TEST(sizing_meter, MeasuresLongFunctionsEachTimeAndShortOnesSeldom) {
  EXPECT_EQ(sizing::meter::skip_after(1s), 0U);
  EXPECT_EQ(sizing::meter::skip_after(400us), 1U);
  EXPECT_EQ(sizing::meter::skip_after(4us), 100U);
  EXPECT_EQ(sizing::meter::skip_after(1ns), 1023U);
  EXPECT_EQ(sizing::meter::skip_after(0ns), 1023U);
  EXPECT_EQ(sizing::meter::skip_after(-1s), 1023U);
}

}  // namespace
}  // namespace sluice::sizing_test
