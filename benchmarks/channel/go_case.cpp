// `go`: Go's select statement over four buffered channels (benchmarks/peers/go).
#include "benchmarks/child_process.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  for (const int capacity : {1, 1024}) {
    s.add("select-" + std::to_string(capacity), "go",
          child_run({built_peer("go_peer")},
                    {.workload = "select", .producers = 4, .consumers = 1, .capacity = capacity}));
  }
}};

}  // namespace
}  // namespace sluice::bench
