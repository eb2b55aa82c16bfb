#include "benchmarks/actor/workloads.hpp"

#include <cmath>

namespace sluice::bench::savina {

double compute() {
  double angle = 37.2;
  keep(angle);  // or it is computed by the compiler
  const double sine = std::sin(angle);
  return sine * sine;
}

transfer transfer_picker::next() {
  const std::uint64_t from = random_() % (accounts / 10 * 8);
  const std::uint64_t to = from + 1 + random_() % (accounts - 1 - from);
  return {.from = from, .to = to, .amount = 1 + random_() % 1000};
}

}  // namespace sluice::bench::savina
