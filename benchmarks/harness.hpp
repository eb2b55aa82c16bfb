#pragma once

// Runs contenders side by side and says who is faster, by how much, and whether that is enough.
//
// A bench is a suite of workloads ("8P8C"). A workload has contenders ("sluice", "std", "go"),
// each a function that runs the workload once and returns one number. The suite runs every
// contender of a workload once per repetition, in an order that rotates, so that a machine which
// slows down for a second slows down everybody; then it prints medians, ratios, and the bars that
// the workload declares.
//
// Each contender lives in its own source file and adds itself with a `registration`, so that a
// peer whose package is absent is simply a file that was not compiled.
//
//     const registration added{[](suite& s) {
//         s.add("8P8C", "std", operations_per_second([](seconds duration) {
//             return hand_over<std_ring>({.producers = 8, .consumers = 8}, duration);
//         }));
//     }};
//
//     int main(int argc, char** argv) {
//         suite s("queue");
//         s.declare({.name = "8P8C", .about = "8 to 8 threads", .unit = "items/s",
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

// What the command line said. `run_time` is how long one repetition of one contender should take.
struct settings {
  unsigned repetitions = 7;
  seconds run_time{0.4};
  bool quick = false;    // a smoke run: everything is executed, nothing is worth quoting
  bool list = false;     // print the names and stop
  bool check = false;    // exit with 1 when a bar is not met
  bool patient = false;  // wait for quiet moments; repeat what others disturbed
  std::string filter;    // run only this workload
  std::string json_file;
};

// A claim that a workload must bear out, about medians of one run.
struct bar {
  enum class rule {
    at_least_times,  // who >= limit * against
    at_most_times,   // who <= limit * against
    below,           // who < limit, in the workload's unit
    above            // who > limit, likewise
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
  std::string about;  // one line under the table's title: what is measured
  std::string unit;
  better direction = better::higher;
  std::vector<bar> bars = {};
  unsigned repetitions_max = 1000;  // for a workload whose run cannot be made short
};

// Runs a workload once and returns the value in the workload's unit.
using measure = std::function<double(const settings&)>;

// What a run of a given duration came to.
struct tally {
  std::uint64_t operations;
  seconds took;
};
using timed_run = std::function<tally(seconds duration)>;

// Runs last for a given time and not for a given number of operations: a contender may do ten
// thousand operations a second or a hundred million, and the same one may change from one to the
// other when the scheduler moves a thread.
measure operations_per_second(timed_run run);
measure nanoseconds_per_operation(timed_run run);

struct contender {
  std::string who;
  measure run;
  std::vector<double> values = {};  // one per repetition
};

struct scoreboard {  // a workload, and how its contenders did
  workload what;
  std::vector<contender> contenders;
  double bystander_cores = 0;  // what other processes took while it ran
  // A cache line to another core and back, in ns, before each repetition.
  std::vector<double> line_trips = {};
};

class suite {
 public:
  explicit suite(std::string name);

  // Tables appear in the order of declaration.
  void declare(workload what);

  // The workload must have been declared; a contender appears once in each.
  void add(std::string_view workload_name, std::string who, measure run);

  // Adds every registered contender, runs what the command line asks for, prints and writes the
  // results. Returns the process's exit code.
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

// A contender that loses an item or cannot run makes every number of the run worthless: say so on
// stderr and end the process.
[[noreturn]] void fail(std::string_view why);

// What must happen even then, as nothing is destroyed: for as long as this lives.
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

void expect_equal(std::uint64_t actual, std::uint64_t expected, std::string_view what);

// Makes the compiler believe that `value` is used, so that the work behind it is not removed.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace sluice::bench
