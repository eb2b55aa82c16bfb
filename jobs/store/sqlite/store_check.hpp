#pragma once

// Looks through a store's file for what should not be: damage of the disk, and rows that do not fit
// one another.
//
// Guarantees: reads only, also while a server uses the file: it sees the file as it is at one
// moment. An error means that it could not look (no such file, not a store, an older format); what
// is wrong with a store is in the report. `on_progress` is called on the calling thread.
// Every row that has a checksum is compared with it. The table `lines` and the counts of queues
// have none: they are compared with the jobs. What is held against each other: the pages of the
// file (PRAGMA integrity_check); the counts of every queue and its jobs; states, queues and numbers
// of jobs; the line of every key and its jobs; what every held job waits for, and that this can
// still happen; the counts of every batch and its jobs (`failed` and `total` may be more than the
// jobs show: those that were deleted count too); unique keys and logs, and their jobs. Cost: reads
// all of the file, about a minute for ten million jobs; memory for the keys that somebody waits
// for. While it looks, the server's log cannot be shortened: it grows.
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
  std::string_view what;    // "pages", "jobs", "batches", ...
  std::uint64_t done = 0;   // jobs looked at so far
  std::uint64_t total = 0;  // of all the queues, as they count them
};

struct store_report {
  static constexpr std::size_t problems_max = 1000;

  std::uint64_t jobs = 0;
  std::uint64_t unverified = 0;  // jobs without a checksum, from a file of an older format
  std::uint64_t queues = 0;
  std::uint64_t batches = 0;
  std::uint64_t edges = 0;
  std::vector<std::string> problems{};  // a sentence each; none: the store is sound
  std::uint64_t problems_left_out = 0;  // beyond problems_max

  bool is_sound() const noexcept { return problems.empty(); }
};

result<store_report> check_store(
    const std::string& path, const std::function<void(const check_progress&)>& on_progress = {});

}  // namespace sluice::jobs
