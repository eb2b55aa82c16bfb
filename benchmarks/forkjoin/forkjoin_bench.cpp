// ./bench forkjoin: what a fork and join costs, on as many threads as there are cores.
//
// Every contender has its own file beside this one. The bar is what the project promises.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("forkjoin");
  s.declare({.name = "fib",
             .about = "fib(27) without a cutoff: each call forks one and calls the other",
             .unit = "ns/fork",
             .direction = better::lower,
             .bars = {at_most(0.667, "tbb")}});
  return s.run(argc, argv);
}
