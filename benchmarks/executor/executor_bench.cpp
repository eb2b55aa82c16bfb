// ./bench executor: pools of as many threads as there are cores.
//
// Every contender has its own file in this folder. The bars are the project's targets.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("executor");
  s.declare({.name = "submit",
             .summary = "1 M empty functions submitted by one thread, until all have run",
             .unit = "functions/s",
             .bars = {at_least(2, "tbb"), at_least(1, "java")}});
  s.declare({.name = "idle_cpu_ms",
             .summary = "CPU time of an idle pool of 16 threads in 2 s",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(1)},
             .repetitions_max = 3});
  return s.run(argc, argv);
}
