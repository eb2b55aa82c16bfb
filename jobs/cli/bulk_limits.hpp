#pragma once

// How many jobs the commands that push lines of a file send at a time, and how long a line may be.

#include <algorithm>
#include <cstddef>

#include "jobs/model/job.hpp"
#include "jobs/model/time.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::cli {

inline constexpr std::size_t batch_jobs_max = 1000;
inline constexpr std::size_t batch_bytes_max = std::size_t{4} << 20;
// A job in JSON: its args, in base64 at worst, and all else that it may have.
inline constexpr std::size_t line_bytes_max = limits::args_bytes_max * 2;

// The server is asked for an answer shortly before this, and there must be time for it to come: a
// push that is given up on may have been done.
inline wait_limits push_limits(milliseconds wait) {
  constexpr milliseconds wait_least{1'000};
  return deadline::after(std::max(wait, wait_least));
}

}  // namespace sluice::jobs::cli
