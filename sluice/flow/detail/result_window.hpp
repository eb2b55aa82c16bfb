#pragma once

// The sliding window of a circuit breaker, by count or by time: calls and failures among the last.
// Pure, not thread-safe.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/base/clock.hpp"

namespace sluice::detail {

class result_window {
 public:
  static constexpr std::int64_t slices = 10;

  // A window by time if `span` is not zero.
  result_window(std::uint32_t calls, std::chrono::nanoseconds span, time_point now)
      : slice_(std::max<std::int64_t>(span.count() / slices, 1)),
        by_time_(span.count() > 0),
        start_(now),
        last_(by_time_ ? 0 : calls, false) {
    check(span.count() >= 0, "sluice::circuit_breaker", "a window of time that is not negative");
    check(by_time_ || calls > 0, "sluice::circuit_breaker", "a window of at least one call");
  }

  void add(bool failed, time_point now) noexcept {
    if (by_time_) {
      slide(now);
      auto& newest = slice_of(newest_);
      ++newest.calls;
      if (failed) ++newest.failures;
    } else if (calls_ == last_.size()) {
      if (last_[at_]) --failures_;
      --calls_;
    }
    if (!by_time_) {
      last_[at_] = failed;
      at_ = (at_ + 1) % last_.size();
    }
    ++calls_;
    if (failed) ++failures_;
  }
  void clear() noexcept {
    calls_ = failures_ = 0;
    at_ = 0;
    by_slice_.fill({});
  }
  std::uint64_t calls() const noexcept { return calls_; }
  std::uint64_t failures() const noexcept { return failures_; }

 private:
  struct counts {
    std::uint64_t calls = 0;
    std::uint64_t failures = 0;
  };
  counts& slice_of(std::int64_t number) noexcept {
    return by_slice_[static_cast<std::size_t>(number % slices)];
  }
  // Empties the slices that have left the window.
  void slide(time_point now) noexcept {
    const auto number = std::max<std::int64_t>((now - start_).count() / slice_, newest_);
    for (auto left = std::min(number - newest_, slices); left > 0; --left) {
      auto& old = slice_of(number - left + 1);
      calls_ -= old.calls;
      failures_ -= old.failures;
      old = {};
    }
    newest_ = number;
  }

  const std::int64_t slice_;  // nanoseconds
  const bool by_time_;
  const time_point start_;
  std::uint64_t calls_ = 0;
  std::uint64_t failures_ = 0;
  // By count: the last results, as a ring.
  std::vector<bool> last_;
  std::size_t at_ = 0;
  // By time.
  std::array<counts, slices> by_slice_{};
  std::int64_t newest_ = 0;  // the number of the current slice
};

}  // namespace sluice::detail
