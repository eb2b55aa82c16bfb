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

enum class content_type : std::uint8_t { json, bytes };

// Something a producer or a worker hands over and the server keeps as it is.
struct payload {
  std::string data{};
  content_type type = content_type::json;

  friend bool operator==(const payload&, const payload&) = default;
};

enum class unique_until : std::uint8_t {
  started,  // until a worker takes it
  done,     // until it has ended, however it ended
  elapsed,  // for `lasts` from the push, whatever becomes of the job
};

// At most one job of a queue holds a key at a time. Pushing a second one changes nothing, and the
// answer names the first.
struct unique_key {
  std::string key{};  // empty: not unique
  unique_until until = unique_until::done;
  milliseconds lasts{0};  // for `elapsed`

  friend bool operator==(const unique_key&, const unique_key&) = default;
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

struct job {
  job_id id = 0;
  job_spec spec{};
  job_state state = job_state::ready;
  std::uint64_t turn = 0;      // order of arrival among the ready jobs of one priority
  std::uint32_t attempts = 0;  // that have ended
  unix_time created_at{};
  unix_time due_at{};  // scheduled, retrying: when it becomes ready; ended: when it goes
  unix_time ended_at{};
  std::vector<attempt_error> errors{};  // the newest last; limits::errors_max are kept
  std::optional<payload> result{};

  friend bool operator==(const job&, const job&) = default;
};

// The server hands one job around (window, batch, lease, answer) without copying it.
using job_ptr = std::shared_ptr<const job>;

// What a job weighs against a capacity in bytes, and roughly in memory.
std::uint64_t weight_of(const job_spec& spec) noexcept;

// Bounds on what comes from outside. A request that is over one is refused, and told which.
struct limits {
  static constexpr std::size_t queue_name_bytes_max = 128;
  static constexpr std::size_t kind_bytes_max = 256;
  static constexpr std::size_t args_bytes_max = 4u << 20;
  static constexpr std::size_t metadata_bytes_max = 64u << 10;
  static constexpr std::size_t unique_key_bytes_max = 256;
  static constexpr std::size_t result_bytes_max = 4u << 20;
  static constexpr std::size_t error_message_bytes_max = 8u << 10;  // longer ones are cut
  static constexpr std::size_t backtrace_bytes_max = 32u << 10;     // longer ones are cut
  static constexpr std::size_t errors_max = 32;                     // older ones are dropped
  static constexpr std::size_t worker_bytes_max = 256;              // longer ones are cut
  static constexpr milliseconds duration_max = std::chrono::hours(24 * 366 * 10);
  static constexpr std::int64_t priority_max = std::int64_t{1} << 32;  // and the same below zero
};

// The name of a queue: letters, digits, and . _ - / : up to limits::queue_name_bytes_max.
void_result validate_queue_name(std::string_view name);
// What a spec from outside must keep to; an error names the field. That JSON is JSON is looked at
// where it is parsed.
void_result validate(const job_spec& spec);

}  // namespace sluice::jobs
