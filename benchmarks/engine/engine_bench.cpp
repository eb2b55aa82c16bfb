// ./bench engine: the job engine in process, on SQLite with sync=full, beside bare loops that write
// the same data to the same disk without an engine.
//
// Every contender has its own file in this folder. The bars are the project's targets.
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

int main(int argc, char** argv) {
  suite s("engine");
  s.declare({.name = "lifecycle",
             .summary = "100-byte jobs pushed, leased and acked, every step durable; sluice: 8 "
                        "pushers and 8 workers, 128 jobs a call",
             .unit = "jobs/s",
             .bars = {at_least(0.4, "sqlite_bare")},
             .repetitions_max = 5});
  s.declare({.name = "push_sync_8",
             .summary = "single jobs from 8 threads, each waits until its job is durable",
             .unit = "pushes/s",
             .bars = {at_least(4, "sqlite_commit_each")},
             .repetitions_max = 5});
  return s.run(argc, argv);
}
