#pragma once

// How often and after which pause a failed job is retried: exponential backoff with jitter.
//
// The n-th failure is followed by a pause of first * factor^(n-1), at most `longest`, reduced at
// random by up to `jitter` (a share from 0 to 1): jobs that failed together because one dependency
// was down do not all retry at once. After `attempts_max` attempts the job is dead.
//
//     retry_policy{.attempts_max = 5, .first = 1s, .factor = 2.0}   // 1s 2s 4s 8s, then dead

#include <cstdint>
#include <string>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

struct retry_policy {
  std::uint32_t attempts_max = 25;  // 1: no retry; at least 1
  milliseconds first{15'000};
  double factor = 2.0;
  milliseconds longest{std::chrono::hours(6)};
  double jitter = 0.25;

  friend bool operator==(const retry_policy&, const retry_policy&) = default;
};

// Checks a policy from a client; the error names the field.
void_result validate(const retry_policy& policy);

// Returns the pause after the `failures`-th failure (at least 1). `chance` is uniform in [0, 1).
milliseconds pause_after(const retry_policy& policy, std::uint32_t failures, double chance);

}  // namespace sluice::jobs
