// `sluice`: bounded_queue. `sluice_spsc`: spsc_ring, where there is one producer and one consumer.
#include "benchmarks/peers/sluice_queue.hpp"
#include "benchmarks/queue/hand_over.hpp"
#include "benchmarks/queue/idle_cpu.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_many_to_many<sluice_queue>(s, "sluice");
  add_one_to_one<sluice_queue>(s, "sluice");
  add_one_to_one<sluice_ring>(s, "sluice_spsc");
  s.add("idle_cpu_ms", "sluice", idle_cpu_ms<sluice_queue>);
}};

}  // namespace
}  // namespace sluice::bench
