#include "sluice/sync/backoff.hpp"

#include <algorithm>

#include "sluice/base/check.hpp"

namespace sluice {

backoff::backoff(options o, std::uint64_t seed) noexcept
    : options_(o), random_(seed), bound_(o.least_pauses) {
  check(o.least_pauses > 0 && o.least_pauses <= o.most_pauses, "sluice::backoff",
        "0 < least_pauses <= most_pauses");
}

std::uint32_t backoff::next_pauses() noexcept {
  const auto half = bound_ / 2;
  const auto pauses = half + random_.below(bound_ - half + 1);
  if (bound_ < options_.most_pauses) {
    bound_ = bound_ > options_.most_pauses / 2 ? options_.most_pauses : bound_ * 2;
  } else {
    ++longest_;
  }
  return pauses;
}

void backoff::pause() noexcept {
  if (longest_ > options_.yields) {
    const auto times = std::min<std::uint32_t>(longest_ - options_.yields, 20);
    ++longest_;
    const auto bound = 50 * times;
    seam::nap(std::chrono::microseconds(bound / 2 + random_.below(bound - bound / 2 + 1)));
    return;
  }
  const bool longest = bound_ == options_.most_pauses;
  for (auto left = next_pauses(); left > 0; --left) seam::pause();
  if (longest) seam::yield();
}

void backoff::reset() noexcept {
  bound_ = options_.least_pauses;
  longest_ = 0;
}

}  // namespace sluice
