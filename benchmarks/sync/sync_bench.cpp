// ./bench sync: what the primitives cost, alone and contended, next to those of std and the peers.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("sync");
  s.declare({.name = "mutex_uncontended",
             .about = "lock and unlock of a mutex that nobody else wants",
             .unit = "ns",
             .direction = better::lower,
             .bars = {at_most(1.3, "std")}});
  s.declare({.name = "mutex_contended",
             .about = "4 threads: lock, increment, unlock, some 20 ns of work outside",
             .unit = "locks/s"});
  s.declare({.name = "try_push_try_pop",
             .about = "one item into a queue and out again, one thread, no waiting",
             .unit = "ns",
             .direction = better::lower,
             .bars = {below(30)}});
  s.declare({.name = "shared_mutex_read",
             .about = "4 threads that only take the shared lock",
             .unit = "locks/s"});
  s.declare({.name = "shared_mutex_mixed",
             .about = "4 threads, one lock in 32 exclusive, the others shared",
             .unit = "locks/s"});
  s.declare({.name = "semaphore_uncontended",
             .about = "acquire and release of a semaphore with a permit to spare",
             .unit = "ns",
             .direction = better::lower});
  s.declare({.name = "semaphore_contended",
             .about = "4 threads, 2 permits: acquire, release, some 20 ns of work outside",
             .unit = "permits/s"});
  s.declare({.name = "barrier",
             .about = "4 threads meet at a barrier, again and again",
             .unit = "phases/s"});
  s.declare({.name = "snapshot_read",
             .about = "4 threads read a value that one of them replaces now and then",
             .unit = "reads/s"});
  s.declare({.name = "counter_add", .about = "4 threads count", .unit = "additions/s"});
  s.declare({.name = "lazy_get",
             .about = "access to a value that the first access has built",
             .unit = "ns",
             .direction = better::lower});
  return s.run(argc, argv);
}
