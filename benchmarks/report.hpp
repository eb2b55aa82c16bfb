#pragma once

// Formats the numbers of a run as tables, ratios, bars and JSON.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

double median(std::vector<double> values);

// "20.1 M", "13.4 k", "0.42": about three significant digits, for tables.
std::string format_value(double value);

enum class verdict { met, not_met, not_measured };

// Returns `not_measured` if one of the two contenders of the bar did not run.
verdict judge(const bar& claim, const scoreboard& board);

void print_board(std::ostream& out, std::string_view bench, const scoreboard& board);

// Prints one line for each bar; returns the number of bars that were not met.
int print_bars(std::ostream& out, const std::vector<scoreboard>& boards);

// [{"bench","workload","who","value","unit","better"}...]; value is the median.
void write_json(std::ostream& out, std::string_view bench, const std::vector<scoreboard>& boards);

// Prints the machine and the build.
void print_environment(std::ostream& out);

// Measures how many cores other processes have used since construction. A table is marked if they
// used more than this: threads that share two cores with a compiler are scheduled differently.
inline constexpr double noisy_cores = 0.1;

class bystanders {
 public:
  bystanders();
  double cores() const;

 private:
  std::chrono::steady_clock::time_point since_;
  seconds busy_;  // CPU time of the whole machine at construction
  seconds own_;   // of this process and its ended children
};

}  // namespace sluice::bench
