#pragma once

// The only interface of the library to the operating system's scheduler: parking and waking a
// thread, pausing, yielding, reading the time, numbering threads.
//
// A build with SLUICE_SIM links another seam.cpp, in which a deterministic scheduler runs one
// thread at a time and time is virtual. So code outside base/ must not call the OS,
// std::this_thread or a standard lock (tests/architecture checks this).

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/base/detail/per_thread.hpp"

namespace sluice::seam {

using time_point = std::chrono::steady_clock::time_point;
using thread = std::jthread;

time_point now() noexcept;

// A lock for base itself, which cannot use sync/: it guards a clock's timers.
using os_mutex = std::mutex;

// Returns a small number for the calling thread, from 1 to thread_number_max, that no other running
// thread has. Numbers of threads that ended are reused.
inline constexpr std::uint32_t thread_number_max = (1U << 24) - 2;
std::uint32_t first_thread_number() noexcept;
extern constinit thread_local std::uint32_t known_thread_number;
SLUICE_PER_THREAD inline std::uint32_t thread_number() noexcept {
  const auto known = known_thread_number;
  return known != 0 ? known : first_thread_number();
}

// One iteration of a spin loop.
inline void pause() noexcept {
#if defined(SLUICE_SIM)
  void sim_pause() noexcept;
  sim_pause();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Gives this core to another runnable thread.
void yield() noexcept;

// How often a thread yields before it sleeps. Zero in a simulated build: there a yield runs the
// other threads until they have done the awaited work, and no schedule would reach the sleep.
#if defined(SLUICE_SIM)
inline constexpr int yields_before_sleep = 0;
#else
inline constexpr int yields_before_sleep = 8;
#endif

// Sleeps for about this long. For a spin loop whose lock holder is probably not running.
void nap(std::chrono::microseconds duration) noexcept;

// Returns whether spinning can pay off: false if there is only one core.
bool can_spin() noexcept;

// An asymmetric fence pair, for two sides of which one runs often and the other seldom: `light` is
// a compiler barrier, `heavy` makes every running thread of the process pass a full fence. With a
// light barrier on one side and a heavy one on the other, each side's earlier store is ordered
// before its later load. If the kernel has no membarrier, both are full fences.
void heavy_barrier() noexcept;
bool light_barrier_is_free() noexcept;

namespace detail {
extern std::atomic<bool> free_light_barrier;
}
#if defined(SLUICE_SIM)
void light_barrier() noexcept;
#else
inline void light_barrier() noexcept {
  if (detail::free_light_barrier.load(relaxed)) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}
#endif

// Puts one thread, its owner, to sleep. `unpark` sets a token; `park` takes the token and sleeps
// until it is set or the deadline has passed. A token set before `park` is not lost. A token may be
// left from an earlier wait, so the owner must check its condition again after each token. A parker
// is never freed.
//
// word_: 0 no token, the owner is awake; 1 token; 2 the owner sleeps or is about to.
class parker {
 public:
  // Only for the owner. Returns true if it took the token, false if the deadline passed first.
  bool park_until(time_point deadline) noexcept;
  void park() noexcept;

  // For any thread, at any time.
  void unpark() noexcept;

 private:
  bool take() noexcept;

  atomic<std::uint32_t> word_{0};
};

// Returns the calling thread's parker.
parker& this_parker() noexcept;

}  // namespace sluice::seam
