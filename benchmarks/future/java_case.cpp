// `java`: CompletableFuture (benchmarks/peers/java/FuturePeer.java).
#include "benchmarks/child_process.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  for (const char* const workload : {"chain10", "when_all_1000"}) {
    s.add(workload, "java", child_run(java_peer("FuturePeer"), {.workload = workload}));
  }
}};

}  // namespace
}  // namespace sluice::bench
