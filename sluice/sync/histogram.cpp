#include "sluice/sync/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sluice/base/check.hpp"

namespace sluice {

std::size_t histogram::bucket_of(std::uint64_t value) noexcept {
  if (value < steps) return value;
  // The highest bit is the power of two, the next steps_bits are the position in it.
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - steps_bits;
  return (shift + 1) * steps + ((value >> shift) & (steps - 1));
}

std::uint64_t histogram::largest_in(std::size_t bucket) noexcept {
  if (bucket < steps) return bucket;
  const auto shift = bucket / steps - 1;
  const auto first = (steps + bucket % steps) << shift;
  return first + ((std::uint64_t{1} << shift) - 1);
}

void histogram::record(std::uint64_t value) noexcept {
  counts_[bucket_of(value)].fetch_add(1, relaxed);
  sum_.fetch_add(value, relaxed);
  for (auto seen = least_.load(relaxed); value < seen;) {
    if (least_.compare_exchange_weak(seen, value, relaxed, relaxed)) break;
  }
  for (auto seen = most_.load(relaxed); value > seen;) {
    if (most_.compare_exchange_weak(seen, value, relaxed, relaxed)) break;
  }
}

histogram::snapshot histogram::read() const {
  snapshot now;
  now.counts_.reserve(buckets);
  for (const auto& each : counts_) {
    now.counts_.push_back(each.load(relaxed));
    now.count_ += now.counts_.back();
  }
  now.sum_ = sum_.load(relaxed);
  now.least_ = least_.load(relaxed);
  now.most_ = most_.load(relaxed);
  return now;
}

double histogram::snapshot::mean() const noexcept {
  return count_ > 0 ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
}

std::uint64_t histogram::snapshot::quantile(double q) const noexcept {
  check(q >= 0 && q <= 1, "sluice::histogram", "a quantile from 0 to 1");
  if (count_ == 0) return 0;
  // The value at this place, counted from 1, in sorted order.
  const auto wanted = std::ceil(q * static_cast<double>(count_));
  const auto place = std::clamp(static_cast<std::uint64_t>(wanted), std::uint64_t{1}, count_);
  std::uint64_t passed = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    passed += counts_[bucket];
    // A concurrent record may have been counted and not have moved the extremes yet.
    if (passed >= place) return std::clamp(largest_in(bucket), smallest(), std::max(least_, most_));
  }
  return most_;
}

}  // namespace sluice
