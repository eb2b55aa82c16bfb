#pragma once

// A durable piece of work, as its producer describes it (`job_spec`) and as the server keeps it
// (`job`): plain values that every layer of the server shares.
//
// docs/reference/job.md has the states, who makes each move, and what of it is durable.

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
  held = 1,       // waits for jobs that it depends on, or for its turn under its key
  ready = 2,      // can be taken
  running = 3,    // leased; only in memory: for the store such a job is ready
  retrying = 4,   // failed, waits for its next attempt
  done = 5,       // succeeded; kept for its retention
  dead = 6,       // failed for good; kept for its retention
  cancelled = 7,  // called off; kept for its retention
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

// Something a producer or a worker hands over and the server keeps as it is.
struct payload {
  std::string data{};
  content_type type = content_type::json;

  friend bool operator==(const payload&, const payload&) = default;
};

enum class unique_until : std::uint8_t {
  started,  // until a worker takes it, or `lasts` is over
  done,     // until it has ended, however it ended, or `lasts` is over
  elapsed,  // for `lasts` from the push, whatever becomes of the job
};

// At most one job of a queue holds a key at a time. Pushing a second one changes nothing, and the
// answer names the first.
struct unique_key {
  std::string key{};  // empty: not unique
  unique_until until = unique_until::done;
  milliseconds lasts{0};  // from the push; zero: without end (not for `elapsed`)

  bool expires() const noexcept {
    return until == unique_until::elapsed || lasts > milliseconds(0);
  }
  // Whether it is freed by what becomes of the job.
  bool ends_with_job() const noexcept { return !key.empty() && until != unique_until::elapsed; }

  friend bool operator==(const unique_key&, const unique_key&) = default;
};

// What a job waits for: the end of another job, or of a batch. `success` of a batch: all of its
// jobs were done; `failure`: the first of them has failed.
enum class after_when : std::uint8_t { success = 0, end = 1, failure = 2 };
std::string_view to_string(after_when when) noexcept;
std::optional<after_when> after_when_from(std::string_view word) noexcept;

struct dependency {
  job_id on = 0;  // a job or a batch; one that is gone by now counts as done
  // Instead of an id, within one push of several: job_spec::step of another of them.
  std::string step{};
  after_when when = after_when::success;

  friend bool operator==(const dependency&, const dependency&) = default;
};

struct job_spec {
  std::string queue = "default";
  std::string kind{};
  payload args{};
  std::int64_t priority = 0;  // larger is sooner
  unix_time run_at{};         // not before; zero: at once
  retry_policy retry{};
  milliseconds lease_for{0};   // how long a lease lasts without a heartbeat; zero: the queue's
  milliseconds time_limit{0};  // how long one attempt may take in all; zero: no limit
  unique_key unique{};
  std::string metadata{};                  // a JSON object, or empty
  std::optional<milliseconds> keep_for{};  // after it has ended; unset: the queue's
  // Jobs of a queue with the same key run one at a time (queue_options::key_concurrency), in the
  // order in which they could have run, across retries. Empty: none.
  std::string key{};
  job_id batch = 0;                 // the batch that it belongs to; zero: none
  std::vector<dependency> after{};  // what must have ended before it runs
  std::string step{};               // its name among those of one push, and in a picture of them
  std::string webhook{};            // where its end is posted to; empty: nowhere

  friend bool operator==(const job_spec&, const job_spec&) = default;
};

// What became of one attempt.
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

// How far an attempt has come, as its worker says.
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
  std::uint32_t attempts = 0;  // that have ended
  unix_time created_at{};
  unix_time due_at{};  // scheduled, retrying: when it becomes ready; ended: when it goes
  unix_time ended_at{};
  std::vector<attempt_error> errors{};    // the newest last; limits::errors_max are kept
  std::vector<attempt_record> history{};  // the newest last; limits::attempts_kept are kept
  std::optional<payload> result{};
  std::optional<jobs::progress> progress{};  // the last that was said
  std::uint32_t blockers = 0;                // of spec.after: those that have not come true
  // It has its place under its key already, though it is scheduled: a worker gave it back, or its
  // key's rate put it off. Ready and retrying jobs with a key always have theirs.
  bool has_place = false;
  // Its row in the store does not match its checksum: dead, and never run again.
  bool is_damaged = false;

  friend bool operator==(const job&, const job&) = default;
};

// The server hands one job around (window, batch, lease, answer) without copying it.
using job_ptr = std::shared_ptr<const job>;

// Adds the newest attempt; the oldest beyond limits::attempts_kept is dropped.
void add_attempt(std::vector<attempt_record>& history, attempt_record ended);

// A damaged job as it is shown: dead, with the reason as its last error. Its args are bytes, since
// they may not be JSON any more; what else may be wrong is left out.
job damaged_view(job damaged, unix_time now);
inline constexpr std::string_view damaged_error_type = "damaged";
attempt_error damaged_error(const job& damaged, unix_time now);

// What a job weighs against a capacity in bytes, and roughly in memory.
std::uint64_t weight_of(const job_spec& spec) noexcept;

// Bounds on what comes from outside. A request that is over one is refused, and told which.
struct limits {
  static constexpr std::size_t queue_name_bytes_max = 200;  // as of a beanstalk tube
  static constexpr std::size_t kind_bytes_max = 256;
  static constexpr std::size_t args_bytes_max = 4u << 20;
  static constexpr std::size_t metadata_bytes_max = 64u << 10;
  static constexpr std::size_t unique_key_bytes_max = 256;
  static constexpr std::size_t result_bytes_max = 4u << 20;
  static constexpr std::size_t error_message_bytes_max = 8u << 10;  // longer ones are cut
  static constexpr std::size_t backtrace_bytes_max = 32u << 10;     // longer ones are cut
  static constexpr std::size_t errors_max = 32;                     // older ones are dropped
  static constexpr std::size_t attempts_kept = 32;                  // likewise
  static constexpr std::size_t worker_bytes_max = 256;              // longer ones are cut
  static constexpr std::size_t key_bytes_max = 256;
  static constexpr std::size_t after_max = 1000;  // dependencies of one job
  static constexpr std::size_t step_bytes_max = 128;
  static constexpr std::size_t url_bytes_max = 2048;
  static constexpr std::size_t progress_bytes_max = 1024;      // longer ones are cut
  static constexpr std::size_t log_line_bytes_max = 8u << 10;  // longer ones are cut
  static constexpr std::size_t log_lines_at_once = 1000;       // in one call
  static constexpr std::size_t log_lines_max = 10'000;         // of a job; the first ones stay
  static constexpr std::size_t batch_name_bytes_max = 256;
  static constexpr std::size_t cron_entries_max = 10'000;
  static constexpr std::size_t cron_missed_max = 100;  // runs that are made up for at once
  static constexpr milliseconds duration_max = std::chrono::hours(24 * 366 * 10);
  static constexpr std::int64_t priority_max = std::int64_t{1} << 32;  // and the same below zero
};

// The name of a queue: letters, digits, and . _ - / : + ; $ ( ) up to queue_name_bytes_max; so the
// name of a beanstalk tube is one, as it is.
void_result validate_queue_name(std::string_view name);
// What a spec from outside must keep to; an error names the field. That JSON is JSON is looked at
// where it is parsed.
void_result validate(const job_spec& spec);

}  // namespace sluice::jobs
