#pragma once

// The seam for atomics: every atomic in the library is a `sluice::atomic`, so that another build of
// the same sources can put a scheduling point, and a model of weak memory, behind each access.
//
// In a normal build it is std::atomic and costs nothing. A build under a deterministic scheduler
// defines SLUICE_SEAM_ATOMIC as the header that declares its own `sluice::atomic`. The other half
// of the seam (parking, pausing, time, threads) is seam.hpp.

#include <atomic>

#if defined(SLUICE_SEAM_ATOMIC)
#include SLUICE_SEAM_ATOMIC
#else
namespace sluice {

template <class T>
using atomic = std::atomic<T>;

inline void atomic_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

// A relaxed load of what steers nothing but diagnosis: no schedule of a simulated build depends on
// it.
template <class T>
T glance(const atomic<T>& at) noexcept {
  return at.load(std::memory_order_relaxed);
}

}  // namespace sluice
#endif

namespace sluice {

// For numbers that no schedule depends on, because only a failed contract reads them: an access is
// no scheduling point of a simulated build.
template <class T>
using uncontrolled_atomic = std::atomic<T>;

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

}  // namespace sluice
