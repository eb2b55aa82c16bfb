// `go`: a goroutine and a channel for each future (benchmarks/peers/go/future.go).
#include "benchmarks/child_process.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  for (const char* const workload : {"chain10", "when_all_1000"}) {
    s.add(workload, "go", child_run({built_peer("go_peer")}, {.workload = workload}));
  }
  s.add("task_pingpong", "go", child_run({built_peer("go_peer")}, {.workload = "pingpong"}));
}};

}  // namespace
}  // namespace sluice::bench
