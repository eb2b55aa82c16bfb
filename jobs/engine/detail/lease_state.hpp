#pragma once

// The lease of a job, until the commit of its end. Its timer fires when it expires.

#include <cstdint>
#include <optional>
#include <string>

#include "jobs/engine/detail/queue_state.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

class core;

struct lease_state final : timer {
  bool claim() noexcept override { return true; }
  void fire() noexcept override;

  core* owner = nullptr;
  job_ptr job;  // without its args if those are large
  queue_state* queue = nullptr;
  std::uint64_t weight = 0;
  std::uint64_t key = 0;
  line_number line = 0;  // of its job's key, if it has one
  std::string worker;
  milliseconds lasts{0};
  time_point began{};
  unix_time began_at{};
  time_point until{};
  bool is_unstored = false;  // its push is not committed, see core::hand_over
  bool is_trimmed = false;
  bool is_ending = false;     // its end is staged
  bool is_cancelled = false;  // the job has ended; the worker still has the lease
  std::optional<jobs::progress> progress;

  std::uint32_t attempt() const noexcept { return job->attempts + 1; }
};

}  // namespace sluice::jobs::detail
