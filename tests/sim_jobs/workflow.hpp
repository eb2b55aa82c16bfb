#pragma once

// A history (history.hpp) of dependent jobs: jobs of a key, which run one at a time
// in the order of their pushes, and batches of steps with callbacks, which run when due,
// each as exactly one job, despite crashes.

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/sim_jobs/disk.hpp"
#include "tests/sim_jobs/lives.hpp"

namespace sluice::sim_jobs {

struct workflow_plan {
  std::uint64_t seed = 1;
  disk_crimes crimes{};
  std::FILE* shown = nullptr;
};

struct workflow {
  sim_jobs::lives::counts lives;
  disk_counts disk;
  std::uint64_t keyed = 0, keyed_done = 0;  // jobs with a key: acknowledged, ended
  std::uint64_t batches = 0, callbacks = 0;
  std::uint64_t leases = 0, again = 0;  // of these, repeated leases of a job
  std::uint64_t steps = 0, events = 0, hash = 0;
  std::string broken;  // empty, or the broken guarantees

  bool ok() const noexcept { return broken.empty(); }
  void add(const workflow& more);
  std::string to_string() const;
};

workflow run(const workflow_plan& plan);

}  // namespace sluice::sim_jobs
