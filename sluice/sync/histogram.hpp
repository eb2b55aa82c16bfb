#pragma once

// Counts values by size and returns quantiles, such as the time of the slowest hundredth, in
// bounded memory for any range of values.
//
// Use it for times and sizes of operations on many threads. Prefer `counter` when only the total
// matters. Recording every event of a hot path costs more than the path: sample it.
//
// Guarantees: any thread may call anything. `read` includes every record that happened before the
// call, and any subset of the concurrent ones. A quantile is never below the true one, and at
// most 1/16 above it; values below 16, the smallest, the largest, count and sum are exact.
// Cost: 8 KB, no allocation; `record` is three relaxed atomic operations, as long as the extremes
// do not move. `read` copies the counts.
//
//     histogram latency;
//     latency.record(took);                              // std::chrono::nanoseconds, or a number
//     log("p99 {} ns", latency.read().quantile(0.99));

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/base/atomic.hpp"

namespace sluice {

class histogram {
 public:
  class snapshot;

  histogram() = default;
  histogram(const histogram&) = delete;
  histogram& operator=(const histogram&) = delete;

  void record(std::uint64_t value) noexcept;
  // In nanoseconds; a negative time counts as zero.
  void record(std::chrono::nanoseconds time) noexcept {
    record(static_cast<std::uint64_t>(time.count() > 0 ? time.count() : 0));
  }

  snapshot read() const;

 private:
  // Each power of two is divided into `steps` buckets; below `steps`, each value has its own.
  static constexpr unsigned steps_bits = 4;
  static constexpr std::size_t steps = std::size_t{1} << steps_bits;
  static constexpr std::size_t buckets = (64 - steps_bits + 1) * steps;

  static std::size_t bucket_of(std::uint64_t value) noexcept;
  static std::uint64_t largest_in(std::size_t bucket) noexcept;

  // relaxed throughout: the counts order nothing.
  std::array<atomic<std::uint64_t>, buckets> counts_{};
  atomic<std::uint64_t> sum_{0};
  atomic<std::uint64_t> least_{std::numeric_limits<std::uint64_t>::max()};
  atomic<std::uint64_t> most_{0};
};

// The contents of a histogram at one moment: a plain value.
class histogram::snapshot {
 public:
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t sum() const noexcept { return sum_; }
  // All of these are 0 without a value.
  std::uint64_t smallest() const noexcept { return count_ > 0 ? least_ : 0; }
  std::uint64_t largest() const noexcept { return count_ > 0 ? most_ : 0; }
  double mean() const noexcept;
  // The value that a share `q` of all values does not exceed. `q` from 0 to 1, else a broken
  // contract.
  std::uint64_t quantile(double q) const noexcept;

 private:
  friend class histogram;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t least_ = 0;
  std::uint64_t most_ = 0;
};

}  // namespace sluice
