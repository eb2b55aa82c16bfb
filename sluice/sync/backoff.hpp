#pragma once

// Waits a little longer after every failed try, by a random amount, so that two threads that
// collided do not collide again at the same time.
//
// Use it in a retry loop while another thread is about to finish: try-lock and undo, a CAS that
// keeps failing. Prefer a primitive that parks (event, condition) when the other side may take
// long.
//
// Guarantees: the bound doubles from `least` to `most`; each wait is uniform in [bound/2, bound],
// so neither side can lose for ever. The same seed produces the same waits. Belongs to one
// thread. `pause` stays on the core for short waits, then yields it, then naps.
// Cost: 40 bytes, no allocation.
//
//     for (backoff again; !try_both(); ) again.pause();

#include <chrono>
#include <cstdint>

#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"

namespace sluice {

struct backoff_options {
  std::uint32_t least_pauses = 16;
  std::uint32_t most_pauses = 1024;
  std::uint32_t yields = 64;  // after the longest pause; then naps of 50 us to 1 ms
};

class backoff {
 public:
  using options = backoff_options;

  explicit backoff(options o = {}, std::uint64_t seed = thread_random().next()) noexcept;

  // Returns the number of processor pauses of the next wait; advances the state.
  std::uint32_t next_pauses() noexcept;

  void pause() noexcept;
  void reset() noexcept;

 private:
  options options_;
  random random_;
  std::uint32_t bound_;
  std::uint32_t longest_ = 0;  // waits taken at the largest bound
};

}  // namespace sluice
