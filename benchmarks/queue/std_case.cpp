// `std`: std::mutex and two std::condition_variables around a ring.
#include "benchmarks/peers/std_ring.hpp"
#include "benchmarks/queue/hand_over.hpp"
#include "benchmarks/queue/idle_cpu.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_many_to_many<std_ring>(s, "std");
  add_one_to_one<std_ring>(s, "std");
  s.add("idle_cpu_ms", "std", idle_cpu_ms<std_ring>);
}};

}  // namespace
}  // namespace sluice::bench
