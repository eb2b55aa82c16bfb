#pragma once

// Checks a store's file: damage of the disk, and rows that contradict each other.
//
// Guarantees: reads only, also while a server uses the file: it checks one snapshot. An error means
// that the check could not run (no such file, not a store, an older format); problems of the store
// are in the report. `on_progress` is called on the calling thread. Verifies every checksum. The
// table `lines` and the counts of queues have none: they are compared with the jobs. Also checked:
// the pages of the file (PRAGMA integrity_check); the counts of every queue against its jobs;
// states, queues and ids of jobs; the line of every key against its jobs; the dependencies of every
// held job, and that they can still be met; the counts of every batch against its jobs (`failed`
// and `total` may be larger, since they include deleted jobs); the jobs of unique keys and logs.
// Cost: reads all of the file, about a minute for ten million jobs; memory for the keys with
// waiting jobs. Meanwhile the server's log cannot be truncated and grows.
//
//     auto report = check_store("jobs.db", [](const check_progress& p) { draw(p.done, p.total); });
//     for (const std::string& problem : report->problems) std::puts(problem.c_str());

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"

namespace sluice::jobs {

struct check_progress {
  std::string_view part;    // "pages", "jobs", "batches", ...
  std::uint64_t done = 0;   // checked jobs
  std::uint64_t total = 0;  // jobs of all queues, by their counts
};

struct store_report {
  static constexpr std::size_t problems_max = 1000;

  std::uint64_t jobs = 0;
  std::uint64_t unverified = 0;  // jobs without a checksum, from a file of an older format
  std::uint64_t queues = 0;
  std::uint64_t batches = 0;
  std::uint64_t edges = 0;
  std::vector<std::string> problems{};  // one sentence each; empty: the store is sound
  std::uint64_t problems_left_out = 0;  // beyond problems_max

  bool is_sound() const noexcept { return problems.empty(); }
};

result<store_report> check_store(
    const std::string& path, const std::function<void(const check_progress&)>& on_progress = {});

}  // namespace sluice::jobs
