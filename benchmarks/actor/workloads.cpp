#include "benchmarks/actor/workloads.hpp"

#include <cmath>

namespace sluice::bench::savina {

double compute() {
  double angle = 37.2;
  keep(angle);  // prevents constant folding
  const double sine = std::sin(angle);
  return sine * sine;
}

transfer transfer_picker::next() {
  const std::uint64_t payer = random_() % (accounts / 10 * 8);
  const std::uint64_t payee = payer + 1 + random_() % (accounts - 1 - payer);
  return {.payer = payer, .payee = payee, .amount = 1 + random_() % 1000};
}

}  // namespace sluice::bench::savina
