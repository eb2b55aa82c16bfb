#pragma once

// How many threads a pool should have: as many as keep the processors busy, given how much of its
// time a function waits.
//
// A function that only computes needs one thread for each core. One that waits nine tenths of its
// time leaves its core to nine others meanwhile, so ten threads keep one core busy. In general:
// cores x (1 + wait / compute).
//
// `recommended_threads` is that formula, for who knows the two times. `sizing::adaptive` lets a
// thread_pool measure them on the functions that it runs, and move its upper limit of threads
// between core and max.

#include <chrono>
#include <cstddef>
#include <functional>

#include "sluice/base/this_thread.hpp"

namespace sluice {

// Rounded to the nearest, at least 1, at most recommended_threads_max. No cores count as one.
// A time that is negative or not-a-number counts as zero. No time at all: as many as cores. Only
// waiting, or a ratio without end: recommended_threads_max.
inline constexpr std::size_t recommended_threads_max = 1U << 16;
std::size_t recommended_threads(std::size_t cores, double wait, double compute) noexcept;

template <class Rep1, class Period1, class Rep2, class Period2>
std::size_t recommended_threads(std::size_t cores, std::chrono::duration<Rep1, Period1> wait,
                                std::chrono::duration<Rep2, Period2> compute) noexcept {
  using seconds = std::chrono::duration<double>;
  return recommended_threads(cores, seconds(wait).count(), seconds(compute).count());
}

namespace sizing {

// How a thread_pool sizes itself. What it measures is the time of its threads on a processor
// against the time that passed, less the time that they stood ready while others had the
// processors (where the kernel tells: /proc/thread-self/schedstat): so a busy machine is not
// mistaken for functions that wait. Long functions are measured every time, short ones seldom
// enough that measuring takes less than a hundredth of the time.
struct adaptive {
  std::size_t cores = 0;  // to keep busy; 0: those that the process may use
  // Over how many measured functions it averages; at least 1. The limit is raised as soon as the
  // average asks for it, and lowered when so many functions in a row have asked for less.
  std::size_t window = 32;
  // How the calling thread spent its life so far; empty: as the operating system says.
  std::function<seam::thread_times()> measure{};
};

// The averages behind it, and what follows from them. Not thread-safe: the pool guards it.
class meter {
 public:
  meter(const adaptive& how, std::size_t least, std::size_t most);

  // One function took this long. Gives the number of threads to have from now on.
  std::size_t add(const seam::thread_times& took) noexcept;

  std::size_t threads() const noexcept { return threads_; }
  std::chrono::nanoseconds wait() const noexcept { return as_time(wait_); }
  std::chrono::nanoseconds compute() const noexcept { return as_time(compute_); }

  // After a function that took so long: how many to let pass before the next is measured.
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
  std::size_t lower_for_ = 0;   // so many in a row asked for fewer threads,
  std::size_t lower_to_ = 0;    // and this was the most that one of them asked for
};

}  // namespace sizing
}  // namespace sluice
