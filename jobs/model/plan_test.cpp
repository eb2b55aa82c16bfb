#include "jobs/model/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jobs/model/detail/plan_words.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::plan_test {
namespace {

using namespace std::chrono_literals;
using outcome = plan::outcome;

// 8 workers of 10 ms: 800 jobs a second.
plan_request usual() {
  return {.base_per_second = 300,
          .burst_per_second = 2800,
          .burst_for = 10s,
          .compute = 2ms,
          .wait = 8ms,
          .cores = 2,
          .workers = 8};
}

plan made(const plan_request& asked) {
  auto p = make_plan(asked);
  EXPECT_TRUE(p) << p.error().message;
  return p ? *p : plan{};
}

std::string message_of(const plan_request& asked) {
  const auto p = make_plan(asked);
  if (p) return "";
  EXPECT_EQ(p.error().code, error_code::invalid);
  return p.error().message;
}

TEST(Plan, CapacityIsArrivalsMinusCompletions) {
  const plan p = made(usual());
  EXPECT_DOUBLE_EQ(p.service_per_second, 800);
  EXPECT_DOUBLE_EQ(p.arrivals, 28'000);
  EXPECT_DOUBLE_EQ(p.done_in_burst, 8'000);
  EXPECT_DOUBLE_EQ(p.peak, 20'000);
  EXPECT_EQ(p.peak_at, 10s);
  EXPECT_EQ(p.capacity, 25'000u);
  EXPECT_DOUBLE_EQ(p.utilisation, 0.375);
  EXPECT_DOUBLE_EQ(p.burst_utilisation, 3.5);
}

TEST(Plan, DrainsAtCompletionsMinusArrivals) {
  const plan p = made(usual());
  EXPECT_EQ(p.ends, outcome::drains);
  EXPECT_DOUBLE_EQ(p.drain->count(), 40);  // 20000 at 800 - 300 a second
  EXPECT_DOUBLE_EQ(p.longest_wait->count(), 25);
  EXPECT_EQ(p.verdict,
            "It drains: up to 20k jobs wait, and the queue is empty 40s after the burst.");
}

TEST(Plan, ThreadsAreCoresTimesOnePlusWaitByCompute) {
  EXPECT_EQ(made(usual()).threads, 10u);  // 2 x (1 + 8 / 2)
  plan_request busy = usual();
  busy.wait = 0ms;
  EXPECT_EQ(made(busy).threads, 2u);
}

TEST(Plan, TakesTheRecommendedThreadsWhenNoWorkersAreNamed) {
  plan_request asked = usual();
  asked.workers.reset();
  const plan p = made(asked);
  EXPECT_EQ(p.workers, 10u);
  EXPECT_DOUBLE_EQ(p.service_per_second, 1000);
  EXPECT_FALSE(p.limited_by_cores);
}

TEST(Plan, IsLimitedByTheCores) {
  plan_request asked = usual();
  asked.workers = 100;
  const plan p = made(asked);
  EXPECT_DOUBLE_EQ(p.service_per_second, 1000);
  EXPECT_TRUE(p.limited_by_cores);
}

TEST(Plan, FindsTheWorkersThatDrainInTime) {
  plan_request asked = usual();
  asked.workers.reset();
  asked.drain_within = 40s;
  const plan p = made(asked);
  EXPECT_EQ(p.workers, 8u);
  EXPECT_LE(p.drain->count(), 40.0 + 1e-6);
  asked.drain_within = 5s;
  EXPECT_EQ(message_of(asked),
            "--drain-within 5s needs 1.97k jobs a second, but 2 cores compute 1k: "
            "give more --cores or more time");
}

TEST(Plan, KeepsUpWhenTheBurstIsWithinTheService) {
  plan_request asked = usual();
  asked.burst_per_second = 800;
  const plan p = made(asked);
  EXPECT_EQ(p.ends, outcome::keeps_up);
  EXPECT_DOUBLE_EQ(p.peak, 0);
  EXPECT_EQ(p.drain, plan_seconds(0));
  EXPECT_EQ(p.capacity, 8u);  // one for each worker
  EXPECT_EQ(p.verdict,
            "It keeps up: 8 workers do 800 jobs a second, and arrivals never exceed that.");
}

TEST(Plan, ReportsThatItNeverDrains) {
  plan_request asked = usual();
  asked.base_per_second = 801;
  const plan over = made(asked);
  EXPECT_EQ(over.ends, outcome::overflows);
  EXPECT_EQ(over.drain, std::nullopt);
  EXPECT_EQ(over.longest_wait, std::nullopt);
  EXPECT_EQ(over.capacity, 0u);
  EXPECT_EQ(over.verdict,
            "It never drains: 801 jobs a second arrive at all times, and 8 workers do 800 jobs a "
            "second.");
  asked.base_per_second = 800;
  const plan level = made(asked);
  EXPECT_EQ(level.ends, outcome::stays_level);
  EXPECT_EQ(level.drain, std::nullopt);
  EXPECT_DOUBLE_EQ(level.longest_wait->count(), 25);
  EXPECT_EQ(level.capacity, 25'000u);
  EXPECT_DOUBLE_EQ(level.depth_at(1000s), 20'000);
}

TEST(Plan, KnowsTheDepthAtEveryTime) {
  const plan p = made(usual());
  EXPECT_DOUBLE_EQ(p.depth_at(-1s), 0);
  EXPECT_DOUBLE_EQ(p.depth_at(0s), 0);
  EXPECT_DOUBLE_EQ(p.depth_at(5s), 10'000);
  EXPECT_DOUBLE_EQ(p.depth_at(10s), 20'000);
  EXPECT_DOUBLE_EQ(p.depth_at(30s), 10'000);
  EXPECT_DOUBLE_EQ(p.depth_at(50s), 0);
  EXPECT_DOUBLE_EQ(p.depth_at(500s), 0);
  EXPECT_DOUBLE_EQ(p.span().count(), 50);
  const auto points = p.samples(11);
  ASSERT_EQ(points.size(), 11u);
  EXPECT_EQ(points.front().at, 0s);
  EXPECT_DOUBLE_EQ(points[2].depth, 20'000);
  EXPECT_DOUBLE_EQ(points.back().at.count(), 50);
  EXPECT_NEAR(points.back().depth, 0, 1e-6);
}

// A simulation in steps of one millisecond.
TEST(Plan, AgreesWithASimulation) {
  random dice(4);
  for (int i = 0; i < 200; ++i) {
    plan_request asked{.base_per_second = 1.0 * dice.below(1000),
                       .burst_for = 1ms * (1 + dice.below(5000)),
                       .compute = 1ms * (1 + dice.below(20)),
                       .wait = 1ms * dice.below(50),
                       .cores = 1 + dice.below(16),
                       .workers = 1 + dice.below(100)};
    asked.burst_per_second = asked.base_per_second + dice.below(5000);
    const plan p = made(asked);
    double depth = 0;
    double peak = 0;
    std::optional<double> empty_at;
    const double burst = asked.burst_for.count();
    for (int ms = 0; ms < 60'000 && !empty_at; ++ms) {
      const double t = ms / 1000.0;
      const double in = t < burst ? asked.burst_per_second : asked.base_per_second;
      depth = std::max(0.0, depth + (in - p.service_per_second) / 1000);
      if (t < burst) peak = std::max(peak, depth);
      if (t >= burst && depth <= 0) empty_at = t - burst;
    }
    SCOPED_TRACE(i);
    ASSERT_NEAR(p.peak, peak, 10 + peak / 100);
    if (p.drain && p.drain->count() < 50) {
      ASSERT_TRUE(empty_at);
      ASSERT_NEAR(p.drain->count(), *empty_at, 0.02 + *empty_at / 100);
    }
    if (!p.drain) {
      ASSERT_FALSE(empty_at && p.peak > 1);
    }
  }
}

TEST(Plan, ErrorsNameTheOption) {
  const auto with = [](auto change) {
    plan_request asked = usual();
    change(asked);
    return message_of(asked);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with([](auto& r) { r.base_per_second = -1; }),
            "--rate must be from 0 to 1000000000 jobs a second");
  EXPECT_NE(with([](auto& r) { r.base_per_second = nan; }), "");
  EXPECT_EQ(with([](auto& r) { r.burst_per_second = 1e10; }),
            "--burst must be from 0 to 1000000000 jobs a second");
  EXPECT_EQ(with([](auto& r) { r.burst_per_second = 1; }),
            "--burst is the total rate during the burst: it must be at least --rate");
  EXPECT_EQ(with([](auto& r) { r.burst_for = -1s; }), "--for must be from 0 to 366 days");
  EXPECT_EQ(with([](auto& r) { r.compute = -1s; }), "--compute must be from 0 to 366 days");
  EXPECT_EQ(with([](auto& r) { r.wait = 9000h; }), "--wait must be from 0 to 366 days");
  EXPECT_EQ(with([](auto& r) { r.wait = r.compute = 0s; }),
            "--compute and --wait are both zero: a job must take some time");
  EXPECT_EQ(with([](auto& r) { r.cores = 0; }), "--cores must be from 1 to 1000000");
  EXPECT_EQ(with([](auto& r) { r.workers = 0; }), "--workers must be from 1 to 10000000");
  EXPECT_EQ(with([](auto& r) { r.drain_within = 1s; }),
            "--workers and --drain-within exclude each other: give one of them");
  EXPECT_EQ(with([](auto& r) { r.workers.reset(), r.drain_within = 0s; }),
            "--drain-within must be from 1ms to 366 days");
  EXPECT_EQ(with([](auto& r) { r.headroom = -1; }), "--headroom must be from 0 to 100");
  EXPECT_EQ(
      with([](auto& r) { r.workers.reset(), r.compute = 0s; }),
      "--workers is required when --compute is zero: the cores then set no number of workers");
}

TEST(Plan, ReadsARate) {
  EXPECT_DOUBLE_EQ(*parse_rate("100/s"), 100);
  EXPECT_DOUBLE_EQ(*parse_rate("100"), 100);
  EXPECT_DOUBLE_EQ(*parse_rate("2.5k/s"), 2500);
  EXPECT_DOUBLE_EQ(*parse_rate("6000/m"), 100);
  EXPECT_DOUBLE_EQ(*parse_rate("1M/h"), 1e6 / 3600);
  EXPECT_DOUBLE_EQ(*parse_rate("86400/d"), 1);
  for (const char* wrong : {"", "x", "-1/s", "1/x", "1 /s", "1/s ", "nan", "inf", "1e5", "k/s"}) {
    const auto rate = parse_rate(wrong);
    ASSERT_FALSE(rate) << wrong;
    EXPECT_EQ(rate.error().message,
              "'" + std::string(wrong) +
                  "' is not a rate; write jobs per time: 100/s, 2.5k/s, 6000/m, 1M/h");
  }
  EXPECT_EQ(parse_rate("9999M/s").error().message, "a rate must be at most 1000000000/s");
}

TEST(Plan, DrawsTheDepthOverTime) {
  EXPECT_EQ(draw(made(usual()), {.columns = 58, .rows = 8}),
            "   20k ┤        ▃██▇▆▄▃▂▁\n"
            "       │      ▂▆██████████▆▅▄▃▂\n"
            "       │     ▅██████████████████▇▆▅▄▂▁\n"
            "   10k ┤   ▃███████████████████████████▇▆▄▃▂▁\n"
            "       │ ▂▆███████████████████████████████████▆▅▄▃▂\n"
            "       │▅███████████████████████████████████████████▇▆▅▄▂▁\n"
            "     0 └──────────────────────────────────────────────────\n"
            "        0s       10s (burst ends)                      50s\n");
}

TEST(Plan, DrawsWithinItsSizeForAllNumbers) {
  random dice(9);
  for (int i = 0; i < 500; ++i) {
    const double base = std::pow(10.0, dice.below(7));
    const plan p = made({.base_per_second = base,
                         .burst_per_second = base + std::pow(10.0, dice.below(7)),
                         .burst_for = plan_seconds(std::pow(10.0, dice.below(8)) / 1000),
                         .compute = 1ms * dice.below(50),
                         .wait = 1ms * (1 + dice.below(50)),
                         .cores = 1 + dice.below(64),
                         .workers = 1 + dice.below(10'000)});
    const chart_size size{.columns = dice.below(500), .rows = dice.below(120)};
    const std::string chart = draw(p, size);
    std::size_t lines = 0;
    std::size_t columns = 0;
    std::size_t widest = 0;
    for (const char c : chart) {
      if (c == '\n') {
        ++lines;
        widest = std::max(widest, columns);
        columns = 0;
      } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
        ++columns;
      }
    }
    ASSERT_LE(widest, std::clamp<std::size_t>(size.columns, 30, 400)) << chart;
    ASSERT_EQ(lines, std::clamp<std::size_t>(size.rows, 4, 100)) << chart;
    ASSERT_EQ(chart.find(" \n"), std::string::npos) << chart;
  }
}

TEST(PlanWords, AreShort) {
  using detail::short_duration;
  using detail::short_number;
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.5), "0.5");
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(999.7), "1k");
  EXPECT_EQ(short_number(12'500), "12.5k");
  EXPECT_EQ(short_number(3'400'000), "3.4M");
  EXPECT_EQ(short_number(100'000'000), "100M");
  EXPECT_EQ(short_duration(0s), "0s");
  EXPECT_EQ(short_duration(250ms), "250ms");
  EXPECT_EQ(short_duration(1500ms), "1.5s");
  EXPECT_EQ(short_duration(90s), "1m30s");
  EXPECT_EQ(short_duration(60s), "1m");
  EXPECT_EQ(short_duration(2h + 5min), "2h05m");
  EXPECT_EQ(short_duration(76h), "3d04h");
}

}  // namespace
}  // namespace sluice::jobs::plan_test
