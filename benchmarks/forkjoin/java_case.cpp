// `java`: java.util.concurrent.RecursiveTask in a ForkJoinPool (peers/java/ForkJoinPeer.java).
#include "benchmarks/forkjoin/fib.hpp"

namespace sluice::bench {
namespace {

const registration added{
    [](suite& s) { add_child_fib(s, "java", java_peer("ForkJoinPeer")); }};

}  // namespace
}  // namespace sluice::bench
