// ./bench future: the cost of continuations, when_all and tasks over channels.
//
// Every contender has its own file in this folder. The bars are the project's targets.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("future");
  s.declare({.name = "chain10",
             .summary = "a promise, ten continuations attached, the value set, the result taken: "
                        "continuations, built and run",
             .unit = "continuations/s",
             .bars = {at_least(4, "boost"), at_least(1, "java")}});
  s.declare({.name = "when_all_1000",
             .summary = "1000 promises, one future of all, each set, the result taken: futures",
             .unit = "futures/s",
             .bars = {at_least(4, "boost"), at_least(1, "java")}});
  s.declare({.name = "task_pingpong",
             .summary = "two coroutines on a pool of all cores, two channels of capacity 1: there "
                        "and back",
             .unit = "round trips/s",
             .bars = {at_least(1, "go")}});
  return s.run(argc, argv);
}
