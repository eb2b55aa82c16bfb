// ./bench queue: bounded blocking queues of 8-byte items, from sixteen threads down to two.
//
// Every contender has its own file in this folder. The bars are the project's targets.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("queue");
  s.declare({.name = "8P8C",
             .summary = "8 producers, 8 consumers, capacity 1024, blocking push and pop",
             .unit = "items/s",
             .bars = {at_least(10, "std"), at_least(20, "tbb"), at_least(1, "go")}});
  s.declare({.name = "4P4C",
             .summary = "4 producers, 4 consumers, capacity 1024, blocking push and pop",
             .unit = "items/s"});
  s.declare({.name = "2P2C",
             .summary = "2 producers, 2 consumers, capacity 1024, blocking push and pop",
             .unit = "items/s"});
  s.declare({.name = "1P1C",
             .summary = "1 producer, 1 consumer, capacity 1024, blocking push and pop",
             .unit = "items/s",
             .bars = {at_least(3, "std"), at_least(1, "moodycamel", "sluice_spsc")}});
  s.declare({.name = "pingpong",
             .summary = "2 threads, 2 queues of capacity 1, one ball: round trips",
             .unit = "round trips/s",
             .bars = {at_least(5, "std")}});
  s.declare({.name = "idle_cpu_ms",
             .summary = "CPU time of 8 consumers blocked in pop() on an empty queue for 2 s",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(1)},
             .repetitions_max = 3});
  return s.run(argc, argv);
}
