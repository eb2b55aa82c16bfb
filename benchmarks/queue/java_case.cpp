// `java`: ArrayBlockingQueue between platform threads (benchmarks/peers/java).
#include "benchmarks/queue/child_cases.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_child_queue(s, "java", java_peer("QueuePeer"));
}};

}  // namespace
}  // namespace sluice::bench
