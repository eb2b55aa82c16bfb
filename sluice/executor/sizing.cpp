#include "sluice/executor/sizing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice {
namespace {

// Reading the times of a thread twice takes some microseconds.
constexpr std::chrono::nanoseconds time_between_measurements{400'000};
constexpr std::size_t skips_max = 1023;

}  // namespace

std::size_t recommended_threads(std::size_t cores, double wait, double compute) noexcept {
  const auto at_least_zero = [](double time) { return time > 0 ? time : 0; };  // a NaN gives 0
  const double waits = at_least_zero(wait);
  const double computes = at_least_zero(compute);
  const auto processors = static_cast<double>(std::max<std::size_t>(cores, 1));
  const double ratio = waits > 0 ? waits / computes : 0;  // over zero: infinite
  const double threads = std::round(processors * (1 + ratio));
  // inf / inf is a NaN: the two cannot be compared, which counts as no times.
  if (std::isnan(threads)) return recommended_threads(cores, 0, 0);
  if (threads >= static_cast<double>(recommended_threads_max)) return recommended_threads_max;
  return static_cast<std::size_t>(threads);
}

namespace sizing {

meter::meter(const adaptive& o, std::size_t least, std::size_t most)
    : cores_(o.cores != 0 ? o.cores : seam::usable_cpus().size()),
      least_(least),
      most_(most),
      window_(o.window),
      threads_(std::clamp(cores_, least, most)) {
  check(window_ >= 1, "sluice::sizing::adaptive", "a window of at least one function");
}

std::size_t meter::add(const seam::thread_times& took) noexcept {
  const auto ns = [](std::chrono::nanoseconds time) {
    return static_cast<double>(std::max(time, std::chrono::nanoseconds::zero()).count());
  };
  // A plain average of the first `window_` functions, then an exponential one.
  samples_ = std::min(samples_ + 1, window_);
  const double share = 1.0 / static_cast<double>(samples_);
  wait_ += (ns(took.wall - took.computing - took.runnable) - wait_) * share;
  compute_ += (ns(took.computing) - compute_) * share;

  const auto wanted = std::clamp(recommended_threads(cores_, wait_, compute_), least_, most_);
  if (wanted >= threads_) {
    threads_ = wanted;
    lower_for_ = 0;
    lower_to_ = 0;
  } else {
    lower_to_ = std::max(lower_to_, wanted);
    if (++lower_for_ >= window_) {
      threads_ = std::exchange(lower_to_, 0);
      lower_for_ = 0;
    }
  }
  return threads_;
}

std::size_t meter::skip_after(std::chrono::nanoseconds took) noexcept {
  if (took.count() <= 0) return skips_max;
  return std::min(static_cast<std::size_t>(time_between_measurements / took), skips_max);
}

}  // namespace sizing
}  // namespace sluice
