#pragma once

// A day of a simulated job server, which crashes once in every hour: cron entries, jobs for later,
// jobs that fail and are tried again, workers that die with a lease, and retention, each of which
// is due at a time. Nothing may be lost, and everything must happen when it is due: within `tick`,
// or, if the server was down then, within `tick` of its return.

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
  milliseconds off_by{0};      // so much earlier than it did everything is said to have happened
  std::FILE* shown = nullptr;  // where its events are written to
};

struct day {
  crash::verdict found;
  disk_counts disk;
  std::uint64_t simulated_ms = 0;
  std::uint64_t down_ms = 0;    // of these, without a server
  std::uint64_t crons = 0;      // runs that were due, and ...
  std::uint64_t cron_runs = 0;  // ... that there were
  std::uint64_t later = 0;      // jobs that ran at a time given
  std::uint64_t retries = 0;    // attempts after a failure
  std::uint64_t expiries = 0;   // attempts after a lease that had run out
  std::uint64_t restarts = 0;   // attempts after a crash
  std::uint64_t kept = 0;       // times that an ended job was found, as its retention says, ...
  std::uint64_t forgotten = 0;  // ... and jobs that were gone when it was over
  std::uint64_t late_ms_max = 0;
  std::uint64_t early = 0, late = 0, crons_off_time = 0;  // none of these may happen
  std::uint64_t steps = 0;
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  std::string broken;  // empty, or what did not happen as it should

  bool ok() const noexcept { return broken.empty() && found.ok(); }
  std::string to_string() const;
};

day run(const day_plan& plan);

}  // namespace sluice::sim_jobs
