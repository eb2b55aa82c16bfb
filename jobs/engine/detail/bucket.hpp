#pragma once

// Limits the rate of starts: a number per second, and a burst after a pause.
//
// A token bucket, stored as one time: when it will be full again. Nothing has to be refilled, and a
// bucket whose time has passed is equal to a new one.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::jobs::detail {

class bucket {
 public:
  struct pace {
    std::chrono::nanoseconds gap{0};    // between two starts
    std::chrono::nanoseconds slack{0};  // how far a burst may run ahead of that

    // `burst` zero: the starts of a tenth of a second, at least one.
    static pace of(double rate, std::uint32_t burst) {
      // Thirty years: a sum of a few such spans still fits a time_point.
      constexpr double longest_ns = 1e18;
      const double gap_ns = std::min(1e9 / rate, longest_ns);
      const double ahead = std::max(1.0, burst > 0 ? burst : rate / 10) - 1;
      const double slack_ns = std::min(gap_ns * ahead, longest_ns);
      return {std::chrono::nanoseconds(static_cast<std::int64_t>(gap_ns)),
              std::chrono::nanoseconds(static_cast<std::int64_t>(slack_ns))};
    }
  };

  // Returns the time of the next permitted start.
  time_point next(const pace& p) const noexcept { return full_at_ - p.slack; }
  bool may(const pace& p, time_point now) const noexcept { return next(p) <= now; }
  void take(const pace& p, time_point now) noexcept { full_at_ = std::max(full_at_, now) + p.gap; }
  // Returns a start in the future, reserved for a job that has to wait.
  time_point reserve(const pace& p, time_point now) noexcept {
    reserved_ = std::max({reserved_ + p.gap, next(p), now});
    return reserved_;
  }
  bool is_full(time_point now) const noexcept { return full_at_ <= now && reserved_ <= now; }

 private:
  time_point full_at_{};
  time_point reserved_{};
};

}  // namespace sluice::jobs::detail
