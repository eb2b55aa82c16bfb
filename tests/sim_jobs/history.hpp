#pragma once

// One history of a simulated job server: clients keep it busy, its disk misbehaves, it crashes and
// is opened again, several times; in the end everything is drained, and the ledger of the crash
// tests says whether it kept its word. All of it follows from the seed: who runs when, what each
// client does, what the disk does, when the power goes.

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/crash/ledger.hpp"
#include "tests/sim_jobs/disk.hpp"
#include "tests/sim_jobs/lives.hpp"

namespace sluice::sim_jobs {

struct history_plan {
  std::uint64_t seed = 1;
  // Besides what the seed decides; see disk_crimes.
  std::uint32_t eats = 0;
  std::uint32_t revives = 0;
  std::FILE* shown = nullptr;  // where its events are written to
};

struct history {
  crash::verdict found;
  disk_counts disk;
  sim_jobs::lives::counts lives;
  std::uint64_t simulated_ms = 0;
  std::uint64_t steps = 0;   // of the schedule
  std::uint64_t events = 0;  // that were written down, and ...
  std::uint64_t hash = 0;    // ... their number
  std::string broken;        // empty, or what it did not survive

  bool ok() const noexcept { return broken.empty() && found.ok(); }
  void add(const history& more);
  std::string to_string() const;
};

history run(const history_plan& plan);

}  // namespace sluice::sim_jobs
