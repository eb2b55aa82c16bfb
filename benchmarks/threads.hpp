#pragma once

// Runs threads that work together for a given time, and times them without their start-up.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// Tells the threads of a run when its time is over. Looking costs as good as nothing: the line is
// written once.
class run_clock {
 public:
  bool is_over() const noexcept { return over_.load(std::memory_order_relaxed); }
  // relaxed: the threads only stop because of it; what they computed is read after joining them.
  void end() noexcept { over_.store(true, std::memory_order_relaxed); }

 private:
  alignas(128) std::atomic<bool> over_ = false;
};

// Works until the clock says it is over (or another thread makes it stop), then returns how many
// operations it did that count.
using thread_body = std::function<std::uint64_t(const run_clock&)>;

// Runs every body in a thread of its own. All threads first gather at a gate; the time runs from
// its opening until the last thread has ended, which is what happens soon after `duration`.
tally run_threads(seconds duration, std::vector<thread_body> bodies);

// The same for `count` copies of one body, which is told its index.
tally run_threads(seconds duration, int count,
                  const std::function<std::uint64_t(int, const run_clock&)>& body);

}  // namespace sluice::bench
