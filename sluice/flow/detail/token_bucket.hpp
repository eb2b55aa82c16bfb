#pragma once

// The arithmetic of a rate limiter: tokens as exact fractions of a rate. Pure, not thread-safe.
//
// `count` tokens are added in `per` nanoseconds. The level is kept in units of 1/per token, so each
// nanosecond adds `count` units, and nothing is ever rounded. 128 bits hold every product.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>

#include "sluice/base/check.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/flow/rate.hpp"

namespace sluice::detail {

class token_bucket {
 public:
  token_bucket(rate r, std::int64_t burst, std::int64_t initial, time_point now) noexcept
      : last_(now) {
    adopt(r, burst);
    check(initial >= -1 && initial <= burst, "sluice::rate_limiter",
          "between 0 and a burst of initial tokens");
    level_ = units(initial < 0 ? burst : initial);
  }

  rate speed() const noexcept { return rate_; }
  std::int64_t burst() const noexcept { return burst_; }
  std::int64_t whole() const noexcept {
    return static_cast<std::int64_t>(std::min(level_, units(burst_)) / per_);
  }

  // Adds the tokens up to `now`. The level stops at the burst, plus the tokens set aside for a
  // waiter that is not served yet.
  void refill(time_point now, std::int64_t set_aside) noexcept {
    if (now <= last_) return;
    const auto elapsed = static_cast<std::uint64_t>((now - last_).count());
    last_ = now;
    level_ = std::min(level_ + wide{elapsed} * count_,
                      std::max(level_, units(burst_) + units(set_aside)));
  }
  void spill() noexcept { level_ = std::min(level_, units(burst_)); }

  bool take(std::int64_t n) noexcept {
    if (level_ < units(n)) return false;
    level_ -= units(n);
    return true;
  }

  void give_back(std::int64_t n) noexcept { level_ += units(n); }

  // Returns the time at which n tokens are inside if no token is taken; the time of the latest
  // refill if they are inside already.
  time_point when(std::int64_t n) const noexcept {
    const wide wanted = units(n);
    if (level_ >= wanted) return last_;
    if (count_ == 0) return time_point::max();
    const wide wait = (wanted - level_ + count_ - 1) / count_;
    // A clock may be before its epoch: then the largest duration is the limit.
    const auto longest = static_cast<std::uint64_t>(
        (last_ > time_point{} ? time_point::max() - last_ : time_point::duration::max()).count());
    if (wait >= longest) return time_point::max();
    return last_ + std::chrono::nanoseconds(static_cast<std::int64_t>(wait));
  }

  void change(rate r, std::int64_t burst) noexcept {
    const auto tokens = level_ / per_;
    const auto fraction = level_ % per_;
    const auto before = per_;
    adopt(r, burst);
    // A fraction is rounded down: a change never makes a token.
    level_ = tokens * per_ + fraction * per_ / before;
    spill();
  }

 private:
  __extension__ using wide = unsigned __int128;

  wide units(std::int64_t n) const noexcept { return wide{static_cast<std::uint64_t>(n)} * per_; }

  void adopt(rate r, std::int64_t burst) noexcept {
    check(r.count >= 0, "sluice::rate_limiter", "a rate that is not negative");
    check(r.per.count() > 0, "sluice::rate_limiter", "a rate with a period longer than zero");
    check(burst >= 1, "sluice::rate_limiter", "a burst of at least 1");
    rate_ = r;
    burst_ = burst;
    const auto common = std::gcd(r.count, r.per.count());
    count_ = static_cast<std::uint64_t>(r.count / common);
    per_ = static_cast<std::uint64_t>(r.per.count() / common);
  }

  rate rate_;
  std::int64_t burst_ = 1;
  std::uint64_t count_ = 0;  // rate_ in lowest terms
  std::uint64_t per_ = 1;
  wide level_ = 0;
  time_point last_;
};

}  // namespace sluice::detail
