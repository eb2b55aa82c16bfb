#pragma once

// The CPU time of this process so far, for workloads that measure idle threads.

#include <ctime>

namespace sluice::bench {

inline double process_cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace sluice::bench
