#pragma once

// CPU time used by this process, without the calling thread: so the thread that watches and draws
// does not measure itself.

#include <algorithm>
#include <chrono>
#include <ctime>

namespace burst {

inline std::chrono::nanoseconds time_on(clockid_t clock) {
  std::timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

inline std::chrono::nanoseconds cpu_of_others() {
  const auto own_time = time_on(CLOCK_THREAD_CPUTIME_ID);
  return time_on(CLOCK_PROCESS_CPUTIME_ID) - own_time;
}

// The two clocks are not read at the same instant, so the difference may be slightly negative.
inline std::chrono::nanoseconds cpu_of_others_since(std::chrono::nanoseconds before) {
  return std::max(cpu_of_others() - before, std::chrono::nanoseconds(0));
}

}  // namespace burst
