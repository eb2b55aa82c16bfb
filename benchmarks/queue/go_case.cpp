// `go`: a buffered Go channel between goroutines (benchmarks/peers/go).
#include "benchmarks/queue/child_cases.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) { add_child_queue(s, "go", {built_peer("go_peer")}); }};

}  // namespace
}  // namespace sluice::bench
