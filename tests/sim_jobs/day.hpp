#pragma once

// A day of a simulated job server that crashes once per hour: cron entries, scheduled jobs, jobs
// that fail and are retried, workers that die with a lease, and retention, each due at a
// time. Nothing may be lost, and every event must happen when it is due: within `tick`,
// or, if the server was down then, within `tick` of its restart.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/crash/ledger.hpp"
#include "tests/sim_jobs/disk.hpp"

namespace sluice::sim_jobs {

inline constexpr milliseconds tick{1000};

struct day_plan {
  std::uint64_t seed = 1;
  std::chrono::hours length{24};
  milliseconds off_by{0};      // reports every event this much too early
  std::FILE* shown = nullptr;  // its events are written here
};

struct day {
  crash::verdict found;
  disk_counts disk;
  std::uint64_t simulated_ms = 0;
  std::uint64_t down_ms = 0;    // of these, without a server
  std::uint64_t crons = 0;      // runs that were due, and ...
  std::uint64_t cron_runs = 0;  // ... that there were
  std::uint64_t later = 0;      // scheduled jobs that ran
  std::uint64_t retries = 0;    // attempts after a failure
  std::uint64_t expiries = 0;   // attempts after an expired lease
  std::uint64_t restarts = 0;   // attempts after a crash
  std::uint64_t kept = 0;       // ended jobs found during their retention, ...
  std::uint64_t forgotten = 0;  // ... and removed after it
  std::uint64_t late_ms_max = 0;
  std::uint64_t early = 0, late = 0, crons_off_time = 0;  // must all be 0
  std::uint64_t steps = 0;
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  std::string broken;  // empty, or the broken expectations

  bool ok() const noexcept { return broken.empty() && found.ok(); }
  std::string to_string() const;
};

day run(const day_plan& plan);

}  // namespace sluice::sim_jobs
