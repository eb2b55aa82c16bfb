#pragma once

// An engine in this process whose disk loses power again and again while clients use it, each time
// opened anew on what was left; and in the end the judgement.

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
  std::uint32_t events_max = 600;  // of the disk between two cuts: from 1 to this many
  jobs::sync_mode sync = jobs::sync_mode::full;
  milliseconds flush_every{0};  // for sync_mode::interval

  // Called before every push, from several threads, one at a time: what else goes wrong.
  std::function<void(faulty_disk&, random&)> trouble{};
  // Called after every push with its answers, and before the disk is cut.
  std::function<void(faulty_disk&, const std::vector<jobs::job_spec>&,
                     const std::vector<push_answer>&)>
      answered{};
  std::function<void(faulty_disk&)> before_cut{};
  // Called for what the store reports when it is opened.
  std::function<void(const jobs::store_notice&)> on_notice{};
};

struct power_cycle_result {
  verdict found;
  std::uint64_t faults = 0;  // operations of the disk that failed, other than for lack of power
  std::uint64_t syncs = 0;
  std::uint64_t failed_openings = 0;     // in which the power went before the engine was up
  std::uint64_t incomplete_commits = 0;  // found at the end of a log, and not taken for damage
  std::string damage;  // empty, or what a store reported as damage, though it lost nothing
  std::string broken;  // empty, or what the engine did not survive: an opening that failed
};

power_cycle_result run(const power_cycle& how);

// Several of them, added together. Seeds count up from SLUICE_SEED, or else from `how.seed`.
power_cycle_result run_many(const sluice::testing::effort_counts& times, power_cycle how);

jobs::result<std::unique_ptr<jobs::engine>> open_engine(const faulty_disk& on,
                                                        const power_cycle& how);

}  // namespace sluice::crash
