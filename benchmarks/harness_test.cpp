#include <gtest/gtest.h>
#include <atomic>
#include <iostream>
#include <sstream>
#include <thread>

#include "benchmarks/child_process.hpp"
#include "benchmarks/report.hpp"
#include "benchmarks/threads.hpp"

namespace sluice::bench::harness_test {
namespace {

scoreboard board_of(better direction, std::vector<bar> bars, std::vector<contender> contenders) {
  return {.spec = {.name = "w",
                   .summary = "summary",
                   .unit = "ns",
                   .direction = direction,
                   .bars = std::move(bars)},
          .contenders = std::move(contenders)};
}

contender ran(std::string who, std::vector<double> values) {
  return {.who = std::move(who), .run = nullptr, .values = std::move(values)};
}

TEST(bench_report_test, MedianOfAnOddCountIsTheMiddleAndOfAnEvenCountTheMeanOfTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(bench_report_test, ValuesAreShortenedForATable) {
  EXPECT_EQ(format_value(20'123'456), "20.1 M");
  EXPECT_EQ(format_value(2'012'345), "2.01 M");
  EXPECT_EQ(format_value(13'449), "13.4 k");
  EXPECT_EQ(format_value(325.52), "325.5");
  EXPECT_EQ(format_value(0.0244), "0.024");
}

TEST(bench_report_test, ABarIsJudgedOnMedians) {
  const scoreboard board =
      board_of(better::higher, {}, {ran("sluice", {100, 1, 40}), ran("std", {4, 4, 90})});
  EXPECT_EQ(judge(at_least(10, "std"), board), verdict::met);
  EXPECT_EQ(judge(at_least(10.1, "std"), board), verdict::not_met);
  EXPECT_EQ(judge(at_most(10, "std"), board), verdict::met);
  EXPECT_EQ(judge(at_most(9.9, "std"), board), verdict::not_met);
  EXPECT_EQ(judge(below(40), board), verdict::not_met);
  EXPECT_EQ(judge(below(40.1), board), verdict::met);
  EXPECT_EQ(judge(above(40), board), verdict::not_met);
  EXPECT_EQ(judge(above(39.9), board), verdict::met);
}

TEST(bench_report_test, ABarWhosePeerDidNotRunIsNotMetNorMissed) {
  const scoreboard board = board_of(better::higher, {at_least(1, "go")}, {ran("sluice", {1})});
  EXPECT_EQ(judge(board.spec.bars[0], board), verdict::not_measured);
  std::ostringstream out;
  EXPECT_EQ(print_bars(out, {board}), 0);
  EXPECT_NE(out.str().find("not measured"), std::string::npos);
}

TEST(bench_report_test, MissedBarsAreCountedAndMarked) {
  const scoreboard board = board_of(better::lower, {below(30), at_most(1.3, "std")},
                                    {ran("sluice", {31}), ran("std", {20})});
  std::ostringstream out;
  EXPECT_EQ(print_bars(out, {board}), 2);
  EXPECT_NE(out.str().find("NOT met: 31.0 ns"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("NOT met: 1.55x"), std::string::npos) << out.str();
}

TEST(bench_report_test, RatiosCompareSluiceWithAllOthers) {
  std::ostringstream out;
  print_board(
      out, "b",
      board_of(better::higher, {},
               {ran("sluice", {24}), ran("sluice_spsc", {48}), ran("std", {2}), ran("go", {12})}));
  EXPECT_NE(out.str().find("sluice is 12.0x std, 2.00x go\n"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("sluice_spsc is 24.0x std, 4.00x go\n"), std::string::npos);
}

TEST(bench_report_test, DistantCoresAreReported) {
  scoreboard board = board_of(better::higher, {}, {ran("sluice", {24})});
  const auto text = [&] {
    std::ostringstream out;
    print_board(out, "b", board);
    return out.str();
  };
  board.line_trips = {50, 60, 90};
  EXPECT_EQ(text().find("FAR APART"), std::string::npos);
  board.line_trips = {50, 345, 60};
  EXPECT_NE(text().find("FAR APART: a cache line took 50 to 345 ns"), std::string::npos) << text();
}

TEST(bench_report_test, JsonHoldsOneObjectAContenderWithItsMedian) {
  std::ostringstream out;
  write_json(out, "sync",
             {board_of(better::lower, {}, {ran("sluice", {1, 2, 3}), ran("std", {12345678.9})})});
  EXPECT_EQ(out.str(),
            "[\n"
            R"(  {"bench": "sync", "workload": "w", "who": "sluice", "value": 2.000, )"
            R"("unit": "ns", "better": "lower"})"
            ",\n"
            R"(  {"bench": "sync", "workload": "w", "who": "std", "value": 12345679, )"
            R"("unit": "ns", "better": "lower"})"
            "\n]\n");
}

TEST(bench_harness_test, AMeasureRelatesTheOperationsToTheTimeTheyReallyTook) {
  settings s;
  s.run_time = seconds(0.5);
  const timed_run run = [](seconds duration) { return tally{1000, 4 * duration}; };
  EXPECT_DOUBLE_EQ(operations_per_second(run)(s), 500);
  EXPECT_DOUBLE_EQ(nanoseconds_per_operation(run)(s), 2e6);
}

TEST(bench_harness_test, ThreadsRunUntilTheClockEndsAndTheirOperationsAreAddedUp) {
  std::atomic<int> ended = 0;
  const tally result = run_threads(seconds(0.01), 5, [&](int i, const run_clock& clock) {
    while (!clock.has_ended()) std::this_thread::yield();
    ++ended;
    return static_cast<std::uint64_t>(i);
  });
  EXPECT_EQ(ended, 5);
  EXPECT_EQ(result.operations, 10u);
  EXPECT_GE(result.took, seconds(0.01));
}

TEST(bench_harness_test, AChildReportsOneNumber) {
  EXPECT_EQ(run_child({"echo", "0.25"}), 0.25);
}

TEST(bench_harness_test, AChildThatFailsOrPrintsNoNumberFailsTheBench) {
  EXPECT_EXIT(run_child({"false"}), ::testing::ExitedWithCode(3), "ended with an error");
  EXPECT_EXIT(run_child({"echo", "soon"}), ::testing::ExitedWithCode(3), "printed 'soon");
  EXPECT_EXIT(run_child({"no-such-program-anywhere"}), ::testing::ExitedWithCode(3),
              "cannot start no-such-program-anywhere");
}

TEST(bench_harness_test, AWrongChecksumFailsTheBench) {
  EXPECT_EXIT(expect_equal(1, 2, "sum"), ::testing::ExitedWithCode(3), "sum: got 1, expected 2");
}

TEST(bench_harness_test, AFailureRunsTheLiveCleanUps) {
  const auto fails = [] {
    {
      const on_failure gone([] { std::cerr << "gone"; });
    }
    const on_failure lives([] { std::cerr << "cleaned up"; });
    fail("why");
  };
  EXPECT_EXIT(fails(), ::testing::ExitedWithCode(3), "why\ncleaned up$");
}

TEST(bench_harness_test, AContenderOfNoWorkloadAndATwinFailTheBench) {
  suite s("x");
  s.declare({.name = "w", .summary = "", .unit = "ns"});
  s.add("w", "std", nullptr);
  EXPECT_EXIT(s.add("w", "std", nullptr), ::testing::ExitedWithCode(3), "std is twice");
  EXPECT_EXIT(s.add("v", "std", nullptr), ::testing::ExitedWithCode(3), "does not exist: v");
}

}  // namespace
}  // namespace sluice::bench::harness_test
