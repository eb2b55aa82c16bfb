#pragma once

// How often something may start: so many a second, and after a pause some at once.
//
// A token bucket, kept as one moment: when it would be full again. Nothing has to be refilled, and
// a bucket whose moment has passed is as good as none.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::jobs::detail {

class bucket {
 public:
  struct pace {
    std::chrono::nanoseconds gap{0};    // between two
    std::chrono::nanoseconds slack{0};  // how far ahead of that some may be

    // `burst` zero: what a tenth of a second brings, at least one.
    static pace of(double rate, std::uint32_t burst) {
      constexpr double longest_ns = 1e18;  // thirty years: some of them still fit a time_point
      const double gap_ns = std::min(1e9 / rate, longest_ns);
      const double ahead = std::max(1.0, burst > 0 ? burst : rate / 10) - 1;
      const double slack_ns = std::min(gap_ns * ahead, longest_ns);
      return {std::chrono::nanoseconds(static_cast<std::int64_t>(gap_ns)),
              std::chrono::nanoseconds(static_cast<std::int64_t>(slack_ns))};
    }
  };

  // When the next may start.
  time_point next(const pace& p) const noexcept { return full_at_ - p.slack; }
  bool may(const pace& p, time_point now) const noexcept { return next(p) <= now; }
  void take(const pace& p, time_point now) noexcept { full_at_ = std::max(full_at_, now) + p.gap; }
  // A start in the future, for one that has to wait.
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
