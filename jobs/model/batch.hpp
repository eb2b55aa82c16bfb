#pragma once

// Jobs that are pushed and watched together: a batch, with jobs that run when it has ended, and,
// when its jobs wait for one another, a workflow.
//
// A batch is a count of jobs that have not ended, kept by the store in the transaction that ends
// each of them. Its callbacks are jobs like any other, which are there from the start and are held
// until the batch lets them go: so each runs once, whatever restarts.
//
// A batch can be waited for (`dependency::on`) by any job. While it is open, or has jobs that have
// not ended, more can be pushed into it, also by its own jobs.
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
  // Open: it has not ended, even without jobs, until it is closed. For jobs that come in parts.
  bool open = false;
  std::vector<job_spec> jobs{};          // pushed all, or none
  std::optional<job_spec> on_success{};  // when all of its jobs are done
  std::optional<job_spec> on_end{};      // when all of its jobs have ended, however
  std::optional<job_spec> on_failure{};  // when the first of them is dead or cancelled
  milliseconds keep_done{std::chrono::hours(24 * 7)};      // the batch itself, after success
  milliseconds keep_failed{std::chrono::hours(24 * 180)};  // ... after an end with failures

  friend bool operator==(const batch_spec&, const batch_spec&) = default;
};

enum class batch_state : std::uint8_t {
  open,     // more may come
  running,  // jobs have not ended
  done,     // all jobs were done
  failed    // all jobs have ended, some of them dead or cancelled
};
std::string_view to_string(batch_state state) noexcept;
std::optional<batch_state> batch_state_from(std::string_view word) noexcept;

struct batch_info {
  job_id id = 0;  // of the same numbers as jobs
  std::string name{};
  bool open = false;
  std::uint64_t total = 0;    // jobs that were ever in it, without its callbacks
  std::uint64_t pending = 0;  // that have not ended
  std::uint64_t failed = 0;   // that are dead or cancelled
  unix_time created_at{};
  unix_time ended_at{};  // the last time that all of it had ended
  unix_time due_at{};    // when it is forgotten
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

// The order in which jobs of one push can be added, so that each comes after those it waits for.
// An error names a step that is there twice, one that is not there, or the steps of a cycle.
result<std::vector<std::size_t>> order_of_steps(const std::vector<job_spec>& jobs);

// What a batch from outside must keep to; an error names the job and the field.
void_result validate(const batch_spec& spec);

}  // namespace sluice::jobs
