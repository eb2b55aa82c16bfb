#pragma once

// Request and line sizes of the commands that push the lines of a file.

#include <algorithm>
#include <cstddef>

#include "jobs/model/job.hpp"
#include "jobs/model/time.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::cli {

inline constexpr std::size_t batch_jobs_max = 1000;
inline constexpr std::size_t batch_bytes_max = std::size_t{4} << 20;
// A job in JSON: its args, at most in base64, and all other fields.
inline constexpr std::size_t line_bytes_max = limits::args_bytes_max * 2;

// The server replies shortly before this deadline; the minimum leaves time for the reply. A push
// without a reply may have been done.
inline wait_limits push_limits(milliseconds wait) {
  constexpr milliseconds wait_least{1'000};
  return deadline::after(std::max(wait, wait_least));
}

}  // namespace sluice::jobs::cli
