#pragma once

// How much CPU this process has used, without the thread that asks: so a thread that watches and
// draws does not find itself in what it measures.

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
  const auto mine = time_on(CLOCK_THREAD_CPUTIME_ID);
  return time_on(CLOCK_PROCESS_CPUTIME_ID) - mine;
}

// The two clocks are not read at the same instant: what is nothing may come out a little below it.
inline std::chrono::nanoseconds cpu_of_others_since(std::chrono::nanoseconds before) {
  return std::max(cpu_of_others() - before, std::chrono::nanoseconds(0));
}

}  // namespace burst
