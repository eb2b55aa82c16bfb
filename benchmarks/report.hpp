#pragma once

// Turns the numbers of a run into what people and programs read: tables, ratios, bars, JSON.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

double median(std::vector<double> values);

// "20.1 M", "13.4 k", "0.42": three significant digits or so, as a table wants them.
std::string format_value(double value);

enum class verdict { met, not_met, not_measured };

// `not_measured` when one of the two contenders of the bar did not run.
verdict judge(const bar& claim, const scoreboard& board);

void print_board(std::ostream& out, std::string_view bench, const scoreboard& board);

// Prints one line a bar; returns how many were not met.
int print_bars(std::ostream& out, const std::vector<scoreboard>& boards);

// [{"bench","workload","who","value","unit","better"}...]; value is the median.
void write_json(std::ostream& out, std::string_view bench, const std::vector<scoreboard>& boards);

// The machine and the build that the numbers belong to.
void print_environment(std::ostream& out);

// How many cores' worth of CPU the rest of the machine used since this was constructed. Threads
// that must share two cores with a compiler are scheduled quite differently from threads that
// have them alone, so a table says when that was so.
inline constexpr double noisy_cores = 0.1;

class bystanders {
 public:
  bystanders();
  double cores() const;

 private:
  std::chrono::steady_clock::time_point since_;
  seconds busy_;  // by then: of the whole machine
  seconds own_;   // by then: of this process and its children that ended
};

}  // namespace sluice::bench
