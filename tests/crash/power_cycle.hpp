#pragma once

// Runs an engine in this process whose disk loses power repeatedly while clients use it. It is
// reopened on the remaining contents each time, and judged at the end.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "jobs/engine/engine.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/testing/faulty_disk.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "tests/crash/hooked_client.hpp"
#include "tests/crash/ledger.hpp"

namespace sluice::crash {

using jobs::testing::faulty_disk;

struct power_cycle {
  int cuts = 20;
  std::uint64_t seed = 1;
  std::uint32_t events_max = 600;  // most disk events between two cuts; the least is 1
  jobs::sync_mode sync = jobs::sync_mode::full;
  milliseconds flush_every{0};  // for sync_mode::interval

  // Called before every push, from several threads, one at a time: injects other faults.
  std::function<void(faulty_disk&, random&)> trouble{};
  // Called after every push with its answers, and before the disk is cut.
  std::function<void(faulty_disk&, const std::vector<jobs::job_spec>&,
                     const std::vector<push_answer>&)>
      answered{};
  std::function<void(faulty_disk&)> before_cut{};
  // Called with the notices of the store when it is opened.
  std::function<void(const jobs::store_notice&)> on_notice{};
};

struct power_cycle_result {
  verdict found;
  std::uint64_t faults = 0;  // failed disk operations, except those after a power cut
  std::uint64_t syncs = 0;
  std::uint64_t failed_openings = 0;     // power cuts before the engine was open
  std::uint64_t incomplete_commits = 0;  // found at the end of a log and not reported as damage
  std::string damage;  // notices of damage from a store that lost nothing; normally empty
  std::string broken;  // the failure of the engine, such as a failed opening; normally empty
};

power_cycle_result run(const power_cycle& plan);

// Runs several and adds their results. Seeds count up from SLUICE_SEED, or else from `plan.seed`.
power_cycle_result run_many(const sluice::testing::effort_counts& times, power_cycle plan);

jobs::result<std::unique_ptr<jobs::engine>> open_engine(const faulty_disk& disk,
                                                        const power_cycle& plan);

}  // namespace sluice::crash
