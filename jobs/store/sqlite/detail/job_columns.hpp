#pragma once

// The columns of the table `jobs`, and of the job in a cron entry.

#include <array>
#include <cstddef>
#include <string_view>

#include "jobs/store/sqlite/detail/row_checksum.hpp"

namespace sluice::jobs::detail {

// In the order of bind_job and read_job. The first plain_columns describe a job whose other fields
// have their defaults, the first lone_columns a job without relations to other jobs and without a
// report of a worker.
inline constexpr std::array<std::string_view, 38> job_columns = {
    "id",          "queue",        "state",         "rank",
    "turn",        "due_at",       "created_at",    "kind",
    "args",        "ended_at",     "attempts",      "run_at",
    "lease_for",   "time_limit",   "keep_for",      "retry_attempts",
    "retry_first", "retry_factor", "retry_longest", "retry_jitter",
    "unique_key",  "unique_until", "unique_for",    "metadata",
    "errors",      "result",       "key",           "line",
    "batch",       "after",        "step",          "webhook",
    "blockers",    "has_place",    "progress",      "progress_text",
    "history",     "checksum"};
inline constexpr std::size_t plain_columns = 9;
inline constexpr std::size_t lone_columns = 24;

// Positions in job_columns, from 0; a parameter's number is one more.
enum job_column : int {
  c_id,
  c_queue,
  c_state,
  c_rank,
  c_turn,
  c_due_at,
  c_created_at,
  c_kind,
  c_args,
  c_ended_at,
  c_attempts,
  c_run_at,
  c_lease_for,
  c_time_limit,
  c_keep_for,
  c_retry_attempts,
  c_retry_first,
  c_retry_factor,
  c_retry_longest,
  c_retry_jitter,
  c_unique_key,
  c_unique_until,
  c_unique_for,
  c_metadata,
  c_errors,
  c_result,
  c_key,
  c_line,
  c_batch,
  c_after,
  c_step,
  c_webhook,
  c_blockers,
  c_has_place,
  c_progress,
  c_progress_text,
  c_history,
  c_checksum
};
static_assert(c_checksum + 1 == job_columns.size() && c_args + 1 == plain_columns &&
              c_metadata + 1 == lone_columns);

// `payload`: data of producers and workers, which no rule of the store uses.
constexpr row_checksum::group group_of(int c) noexcept {
  switch (c) {
    case c_kind:
    case c_args:
    case c_metadata:
    case c_errors:
    case c_result:
    case c_step:
    case c_progress:
    case c_progress_text:
    case c_history:
      return row_checksum::group::payload;
    default:
      return row_checksum::group::control;
  }
}

// Not a column: the checksum also covers the number of payload bytes in the job's weight, since the
// counts of a queue depend on it.
inline constexpr int weighed_bytes = 63;
constexpr bool is_weighed(int c) noexcept {
  return c == c_kind || c == c_args || c == c_metadata || c == c_step;
}

}  // namespace sluice::jobs::detail
