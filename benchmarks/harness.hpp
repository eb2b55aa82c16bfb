#pragma once

// Runs contenders side by side, prints their medians and ratios, and checks the declared bars.
//
// A bench is a suite of workloads ("8P8C"). A workload has contenders ("sluice", "std", "go"),
// each a function that runs the workload once and returns one number. The suite runs every
// contender of a workload once per repetition, in an order that rotates, so that a temporary
// slowdown of the machine affects all contenders.
//
// Each contender has its own source file and adds itself with a `registration`. The file of a peer
// whose package is missing is not compiled.
//
//     const registration added{[](suite& s) {
//         s.add("8P8C", "std", operations_per_second([](seconds duration) {
//             return hand_over<std_ring>({.producers = 8, .consumers = 8}, duration);
//         }));
//     }};
//
//     int main(int argc, char** argv) {
//         suite s("queue");
//         s.declare({.name = "8P8C", .summary = "8 to 8 threads", .unit = "items/s",
//                    .bars = {at_least(10, "std")}});
//         return s.run(argc, argv);
//     }

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bench {

using seconds = std::chrono::duration<double>;

enum class better { higher, lower };

// The command line. `run_time` is the intended duration of one repetition of one contender.
struct settings {
  unsigned repetitions = 7;
  seconds run_time{0.4};
  bool quick = false;    // a smoke run: executes everything, measures nothing
  bool list = false;     // print the names and stop
  bool check = false;    // exit with 1 if a bar is not met
  bool patient = false;  // wait for an idle machine; repeat runs that other processes disturbed
  std::string filter;    // run only this workload
  std::string json_file;
};

// A target for the medians of one run.
struct bar {
  enum class rule {
    at_least_times,  // contender >= limit * against
    at_most_times,   // contender <= limit * against
    below,           // contender < limit, in the workload's unit
    above            // contender > limit, in the workload's unit
  };
  rule kind;
  double limit;
  std::string against;  // empty for `below` and `above`
  std::string who;
};

bar at_least(double times, std::string against, std::string who = "sluice");
bar at_most(double times, std::string against, std::string who = "sluice");
bar below(double limit, std::string who = "sluice");
bar above(double limit, std::string who = "sluice");

struct workload {
  std::string name;
  std::string summary;  // one line under the table's title: the load and the measured quantity
  std::string unit;
  better direction = better::higher;
  std::vector<bar> bars = {};
  unsigned repetitions_max = 1000;  // lower for a workload with long runs
};

// Runs a workload once and returns the value in the workload's unit.
using measure = std::function<double(const settings&)>;

// The result of a run.
struct tally {
  std::uint64_t operations;
  seconds took;
};
using timed_run = std::function<tally(seconds duration)>;

// Runs have a given duration and not a given number of operations: the rates of contenders differ
// by a factor of ten thousand, and the rate of one contender can change as much when the scheduler
// moves a thread.
measure operations_per_second(timed_run run);
measure nanoseconds_per_operation(timed_run run);

struct contender {
  std::string who;
  measure run;
  std::vector<double> values = {};  // one per repetition
};

struct scoreboard {  // a workload and the results of its contenders
  workload spec;
  std::vector<contender> contenders;
  double bystander_cores = 0;  // used by other processes during the runs
  // The round trip of a cache line to another core before each repetition, in ns.
  std::vector<double> line_trips = {};
};

class suite {
 public:
  explicit suite(std::string name);

  // Tables appear in the order of declaration.
  void declare(workload declared);

  // The workload must have been declared; a contender appears once in each.
  void add(std::string_view workload_name, std::string who, measure run);

  // Adds every registered contender, runs the selected workloads, prints and writes the results.
  // Returns the process's exit code.
  int run(int argc, char** argv);

 private:
  std::string name_;
  std::vector<scoreboard> boards_;
};

// Define one at namespace scope in a contender's source file.
class registration {
 public:
  explicit registration(void (*add)(suite&));
};

// Prints the reason on stderr and ends the process. Called if a contender loses an item or cannot
// run, which invalidates all numbers of the run.
[[noreturn]] void fail(std::string_view why);

// A clean-up that fail() runs while this object lives, since fail() calls no destructors.
class on_failure {
 public:
  explicit on_failure(std::function<void()> clean_up);
  ~on_failure();
  on_failure(const on_failure&) = delete;
  on_failure& operator=(const on_failure&) = delete;

 private:
  std::function<void()> clean_up_;

  friend void fail(std::string_view why);
};

void expect_equal(std::uint64_t actual, std::uint64_t expected, std::string_view quantity);

// Prevents the compiler from removing the computation of `value`.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace sluice::bench
