// ./bench executor: pools of as many threads as there are cores.
//
// Every contender has its own file beside this one. The bars are what the project promises.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("executor");
  s.declare({.name = "submit",
             .about = "1 M empty functions submitted by one thread, until all have run",
             .unit = "functions/s",
             .bars = {at_least(2, "tbb"), at_least(1, "java")}});
  s.declare({.name = "idle_cpu_ms",
             .about = "CPU time of a pool of 16 threads that has nothing to do for 2 s",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(1)},
             .repetitions_max = 3});
  return s.run(argc, argv);
}
