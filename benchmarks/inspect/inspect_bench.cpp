// ./bench inspect: the cost of inspect, on the workloads of ./bench queue and on locks.
//
// `sluice` is with inspect on, `off` without: one run in turns of 10 ms (in_turns.hpp), because two
// equal runs differ by more than the cost. `watched` is a separate run, with a watchdog that checks
// once a second.
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/inspect/in_turns.hpp"
#include "benchmarks/queue/hand_over.hpp"
#include "benchmarks/threads.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/mutex.hpp"

using namespace sluice::bench;

namespace {

using queue = seen_queue<sluice::bounded_queue<std::uint64_t>>;
using ring = seen_queue<sluice::spsc_ring<std::uint64_t>>;

measure watched(const timed_run& run, measure (*as)(timed_run) = operations_per_second) {
  return as([run](seconds duration) {
    const sluice::inspect::watchdog dog({.inspecting = {.lock_order = false}});
    return run(duration);
  });
}

void add_queues(suite& s, const workload& load, const timed_run& run) {
  s.declare(load);
  const in_turns both(run);
  s.add(load.name, "sluice", both.with_inspect());
  s.add(load.name, "watched", watched(run));
  s.add(load.name, "off", both.without());
}

tally lock_and_unlock(seconds duration) {
  sluice::mutex m;
  return run_threads(duration, {[&](const run_clock& clock) {
                       std::uint64_t done = 0;
                       while (!clock.has_ended()) {
                         for (int i = 0; i < 100; ++i) {
                           const std::lock_guard hold(m);
                           keep(m);
                         }
                         done += 100;
                       }
                       return done;
                     }});
}

tally both_ways(tally round_trips) {
  return {2 * round_trips.operations, round_trips.took};
}

}  // namespace

int main(int argc, char** argv) {
  suite s("inspect");
  const std::vector<bar> bars = {at_least(0.98, "off")};
  for (const int n : {8, 4, 2, 1}) {
    const auto many = std::to_string(n);
    add_queues(s,
               {.name = many + "P" + many + "C",
                .summary = many + " producers and consumers, as in ./bench queue",
                .unit = "items/s",
                .bars = bars},
               [n](seconds duration) {
                 return hand_over<queue>({.producers = n, .consumers = n}, duration);
               });
  }
  add_queues(
      s,
      {.name = "1P1C_ring",
       .summary = "1 producer, 1 consumer, through an spsc_ring",
       .unit = "items/s",
       .bars = bars},
      [](seconds duration) { return hand_over<ring>({.producers = 1, .consumers = 1}, duration); });
  add_queues(s,
             {.name = "pingpong",
              .summary = "2 threads, 2 queues of capacity 1, one ball: each way counts",
              .unit = "items/s",
              .bars = bars},
             [](seconds duration) { return both_ways(ping_pong<queue>(duration)); });
  s.declare({.name = "mutex",
             .summary = "a mutex locked and unlocked by one thread",
             .unit = "ns",
             .direction = better::lower});
  s.add("mutex", "sluice", nanoseconds_per_operation([](seconds duration) {
          const sluice::inspect::enabled on({.lock_order = false});
          return lock_and_unlock(duration);
        }));
  s.add("mutex", "watched", watched(lock_and_unlock, nanoseconds_per_operation));
  s.add("mutex", "off", nanoseconds_per_operation(lock_and_unlock));
  return s.run(argc, argv);
}
