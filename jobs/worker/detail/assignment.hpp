#pragma once

// One job that this worker has leased, from the lease until the source knows what became of it.

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

// What the source is to be told about a job.
struct say_ack {
  std::optional<payload> result;
};
using last_word = std::variant<say_ack, failure, give_back>;

// Only `context` is touched by a handler; all else is the coordinator's.
struct assignment {
  assignment(ticket t, leased_job leased) : which(t), context(std::move(leased)) {}

  const ticket which;
  job_context context;

  // waiting    leased, not begun
  // running    its handler has begun
  // ended      its handler has ended, or never began
  enum class phase : std::uint8_t { waiting, running, ended };
  phase at = phase::waiting;
  bool settled = false;           // there is nothing (more) to tell the source
  std::optional<last_word> word;  // being told
  milliseconds lease_for{0};
  milliseconds took{0};
  time_point began{};
  future<void> coroutine;  // of a handler that is one: to cancel it

  // When something is to be done about it; `never` where nothing is.
  time_point beat_at = never;     // extend the lease; never while that is under way
  time_point beat_sent{};         // when that was last asked for
  time_point lease_ends = never;  // as far as is known here
  time_point limit_at = never;    // the job's time limit
  time_point give_up_at = never;  // answer for a handler that does not stop
  time_point retry_at = never;    // tell the source once more
  std::optional<retry_delays> delays;

  // What its handler says while it runs.
  std::size_t notes_out = 0;  // calls of the source that are under way
  bool word_waits = false;    // for those: nothing can be said of an attempt that has ended
  time_point notes_sent = time_point::min();
  time_point notes_at = never;  // send what was noted

  time_point due = never;  // the earliest of them, as the coordinator has it in its list

  bool runs() const noexcept { return at == phase::running; }
};

}  // namespace sluice::jobs::detail
