// ./bench channel: one consumer selects over four channels, each fed by its own producer.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("channel");
  s.declare({.name = "select-1",
             .summary = "4 producers, 4 channels of capacity 1, 1 consumer that selects",
             .unit = "items/s",
             .bars = {at_least(1, "go")}});
  s.declare({.name = "select-1024",
             .summary = "4 producers, 4 channels of capacity 1024, 1 consumer that selects",
             .unit = "items/s",
             .bars = {at_least(1, "go")}});
  return s.run(argc, argv);
}
