#pragma once

// One history of a simulated job server: clients use it, its disk misbehaves, it crashes and
// is restarted several times; at the end all jobs are drained, and the ledger of the crash
// tests checks its guarantees. The seed determines everything: the schedule, the calls of each
// client, the failures of the disk, the power cuts.

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/crash/ledger.hpp"
#include "tests/sim_jobs/disk.hpp"
#include "tests/sim_jobs/lives.hpp"

namespace sluice::sim_jobs {

struct history_plan {
  std::uint64_t seed = 1;
  // In addition to the seed; see disk_crimes.
  std::uint32_t eats = 0;
  std::uint32_t revives = 0;
  std::FILE* shown = nullptr;  // its events are written here
};

struct history {
  crash::verdict found;
  disk_counts disk;
  sim_jobs::lives::counts lives;
  std::uint64_t simulated_ms = 0;
  std::uint64_t steps = 0;   // of the schedule
  std::uint64_t events = 0;  // recorded events, and ...
  std::uint64_t hash = 0;    // ... their hash
  std::string broken;        // empty, or the failure

  bool ok() const noexcept { return broken.empty() && found.ok(); }
  void add(const history& more);
  std::string to_string() const;
};

history run(const history_plan& plan);

}  // namespace sluice::sim_jobs
