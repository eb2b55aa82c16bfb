// `java`: java.util.concurrent.ForkJoinPool (benchmarks/peers/java/ExecutorPeer.java).
#include "benchmarks/child_process.hpp"
#include "benchmarks/executor/workloads.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  s.add("submit", "java",
        child_run(java_peer("ExecutorPeer"),
                  {.workload = "submit", .consumers = static_cast<int>(pool_threads())}));
}};

}  // namespace
}  // namespace sluice::bench
