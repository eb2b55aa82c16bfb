// ./bench forkjoin: the cost of a fork and join, with one thread for each core.
//
// Every contender has its own file in this folder. The bar is the project's target.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("forkjoin");
  s.declare({.name = "fib",
             .summary = "fib(27) without a cutoff: each call forks one and calls the other",
             .unit = "ns/fork",
             .direction = better::lower,
             .bars = {at_most(0.667, "tbb")}});
  return s.run(argc, argv);
}
