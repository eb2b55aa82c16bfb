#pragma once

// The CPU time that this process uses while all its threads are idle.

#include <time.h>

#include <algorithm>
#include <chrono>

#include "sluice/base/seam.hpp"

namespace sluice::testing {

inline std::chrono::nanoseconds process_cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// The least over a few windows of 200 ms: threads on their way to sleep, and a sanitizer's own
// thread, disturb a single window.
inline std::chrono::nanoseconds least_cpu_time_while_idle(std::chrono::nanoseconds enough) {
  auto least = std::chrono::nanoseconds::max();
  for (int window = 0; window < 10 && least >= enough; ++window) {
    const auto before = process_cpu_time();
    seam::this_parker().park_until(seam::now() + std::chrono::milliseconds(200));
    least = std::min(least, process_cpu_time() - before);
  }
  return least;
}

}  // namespace sluice::testing
