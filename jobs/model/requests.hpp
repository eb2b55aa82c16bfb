#pragma once

// Requests to the job server and its replies, in a program and over a wire: plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/model/job.hpp"
#include "jobs/model/job_page.hpp"
#include "jobs/model/queue.hpp"

namespace sluice::jobs {

struct push_receipt {
  enum class fate : std::uint8_t {
    accepted,
    duplicate,  // its unique key is taken: `id` is the holder, nothing was changed
    dropped,    // the queue is full and drops new jobs: `id` is zero
    skipped     // a dependency cannot be met any more: `id` is zero
  };
  job_id id = 0;
  fate outcome = fate::accepted;
};
std::string_view to_string(push_receipt::fate fate) noexcept;

enum class bulk : std::uint8_t {
  each,           // every job is pushed independently of the others
  all_or_nothing  // none is pushed if one is rejected or a duplicate
};

// Identifies a lease. The key is a secret shared by the server and the worker.
struct lease_ref {
  job_id job = 0;
  std::uint64_t key = 0;  // fits a JavaScript number

  friend bool operator==(const lease_ref&, const lease_ref&) = default;
};

struct lease_request {
  enum class order : std::uint8_t {
    fair,    // from all queues with ready jobs, in proportion to their weights
    strict,  // from the first queue with a ready job
    urgent   // the job with the highest priority of all queues, the first to arrive among equals
  };
  std::vector<std::string> queues = {"default"};
  order pick = order::fair;
  std::size_t max = 1;        // up to engine_options::lease_max
  std::string worker{};       // the name of the worker, for people
  milliseconds lease_for{0};  // zero: the value of the job or its queue
};

struct leased_job {
  job_ptr job{};
  std::uint64_t key = 0;
  std::uint32_t attempt = 1;  // the number of this attempt, from 1
  unix_time until{};

  lease_ref ref() const { return {job->id, key}; }
};

// An active lease, for display.
struct lease_info {
  std::string worker{};
  unix_time began{};
  unix_time until{};
};

struct extension {
  unix_time until{};
  bool cancelled = false;  // the job was cancelled: stop the work, then call `fail` or `ack`
};

struct failure {
  std::string type{};
  std::string message{};
  std::string backtrace{};
  std::optional<milliseconds> retry_in{};  // replaces the pause of the job's policy
  bool for_good = false;                   // no further attempt: the job is dead
  std::optional<std::int64_t> priority{};  // the job's new priority
};

struct fail_receipt {
  job_state state = job_state::retrying;  // or dead, or cancelled
  unix_time next_at{};                    // of the next attempt, if retrying
};

// The release of a lease without a failure: the attempt is not counted.
struct give_back {
  milliseconds delay{0};
  std::optional<std::int64_t> priority{};
};

// The result of a kick: the jobs of a queue that were made ready at once.
struct kicked_jobs {
  static constexpr std::size_t ids_max = 100'000;

  std::uint64_t count = 0;
  job_state from = job_state::dead;  // their state before; scheduled stands for retrying too
  std::vector<job_id> ids{};         // in the order of becoming ready; the last ids_max
};

struct ack_item {
  lease_ref lease{};
  std::optional<payload> result{};
};

// Unset fields keep their value.
struct queue_patch {
  std::optional<std::uint64_t> capacity_jobs{};
  std::optional<std::uint64_t> capacity_bytes{};
  std::optional<overflow> when_full{};
  std::optional<bool> paused{};
  std::optional<milliseconds> lease_for{};
  std::optional<milliseconds> keep_done{};
  std::optional<milliseconds> keep_results{};
  std::optional<milliseconds> keep_dead{};
  std::optional<double> rate{};
  std::optional<std::uint32_t> rate_burst{};
  std::optional<std::uint32_t> concurrency{};
  std::optional<std::uint32_t> weight{};
  std::optional<std::uint32_t> key_concurrency{};
  std::optional<double> key_rate{};
  std::optional<std::uint32_t> key_burst{};
  std::optional<std::string> deliver_url{};  // empty: ends the delivery
  std::optional<std::uint32_t> deliver_concurrency{};
  std::optional<milliseconds> deliver_timeout{};
};

struct list_request {
  std::string queue{};  // empty: every queue
  std::optional<job_state> state{};
  std::string kind{};       // empty: every kind
  job_id batch = 0;         // zero: jobs of any batch or none
  job_id after = 0;         // the cursor of the previous page
  std::size_t limit = 100;  // up to 1000
};

struct health {
  bool takes_pushes = true;
  error_code code = error_code::io_error;  // the reason, if pushes are rejected
  std::string reason{};                    // the reason for people, if pushes are rejected
};

// Totals since the engine was opened, and current values. Reading them is O(1).
struct engine_stats {
  std::uint64_t pushed = 0, duplicates = 0, dropped = 0, refused = 0;
  std::uint64_t leased = 0, acked = 0, failed = 0, expired = 0, given_back = 0;
  std::uint64_t retried = 0, died = 0, cancelled = 0, skipped = 0;
  std::uint64_t held = 0,
                released = 0;  // jobs that waited for others; jobs of them that were released
  std::uint64_t cron_runs = 0, webhooks = 0, events = 0;
  std::uint64_t commits = 0, committed_changes = 0, commit_errors = 0;
  std::uint64_t waiting_leases = 0, waiting_pushes = 0, running = 0;
  std::uint64_t window_jobs = 0, window_bytes = 0;  // ready jobs in memory
  std::uint64_t commit_p50_us = 0, commit_p99_us = 0;
};

}  // namespace sluice::jobs
