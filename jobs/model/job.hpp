#pragma once

// A durable piece of work, as its producer describes it (`job_spec`) and as the server keeps it
// (`job`): plain values that every layer of the server shares.
//
// docs/reference/job.md has the states, every move between them, and which moves are durable.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/model/retry_policy.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

using job_id = std::uint64_t;  // counts up from 1, never used twice; fits a JavaScript number

// The numbers are stored: never reuse one.
enum class job_state : std::uint8_t {
  scheduled = 0,  // waits for its time
  held = 1,       // waits for its dependencies, or for its place under its key
  ready = 2,      // can be leased
  running = 3,    // leased; only in memory: for the store such a job is ready
  retrying = 4,   // failed, waits for its next attempt
  done = 5,       // succeeded; kept for its retention
  dead = 6,       // failed for good; kept for its retention
  cancelled = 7,  // will not run; kept for its retention
};
std::string_view to_string(job_state state) noexcept;
std::optional<job_state> job_state_from(std::string_view word) noexcept;
constexpr bool has_ended(job_state s) noexcept {
  return s >= job_state::done;
}
constexpr bool waits_for_its_time(job_state s) noexcept {
  return s == job_state::scheduled || s == job_state::retrying;
}

enum class content_type : std::uint8_t { json, bytes };

// Data of a producer or a worker, which the server stores unchanged.
struct payload {
  std::string data{};
  content_type type = content_type::json;

  friend bool operator==(const payload&, const payload&) = default;
};

enum class unique_until : std::uint8_t {
  started,  // until a worker leases the job, or `lasts` has passed
  done,     // until the job has ended in any state, or `lasts` has passed
  elapsed,  // for `lasts` from the push, independent of the job's state
};

// At most one job of a queue holds a key at a time. Pushing a second one changes nothing; the
// receipt names the first.
struct unique_key {
  std::string key{};  // empty: not unique
  unique_until until = unique_until::done;
  milliseconds lasts{0};  // from the push; zero: no time limit (not for `elapsed`)

  bool expires() const noexcept {
    return until == unique_until::elapsed || lasts > milliseconds(0);
  }
  // True if a move of the job frees the key.
  bool ends_with_job() const noexcept { return !key.empty() && until != unique_until::elapsed; }

  friend bool operator==(const unique_key&, const unique_key&) = default;
};

// The outcome of a job or a batch that a dependency waits for. `success` of a batch: all of its
// jobs are done; `failure`: the first of them has failed.
enum class after_when : std::uint8_t { success = 0, end = 1, failure = 2 };
std::string_view to_string(after_when when) noexcept;
std::optional<after_when> after_when_from(std::string_view word) noexcept;

struct dependency {
  job_id on = 0;  // a job or a batch; an id that no longer exists counts as done
  // Instead of an id, within one push of several jobs: job_spec::step of another job.
  std::string step{};
  after_when when = after_when::success;

  friend bool operator==(const dependency&, const dependency&) = default;
};

struct job_spec {
  std::string queue = "default";
  std::string kind{};
  payload args{};
  std::int64_t priority = 0;  // larger is sooner
  unix_time run_at{};         // the earliest start; zero: at once
  retry_policy retry{};
  milliseconds lease_for{0};   // how long a lease lasts without a heartbeat; zero: the queue's
  milliseconds time_limit{0};  // total duration of one attempt; zero: no limit
  unique_key unique{};
  std::string metadata{};                  // a JSON object, or empty
  std::optional<milliseconds> keep_for{};  // after it has ended; unset: the queue's
  // Jobs of a queue with the same key run one at a time (queue_options::key_concurrency), in the
  // order in which they became runnable, across retries. Empty: no key.
  std::string key{};
  job_id batch = 0;                 // the batch of the job; zero: none
  std::vector<dependency> after{};  // must be met before the job runs
  std::string step{};               // its name within one push, and in the picture of a workflow
  std::string webhook{};            // the URL that its end is posted to; empty: none

  friend bool operator==(const job_spec&, const job_spec&) = default;
};

// The error of one attempt.
struct attempt_error {
  std::uint32_t attempt = 0;  // counts from 1
  unix_time at{};
  std::string type{};
  std::string message{};
  std::string backtrace{};

  friend bool operator==(const attempt_error&, const attempt_error&) = default;
};

// How an attempt ended.
enum class attempt_outcome : std::uint8_t { done, failed, expired };
std::string_view to_string(attempt_outcome outcome) noexcept;
std::optional<attempt_outcome> attempt_outcome_from(std::string_view word) noexcept;

// One attempt that has ended.
struct attempt_record {
  std::uint32_t attempt = 0;  // counts from 1, and from 1 again after a manual retry
  unix_time began{};
  unix_time ended{};
  std::string worker{};
  attempt_outcome outcome = attempt_outcome::done;

  friend bool operator==(const attempt_record&, const attempt_record&) = default;
};

// The progress of an attempt, as reported by its worker.
struct progress {
  double percent = 0;  // 0 to 100
  std::string text{};  // one line

  friend bool operator==(const progress&, const progress&) = default;
};

struct job {
  job_id id = 0;
  job_spec spec{};
  job_state state = job_state::ready;
  std::uint64_t turn = 0;      // order of arrival among the ready jobs of one priority
  std::uint32_t attempts = 0;  // ended attempts
  unix_time created_at{};
  unix_time due_at{};  // scheduled, retrying: when it becomes ready; ended: when it is deleted
  unix_time ended_at{};
  std::vector<attempt_error> errors{};    // the newest last; limits::errors_max are kept
  std::vector<attempt_record> history{};  // the newest last; limits::attempts_kept are kept
  std::optional<payload> result{};
  std::optional<jobs::progress> progress{};  // the last report
  std::uint32_t blockers = 0;                // dependencies in spec.after that are not met
  // The job holds its place under its key although it is scheduled: a worker released it, or the
  // key's rate limit deferred it. Ready and retrying jobs with a key always hold theirs.
  bool has_place = false;
  // Its row in the store does not match its checksum: the job is dead and never runs again.
  bool is_damaged = false;

  friend bool operator==(const job&, const job&) = default;
};

// The server shares one job object (window, transaction, lease, reply) without copying it.
using job_ptr = std::shared_ptr<const job>;

// Appends the newest attempt; drops the oldest beyond limits::attempts_kept.
void add_attempt(std::vector<attempt_record>& history, attempt_record ended);

// Returns a damaged job as it is reported: dead, with the reason as its only error. The type of its
// args is bytes, since they may not be valid JSON; metadata, step, result, progress and history are
// empty.
job damaged_view(job damaged, unix_time now);
inline constexpr std::string_view damaged_error_type = "damaged";
attempt_error damaged_error(const job& damaged, unix_time now);

// Returns the bytes that a job counts against a queue's capacity; roughly its size in memory.
std::uint64_t weight_of(const job_spec& spec) noexcept;

// Limits on input. A request above a limit is rejected with an error that names the limit.
struct limits {
  static constexpr std::size_t queue_name_bytes_max = 200;  // as for a beanstalk tube
  static constexpr std::size_t kind_bytes_max = 256;
  static constexpr std::size_t args_bytes_max = 4u << 20;
  static constexpr std::size_t metadata_bytes_max = 64u << 10;
  static constexpr std::size_t unique_key_bytes_max = 256;
  static constexpr std::size_t result_bytes_max = 4u << 20;
  static constexpr std::size_t error_message_bytes_max = 8u << 10;  // truncated
  static constexpr std::size_t backtrace_bytes_max = 32u << 10;     // truncated
  static constexpr std::size_t errors_max = 32;                     // the oldest are dropped
  static constexpr std::size_t attempts_kept = 32;                  // the oldest are dropped
  static constexpr std::size_t worker_bytes_max = 256;              // truncated
  static constexpr std::size_t key_bytes_max = 256;
  static constexpr std::size_t after_max = 1000;  // dependencies of one job
  static constexpr std::size_t step_bytes_max = 128;
  static constexpr std::size_t url_bytes_max = 2048;
  static constexpr std::size_t progress_bytes_max = 1024;      // truncated
  static constexpr std::size_t log_line_bytes_max = 8u << 10;  // truncated
  static constexpr std::size_t log_lines_at_once = 1000;       // in one call
  static constexpr std::size_t log_lines_max = 10'000;         // per job; the first lines are kept
  static constexpr std::size_t batch_name_bytes_max = 256;
  static constexpr std::size_t cron_entries_max = 10'000;
  static constexpr std::size_t cron_missed_max = 100;  // missed runs that are pushed at once
  static constexpr milliseconds duration_max = std::chrono::hours(24 * 366 * 10);
  static constexpr std::int64_t priority_max = std::int64_t{1}
                                               << 32;  // the minimum is its negative
};

// Checks the name of a queue: letters, digits, and . _ - / : + ; $ ( ), at most
// queue_name_bytes_max bytes. Every name of a beanstalk tube is valid.
void_result validate_queue_name(std::string_view name);
// Checks a spec from a client; the error names the field. JSON syntax is checked by the parser.
void_result validate(const job_spec& spec);

}  // namespace sluice::jobs
