// `go`: goroutines, each with a channel for a mailbox (benchmarks/peers/go/actor.go).
#include <string>

#include "benchmarks/actor/workloads.hpp"
#include "benchmarks/child_process.hpp"

namespace sluice::bench {
namespace {

measure go_population(const std::string& workload) {
  return [workload](const settings& s) {
    const std::uint64_t size = s.quick ? population_size / 100 : population_size;
    return run_child({built_peer("go_peer"), workload, std::to_string(size), "1", "1", "1"});
  };
}

const registration added{[](suite& s) {
  const std::vector<std::string> program = {built_peer("go_peer")};
  s.add("pingpong", "go", child_run(program, {.workload = "actor-pingpong"}));
  s.add("ring", "go", child_run(program, {.workload = "actor-ring", .producers = ring_size}));
  s.add("fanin", "go",
        child_run(
            program,
            {.workload = "actor-fanin", .producers = fanin_senders, .capacity = fanin_capacity}));
  s.add("create", "go", go_population("actor-create"));
  s.add("bytes", "go", go_population("actor-bytes"));
  s.add("idle_cpu_ms", "go", go_population("actor-idle"));
}};

}  // namespace
}  // namespace sluice::bench
