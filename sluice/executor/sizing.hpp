#pragma once

// Computes how many threads a pool needs to keep the processors busy, given the share of time that
// a function waits.
//
// Functions that only compute need one thread per core. A function that waits nine tenths of its
// time leaves its core to nine others meanwhile, so ten threads keep one core busy. In general:
// cores x (1 + wait / compute).
//
// `recommended_threads` is that formula, for two known times. With `sizing::adaptive` a thread_pool
// measures them on the functions that it runs, and moves its upper limit of threads between core
// and max.

#include <chrono>
#include <cstddef>
#include <functional>

#include "sluice/base/this_thread.hpp"

namespace sluice {

// Returns the formula rounded to the nearest, at least 1, at most recommended_threads_max. Zero
// cores count as one; a negative time or a NaN counts as zero. Returns `cores` if both times are 0,
// and recommended_threads_max if only `compute` is 0 or the ratio is infinite.
inline constexpr std::size_t recommended_threads_max = 1U << 16;
std::size_t recommended_threads(std::size_t cores, double wait, double compute) noexcept;

template <class Rep1, class Period1, class Rep2, class Period2>
std::size_t recommended_threads(std::size_t cores, std::chrono::duration<Rep1, Period1> wait,
                                std::chrono::duration<Rep2, Period2> compute) noexcept {
  using seconds = std::chrono::duration<double>;
  return recommended_threads(cores, seconds(wait).count(), seconds(compute).count());
}

namespace sizing {

// Options of a thread_pool that sizes itself. It compares the processor time of its threads with
// the elapsed time, minus the time that a thread was runnable without a processor (if the kernel
// has /proc/thread-self/schedstat), so a busy machine is not mistaken for functions that wait. Long
// functions are measured every time, short ones rarely enough that measuring takes less than 1% of
// the time.
struct adaptive {
  std::size_t cores = 0;  // to keep busy; 0: all that the process may use
  // The number of measured functions to average over; at least 1. The limit is raised as soon as
  // the average requires it, and lowered after `window` functions in a row required less.
  std::size_t window = 32;
  // Returns the times of the calling thread since it started; empty: those of the operating system.
  std::function<seam::thread_times()> measure{};
};

// The averages, and the number of threads they recommend. Not thread-safe: the pool guards it.
class meter {
 public:
  meter(const adaptive& o, std::size_t least, std::size_t most);

  // Adds the times of one function. Returns the number of threads to have from now on.
  std::size_t add(const seam::thread_times& took) noexcept;

  std::size_t threads() const noexcept { return threads_; }
  std::chrono::nanoseconds wait() const noexcept { return as_time(wait_); }
  std::chrono::nanoseconds compute() const noexcept { return as_time(compute_); }

  // Returns the number of functions to skip before the next measurement, after one of length
  // `took`.
  static std::size_t skip_after(std::chrono::nanoseconds took) noexcept;

 private:
  static std::chrono::nanoseconds as_time(double ns) noexcept {
    return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(ns));
  }

  // Constant after construction.
  const std::size_t cores_;
  const std::size_t least_;
  const std::size_t most_;
  const std::size_t window_;

  std::size_t threads_;
  std::size_t samples_ = 0;   // up to window_
  double wait_ = 0;           // averages, in ns
  double compute_ = 0;
  std::size_t lower_for_ = 0;   // functions in a row that required fewer threads
  std::size_t lower_to_ = 0;    // the most that one of them required
};

}  // namespace sizing
}  // namespace sluice
