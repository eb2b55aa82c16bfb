#pragma once

// Runs threads that work together for a given time, and times them without their start-up.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// Signals the threads of a run that its time has passed. A check is cheap, since the cache line is
// written only once.
class run_clock {
 public:
  bool has_ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  // relaxed: the flag publishes no data; results are read after joining the threads.
  void end() noexcept { ended_.store(true, std::memory_order_relaxed); }

 private:
  alignas(128) std::atomic<bool> ended_ = false;
};

// Works until the clock has ended (or another thread stops it), then returns the number of its
// operations that count.
using thread_body = std::function<std::uint64_t(const run_clock&)>;

// Runs every body in a separate thread. All threads first gather at a gate; the time is measured
// from its opening until the last thread has ended, soon after `duration`.
tally run_threads(seconds duration, std::vector<thread_body> bodies);

// The same for `count` copies of one body, which gets its index.
tally run_threads(seconds duration, int count,
                  const std::function<std::uint64_t(int, const run_clock&)>& body);

}  // namespace sluice::bench
