#pragma once

// The moment at which a wait gives up, on some clock.
//
// Made from any std::chrono duration or time point without overflow. A duration that is zero,
// negative or not-a-number has passed already (the call still tries once); one too long to
// represent is `never`. A time point of a clock other than steady_clock is converted once, when the
// deadline is made.
//
// Guarantees: a plain value; never throws. Example: `deadline::after(250ms)`.

#include <chrono>

#include "sluice/base/clock.hpp"
#include "sluice/base/seam.hpp"

namespace sluice {

class deadline {
 public:
  constexpr deadline() noexcept = default;  // never
  static constexpr deadline never() noexcept { return {}; }

  template <class Rep, class Period>
  static deadline after(std::chrono::duration<Rep, Period> wait) noexcept {
    return from(seam::now(), wait, nullptr);
  }
  template <class Rep, class Period>
  static deadline after(std::chrono::duration<Rep, Period> wait, clock& on) noexcept {
    return from(on.now(), wait, &on);
  }

  template <class Clock, class Duration>
  static deadline at(std::chrono::time_point<Clock, Duration> when) noexcept {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
      return from(time_point{}, when.time_since_epoch(), nullptr);
    } else {
      using real = std::chrono::duration<long double>;
      return after(real(when.time_since_epoch()) - real(Clock::now().time_since_epoch()));
    }
  }
  static deadline at(time_point when, clock& on) noexcept { return deadline(when, &on); }

  constexpr bool is_never() const noexcept { return when_ == time_point::max(); }
  constexpr time_point when() const noexcept { return when_; }
  // Null means the real clock, on which a thread can sleep without a timer.
  constexpr clock* on() const noexcept { return clock_; }

  bool passed() const noexcept {
    if (is_never()) return false;
    return (clock_ == nullptr ? seam::now() : clock_->now()) >= when_;
  }

 private:
  constexpr deadline(time_point when, clock* on) noexcept : when_(when), clock_(on) {}

  template <class Rep, class Period>
  static deadline from(time_point start, std::chrono::duration<Rep, Period> wait,
                       clock* on) noexcept {
    // A long double holds every 64-bit count exactly, so the comparison cannot overflow.
    using real = std::chrono::duration<long double, time_point::period>;
    const real length(wait);
    if (!(length.count() > 0)) return deadline(time_point::min(), on);
    // A manual clock may be before its epoch: then the largest duration is the limit.
    const real longest(start > time_point{} ? time_point::max() - start
                                            : time_point::duration::max());
    if (length >= longest) return deadline(time_point::max(), on);
    return deadline(start + std::chrono::duration_cast<time_point::duration>(length), on);
  }

  time_point when_ = time_point::max();
  clock* clock_ = nullptr;
};

}  // namespace sluice
