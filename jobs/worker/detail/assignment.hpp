#pragma once

// A job leased by this worker, from the lease until the source has confirmed its end.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "jobs/worker/detail/inbox.hpp"
#include "jobs/worker/job_context.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/future/future.hpp"

namespace sluice::jobs::detail {

inline constexpr time_point never = time_point::max();

// The end of a job as reported to the source.
struct ack_report {
  std::optional<payload> result;
};
using end_report = std::variant<ack_report, failure, give_back>;

// Handlers access only `context`; all other members belong to the coordinator.
struct assignment {
  assignment(assignment_id number, leased_job leased) : id(number), context(std::move(leased)) {}

  const assignment_id id;
  job_context context;

  // waiting    leased, handler not started
  // running    handler started
  // ended      handler returned or was never started
  enum class phase : std::uint8_t { waiting, running, ended };
  phase at = phase::waiting;
  bool settled = false;              // nothing (more) to report to the source
  std::optional<end_report> report;  // being reported
  milliseconds lease_for{0};
  milliseconds took{0};
  time_point began{};
  future<void> coroutine;  // of a coroutine handler, used to cancel it

  // Due times; `never` if not scheduled.
  time_point beat_at = never;     // extend the lease; `never` while an extension is in progress
  time_point beat_sent{};         // when the last extension was requested
  time_point lease_ends = never;  // lower bound known to this worker
  time_point limit_at = never;    // the job's time limit
  time_point give_up_at = never;  // report for a handler that does not stop
  time_point retry_at = never;    // report the end again
  std::optional<retry_delays> delays;

  // Progress and log lines of the running handler.
  std::size_t notes_out = 0;            // calls in progress
  bool report_waits_for_notes = false;  // an ended attempt rejects notes
  time_point notes_sent = time_point::min();
  time_point notes_at = never;  // send the collected notes

  time_point due = never;  // the earliest of these times, the key in the coordinator's due_

  bool runs() const noexcept { return at == phase::running; }
};

}  // namespace sluice::jobs::detail
