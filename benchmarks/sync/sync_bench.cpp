// ./bench sync: the cost of the primitives, alone and contended, beside those of std and the peers.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("sync");
  s.declare({.name = "mutex_uncontended",
             .summary = "lock and unlock of an uncontended mutex",
             .unit = "ns",
             .direction = better::lower,
             .bars = {at_most(1.3, "std")}});
  s.declare({.name = "mutex_contended",
             .summary = "4 threads: lock, increment, unlock, some 20 ns of work outside",
             .unit = "locks/s"});
  s.declare({.name = "try_push_try_pop",
             .summary = "one item into a queue and out again, one thread, no waiting",
             .unit = "ns",
             .direction = better::lower,
             .bars = {below(30)}});
  s.declare({.name = "shared_mutex_read",
             .summary = "4 threads that only take the shared lock",
             .unit = "locks/s"});
  s.declare({.name = "shared_mutex_mixed",
             .summary = "4 threads, one lock in 32 exclusive, the others shared",
             .unit = "locks/s"});
  s.declare({.name = "semaphore_uncontended",
             .summary = "acquire and release of a semaphore with a free permit",
             .unit = "ns",
             .direction = better::lower});
  s.declare({.name = "semaphore_contended",
             .summary = "4 threads, 2 permits: acquire, release, some 20 ns of work outside",
             .unit = "permits/s"});
  s.declare({.name = "barrier",
             .summary = "4 threads arrive and wait at a barrier, repeatedly",
             .unit = "phases/s"});
  s.declare({.name = "snapshot_read",
             .summary = "4 threads read a value that one of them replaces after every 1000 reads",
             .unit = "reads/s"});
  s.declare(
      {.name = "counter_add", .summary = "4 threads increment a counter", .unit = "additions/s"});
  s.declare({.name = "lazy_get",
             .summary = "access to a value that the first access has built",
             .unit = "ns",
             .direction = better::lower});
  return s.run(argc, argv);
}
