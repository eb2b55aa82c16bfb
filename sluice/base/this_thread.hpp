#pragma once

// What the operating system knows about the calling thread: its name, the processors it may run
// on, and how much of its time it spent computing. The rest of the seam is seam.hpp.

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::seam {

// The longest name that the operating system shows.
inline constexpr std::size_t thread_name_max = 15;

// Names the calling thread for debuggers, `top -H` and `perf`. What is too long is cut off.
void name_thread(std::string_view name) noexcept;

// The processors that the calling thread may run on, in ascending order; never empty.
std::vector<unsigned> usable_cpus();

// Binds the calling thread to these processors. False: it may run on none of them, and nothing
// has changed.
bool pin_thread(std::span<const unsigned> cpus) noexcept;

// How the calling thread spent its life so far. Only differences between two readings on one
// thread mean anything.
struct thread_times {
  std::chrono::nanoseconds wall{0};      // by the steady clock
  std::chrono::nanoseconds computing{0}; // on a processor
  std::chrono::nanoseconds runnable{0};  // wanted one, but others had it; 0 where not known
};
thread_times this_thread_times() noexcept;

// True when `runnable` is known here.
bool runnable_time_is_known() noexcept;

}  // namespace sluice::seam
