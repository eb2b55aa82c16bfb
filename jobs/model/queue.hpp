#pragma once

// Options and counts of a queue of the server.
//
// The first push or the first configuration creates a queue, with the defaults below. `capacity`
// counts every unfinished job, running jobs included.

#include <array>
#include <cstdint>
#include <string>

#include "jobs/model/job.hpp"
#include "sluice/base/overflow.hpp"

namespace sluice::jobs {

// The URL that the server posts the jobs of a queue to, in place of leasing them to workers.
struct delivery_target {
  std::string url{};  // empty: none
  std::uint32_t concurrency = 8;
  milliseconds timeout{30'000};  // for one response

  friend bool operator==(const delivery_target&, const delivery_target&) = default;
};

struct queue_options {
  std::uint64_t capacity_jobs = 100'000'000;
  std::uint64_t capacity_bytes = std::uint64_t{64} << 30;
  // block: the push waits up to its caller's deadline. reject: 503. drop_newest: the receipt of the
  // push is `dropped`. drop_oldest: drops the oldest of the least urgent jobs. latest: drops the
  // newest of the least urgent jobs. caller_runs is not allowed.
  overflow when_full = overflow::reject;
  bool paused = false;                               // accepts pushes, grants no leases
  milliseconds lease_for{60'000};                    // for jobs without their own
  milliseconds keep_done{0};                         // done without a result; zero: deleted at once
  milliseconds keep_results{std::chrono::hours(1)};  // done with a result
  milliseconds keep_dead{std::chrono::hours(24 * 180)};  // dead and cancelled

  double rate = 0;                    // jobs that start in a second; zero: no limit
  std::uint32_t rate_burst = 0;       // jobs that may start at once after a pause; zero: those of a
                                      // tenth of a second, at least one
  std::uint32_t concurrency = 0;      // jobs that run at a time; zero: no limit
  std::uint32_t weight = 1;           // its share among the queues of one lease call
  std::uint32_t key_concurrency = 1;  // jobs of one key that run at a time
  double key_rate = 0;                // jobs of one key that start in a second; zero: no limit
  std::uint32_t key_burst = 0;        // as rate_burst
  delivery_target deliver{};

  friend bool operator==(const queue_options&, const queue_options&) = default;
};

void_result validate(const queue_options& options);

// Counts by state, updated with every change and never computed by a scan.
struct queue_counts {
  std::uint64_t scheduled = 0;
  std::uint64_t held = 0;
  std::uint64_t ready = 0;
  std::uint64_t running = 0;
  std::uint64_t retrying = 0;
  std::uint64_t done = 0;
  std::uint64_t dead = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t bytes = 0;  // of the jobs that have not ended

  std::uint64_t& of(job_state state) noexcept;
  std::uint64_t of(job_state state) const noexcept;
  std::uint64_t unfinished() const noexcept {
    return scheduled + held + ready + running + retrying;
  }

  friend bool operator==(const queue_counts&, const queue_counts&) = default;
};

struct queue_info {
  std::string name{};
  queue_options options{};
  queue_counts counts{};
};

}  // namespace sluice::jobs
