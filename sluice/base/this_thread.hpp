#pragma once

// The calling thread in the operating system: its name, the processors it may run on, and its
// times. The rest of the seam is seam.hpp.

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::seam {

// The length of the longest thread name, in bytes.
inline constexpr std::size_t thread_name_max = 15;

// Names the calling thread for debuggers, `top -H` and `perf`. Truncates a longer name.
void name_thread(std::string_view name) noexcept;

// Returns the processors that the calling thread may run on, in ascending order; never empty.
std::vector<unsigned> usable_cpus();

// Binds the calling thread to these processors. Returns false, and changes nothing, if it may run
// on none of them.
bool pin_thread(std::span<const unsigned> cpus) noexcept;

// Times of the calling thread. Only the difference of two readings on one thread is meaningful.
struct thread_times {
  std::chrono::nanoseconds wall{0};      // of the steady clock
  std::chrono::nanoseconds computing{0}; // on a processor
  std::chrono::nanoseconds runnable{0};  // waiting for a processor; 0 if unknown
};
thread_times this_thread_times() noexcept;

// Returns whether the kernel reports `runnable`.
bool runnable_time_is_known() noexcept;

}  // namespace sluice::seam
