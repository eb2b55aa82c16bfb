#pragma once

// The queue workloads of a peer that runs as a child process.

#include "benchmarks/child_process.hpp"

namespace sluice::bench {

inline void add_child_queue(suite& s, const std::string& who,
                            const std::vector<std::string>& program) {
  for (const int n : {8, 4, 2, 1}) {
    const std::string name = std::to_string(n) + "P" + std::to_string(n) + "C";
    s.add(name, who,
          child_run(program,
                    {.workload = "hand-over", .producers = n, .consumers = n, .capacity = 1024}));
  }
  s.add("pingpong", who, child_run(program, {.workload = "pingpong"}));
}

}  // namespace sluice::bench
