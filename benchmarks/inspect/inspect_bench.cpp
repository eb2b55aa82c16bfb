// ./bench inspect: what it costs to have inspect on, on the workloads of ./bench queue and on
// locks.
//
// `sluice` is with inspect on, `watched` with a watchdog that looks once a second beside it, `off`
// the same without. They run in turn in one process.
#include <cstdint>
#include <mutex>
#include <string>

#include "benchmarks/harness.hpp"
#include "benchmarks/peers/sluice_queue.hpp"
#include "benchmarks/queue/hand_over.hpp"
#include "benchmarks/threads.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/sync/mutex.hpp"

using namespace sluice::bench;

namespace {

// The same run three times: with inspect on, with a watchdog as well, and without either.
void add(suite& s, const std::string& workload, const timed_run& run,
         measure (*as)(timed_run) = operations_per_second) {
  s.add(workload, "sluice", as([run](seconds duration) {
          const sluice::inspect::enabled on({.lock_order = false});
          return run(duration);
        }));
  s.add(workload, "watched", as([run](seconds duration) {
          const sluice::inspect::watchdog dog({.inspecting = {.lock_order = false}});
          return run(duration);
        }));
  s.add(workload, "off", as(run));
}

tally lock_and_unlock(seconds duration) {
  sluice::mutex m;
  return run_threads(duration, {[&](const run_clock& clock) {
                       std::uint64_t done = 0;
                       while (!clock.is_over()) {
                         for (int i = 0; i < 100; ++i) {
                           const std::lock_guard hold(m);
                           keep(m);
                         }
                         done += 100;
                       }
                       return done;
                     }});
}

tally pass_from_hand_to_hand(seconds duration) {
  return ping_pong<sluice_queue>(duration);
}

}  // namespace

int main(int argc, char** argv) {
  suite s("inspect");
  for (const int n : {8, 4, 2, 1}) {
    const auto name = std::to_string(n) + "P" + std::to_string(n) + "C";
    s.declare({.name = name,
               .about = std::to_string(n) + " producers and consumers, as in ./bench queue",
               .unit = "items/s",
               .bars = {at_least(0.98, "off")}});
    add(s, name, [n](seconds duration) {
      return hand_over<sluice_queue>({.producers = n, .consumers = n}, duration);
    });
  }
  s.declare({.name = "1P1C_ring",
             .about = "1 producer, 1 consumer, through an spsc_ring",
             .unit = "items/s",
             .bars = {at_least(0.98, "off")}});
  add(s, "1P1C_ring", [](seconds duration) {
    return hand_over<sluice_ring>({.producers = 1, .consumers = 1}, duration);
  });
  s.declare({.name = "pingpong",
             .about = "2 threads, 2 queues of capacity 1, one ball: round trips",
             .unit = "round trips/s",
             .bars = {at_least(0.98, "off")}});
  add(s, "pingpong", pass_from_hand_to_hand);
  s.declare({.name = "mutex",
             .about = "a mutex locked and unlocked by one thread",
             .unit = "ns",
             .direction = better::lower});
  add(s, "mutex", lock_and_unlock, nanoseconds_per_operation);
  return s.run(argc, argv);
}
