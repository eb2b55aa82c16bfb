#pragma once

// The atomic type of the library, `sluice::atomic`. Another build of the same sources can replace
// it, to add a scheduling point and a model of weak memory to each access.
//
// In a normal build it is std::atomic, without any cost. A build under a deterministic scheduler
// defines SLUICE_SEAM_ATOMIC as the header that declares its own `sluice::atomic`. The rest of the
// seam (parking, pausing, time, threads) is seam.hpp.

#include <atomic>

#if defined(SLUICE_SEAM_ATOMIC)
#include SLUICE_SEAM_ATOMIC
#else
namespace sluice {

template <class T>
using atomic = std::atomic<T>;

inline void atomic_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

// A relaxed load for diagnosis only: it is no scheduling point of a simulated build, so the
// program's behaviour must not depend on the value.
template <class T>
T load_untracked(const atomic<T>& at) noexcept {
  return at.load(std::memory_order_relaxed);
}

}  // namespace sluice
#endif

namespace sluice {

// For numbers that only a failed contract reads: an access is no scheduling point of a simulated
// build, so the program's behaviour must not depend on them.
template <class T>
using uncontrolled_atomic = std::atomic<T>;

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

}  // namespace sluice
