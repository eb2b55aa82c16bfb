// `go`: goroutines over a buffered channel of functions (benchmarks/peers/go/executor.go).
#include "benchmarks/child_process.hpp"
#include "benchmarks/executor/workloads.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  s.add("submit", "go",
        child_run({built_peer("go_peer")}, {.workload = "submit",
                                            .producers = 1,
                                            .consumers = static_cast<int>(pool_threads()),
                                            .capacity = 4096}));
}};

}  // namespace
}  // namespace sluice::bench
