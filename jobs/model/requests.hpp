#pragma once

// What is said to the job server, in a program or over a wire, and what it answers: plain values.

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
    duplicate,  // its unique key is taken: `id` is the job that has it, and nothing was changed
    dropped,    // the queue was full and drops what arrives: `id` is zero
    skipped     // what it was to wait for can no longer come true: `id` is zero
  };
  job_id id = 0;
  fate what = fate::accepted;
};
std::string_view to_string(push_receipt::fate fate) noexcept;

enum class bulk : std::uint8_t {
  each,           // every job for itself: one that is refused does not hold up the others
  all_or_nothing  // one that is refused, or is a duplicate, and none is pushed
};

// Names one lease. The key is a secret between the server and the one who leased.
struct lease_ref {
  job_id job = 0;
  std::uint64_t key = 0;  // fits a JavaScript number

  friend bool operator==(const lease_ref&, const lease_ref&) = default;
};

struct lease_request {
  enum class order : std::uint8_t {
    fair,    // from those that have jobs, in the proportion of their weights
    strict,  // from the first that has a job
    urgent   // the job of the highest priority in any of them, and of those the first to arrive
  };
  std::vector<std::string> queues = {"default"};
  order pick = order::fair;
  std::size_t max = 1;        // up to engine_options::lease_max
  std::string worker{};       // who asks, for people
  milliseconds lease_for{0};  // zero: as the job or its queue says
};

struct leased_job {
  job_ptr it{};
  std::uint64_t key = 0;
  std::uint32_t attempt = 1;  // this one, counted from 1
  unix_time until{};

  lease_ref ref() const { return {it->id, key}; }
};

// A lease that is out, for whoever looks.
struct lease_info {
  std::string worker{};
  unix_time began{};
  unix_time until{};
};

struct extension {
  unix_time until{};
  bool cancelled = false;  // the job was called off: stop working on it, and say `fail` or `ack`
};

struct failure {
  std::string type{};
  std::string message{};
  std::string backtrace{};
  std::optional<milliseconds> retry_in{};  // instead of the pause of the job's policy
  bool for_good = false;                   // no further attempt: the job is dead
  std::optional<std::int64_t> priority{};  // from now on
};

struct fail_receipt {
  job_state state = job_state::retrying;  // or dead, or cancelled
  unix_time next_at{};                    // for retrying
};

// A lease given back without having failed: the attempt is not counted.
struct give_back {
  milliseconds delay{0};
  std::optional<std::int64_t> priority{};
};

// Jobs of a queue that were made ready all at once.
struct kicked_jobs {
  static constexpr std::size_t ids_max = 100'000;

  std::uint64_t count = 0;
  job_state from = job_state::dead;  // or scheduled: those that were scheduled or retrying
  std::vector<job_id> ids{};         // in the order in which they became ready; the last ids_max
};

struct ack_item {
  lease_ref lease{};
  std::optional<payload> result{};
};

// Only what is set is changed.
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
  std::optional<std::string> deliver_url{};  // empty: no delivery any more
  std::optional<std::uint32_t> deliver_concurrency{};
  std::optional<milliseconds> deliver_timeout{};
};

struct list_request {
  std::string queue{};  // empty: every queue
  std::optional<job_state> state{};
  std::string kind{};       // empty: every kind
  job_id batch = 0;         // zero: of any, or none
  job_id after = 0;         // the cursor of the page before
  std::size_t limit = 100;  // up to 1000
};

struct health {
  bool takes_pushes = true;
  error_code code = error_code::io_error;  // when it does not: why
  std::string reason{};                    // when it does not: for people
};

// Since the engine was opened, and as of now. Every number is O(1).
struct engine_stats {
  std::uint64_t pushed = 0, duplicates = 0, dropped = 0, refused = 0;
  std::uint64_t leased = 0, acked = 0, failed = 0, expired = 0, given_back = 0;
  std::uint64_t retried = 0, died = 0, cancelled = 0, skipped = 0;
  std::uint64_t held = 0, released = 0;  // that had to wait for others, and were let go
  std::uint64_t cron_runs = 0, webhooks = 0, events = 0;
  std::uint64_t commits = 0, committed_changes = 0, commit_errors = 0;
  std::uint64_t waiting_leases = 0, waiting_pushes = 0, running = 0;
  std::uint64_t window_jobs = 0, window_bytes = 0;  // ready jobs that are in memory
  std::uint64_t commit_p50_us = 0, commit_p99_us = 0;
};

}  // namespace sluice::jobs
