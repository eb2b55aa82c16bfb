#pragma once

// A batch: jobs that are pushed and tracked together, with callback jobs that run when the batch
// ends. With dependencies between its jobs it is a workflow.
//
// The store counts the unfinished jobs of a batch in the transaction that ends each of them.
// Callbacks are ordinary jobs: they are stored with the batch as `held` and released by its
// outcome, so each runs once, also across restarts.
//
// Any job can depend on a batch (`dependency::on`). While the batch is open or has unfinished jobs,
// more jobs can be pushed into it, also by its own jobs.
//
//     batch_spec trip;
//     trip.jobs = {{.kind = "flight", .step = "flight"},
//                  {.kind = "hotel", .step = "hotel"},
//                  {.kind = "mail", .after = {{.step = "flight"}, {.step = "hotel"}}}};
//     trip.on_failure = job_spec{.kind = "apologise"};
//     auto pushed = engine->push_batch(trip).get();

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

struct batch_spec {
  std::string name{};  // for people
  // An open batch does not end before it is closed, even without jobs. For jobs pushed in parts.
  bool open = false;
  std::vector<job_spec> jobs{};          // all or nothing
  std::optional<job_spec> on_success{};  // when all of its jobs are done
  std::optional<job_spec> on_end{};      // when all of its jobs have ended, in any state
  std::optional<job_spec> on_failure{};  // when the first of them is dead or cancelled
  milliseconds keep_done{std::chrono::hours(24 * 7)};      // the batch itself, after success
  milliseconds keep_failed{std::chrono::hours(24 * 180)};  // ... after an end with failures

  friend bool operator==(const batch_spec&, const batch_spec&) = default;
};

enum class batch_state : std::uint8_t {
  open,     // accepts more jobs, not closed
  running,  // closed, with unfinished jobs
  done,     // all jobs were done
  failed    // all jobs have ended, some of them dead or cancelled
};
std::string_view to_string(batch_state state) noexcept;
std::optional<batch_state> batch_state_from(std::string_view word) noexcept;

struct batch_info {
  job_id id = 0;  // from the sequence of job ids
  std::string name{};
  bool open = false;
  std::uint64_t total = 0;    // jobs ever added, without the callbacks
  std::uint64_t pending = 0;  // unfinished jobs
  std::uint64_t failed = 0;   // dead or cancelled jobs
  unix_time created_at{};
  unix_time ended_at{};  // the last time that its jobs had all ended
  unix_time due_at{};    // when it is deleted
  milliseconds keep_done{0};
  milliseconds keep_failed{0};

  bool has_ended() const noexcept { return !open && pending == 0; }
  batch_state state() const noexcept {
    if (pending > 0) return open ? batch_state::open : batch_state::running;
    if (open) return batch_state::open;
    return failed == 0 ? batch_state::done : batch_state::failed;
  }

  friend bool operator==(const batch_info&, const batch_info&) = default;
};

struct batch_receipt {
  job_id id = 0;
  std::vector<job_id> jobs{};                         // in the order of batch_spec::jobs
  job_id on_success = 0, on_end = 0, on_failure = 0;  // zero: none
};

struct batch_page {
  std::vector<batch_info> batches{};
  std::optional<job_id> cursor{};
};

// Returns indexes into `jobs` in topological order: each job follows its dependencies. The error
// names a duplicate step, an unknown step, or the steps of a cycle.
result<std::vector<std::size_t>> order_of_steps(const std::vector<job_spec>& jobs);

// Checks a batch from a client; the error names the job and the field.
void_result validate(const batch_spec& spec);

}  // namespace sluice::jobs
