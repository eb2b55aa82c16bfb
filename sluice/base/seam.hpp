#pragma once

// The one place where the library touches the operating system's scheduler: parking and waking a
// thread, pausing, yielding, asking for the time, naming the calling thread.
//
// A build with SLUICE_SIM links another seam.cpp, in which a deterministic scheduler runs one
// thread at a time and time is virtual. So nothing outside base/ may call the OS, std::this_thread
// or a standard lock (a test looks).

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/base/per_thread.hpp"

namespace sluice::seam {

using time_point = std::chrono::steady_clock::time_point;
using thread = std::jthread;

time_point now() noexcept;

// A lock for base itself, where a spin_lock or mutex of ours cannot be: around a clock's timers.
using os_mutex = std::mutex;

// A short, distinct number for the calling thread, from 1 to thread_number_max. Numbers of threads
// that ended are used again.
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

// Lets another runnable thread have this core.
void yield() noexcept;

// How often a thread yields before it sleeps. In a schedule that is only a longer way to the same
// sleep, on which the others would always get done what it waits for.
#if defined(SLUICE_SIM)
inline constexpr int yields_before_sleep = 0;
#else
inline constexpr int yields_before_sleep = 8;
#endif

// Gives the core away for about this long, for a spin that has gone on too long to be right.
void nap(std::chrono::microseconds about) noexcept;

// True when spinning can be worth it: there is a second core for the other side to run on.
bool can_spin() noexcept;

// A fence pair for the case in which one side runs often and the other seldom: `light` costs
// nothing but a compiler barrier, `heavy` makes every running thread of the process pass a full
// fence. A light on one side and a heavy on the other order a store before a later load on both.
// Where the kernel has no membarrier, both are full fences.
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

// The place where one thread sleeps. `unpark` gives it one token; `park` takes the token, sleeping
// until it is there or the deadline has passed. A token given before the wait is not lost. A token
// may also be left over from a wait that ended without it, so what is waited for must be looked at
// again after every token. A parker is never freed.
//
// word: 0 no token, nobody sleeps; 1 token; 2 the owner sleeps or is about to.
class parker {
 public:
  // Only the owner calls these. True: the token was taken. False: the deadline came first.
  bool park_until(time_point deadline) noexcept;
  void park() noexcept;

  // Anyone, at any time.
  void unpark() noexcept;

 private:
  bool take() noexcept;

  atomic<std::uint32_t> word_{0};
};

// The calling thread's own parker.
parker& this_parker() noexcept;

}  // namespace sluice::seam
