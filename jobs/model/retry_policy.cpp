#include "jobs/model/retry_policy.hpp"

#include <algorithm>
#include <cmath>

#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr std::uint32_t attempts_limit = 1'000'000;
constexpr milliseconds pause_limit = std::chrono::hours(24 * 366);

}  // namespace

void_result validate(const retry_policy& p) {
  if (p.attempts_max < 1 || p.attempts_max > attempts_limit) {
    return invalid_error("retry.attempts must be from 1 (no retry) to " +
                         std::to_string(attempts_limit));
  }
  if (p.first < milliseconds(0) || p.first > pause_limit) {
    return invalid_error("retry.first must be from 0 to 366 days");
  }
  if (p.longest < milliseconds(0) || p.longest > pause_limit) {
    return invalid_error("retry.longest must be from 0 to 366 days");
  }
  if (!(p.factor >= 1.0 && p.factor <= 1000.0)) {
    return invalid_error("retry.factor must be from 1 to 1000");
  }
  if (!(p.jitter >= 0.0 && p.jitter <= 1.0))
    return invalid_error("retry.jitter must be from 0 to 1");
  return done{};
}

milliseconds pause_after(const retry_policy& p, std::uint32_t failures, double chance) {
  check(failures >= 1, "sluice::jobs::pause_after", "at least one failure");
  check(chance >= 0.0 && chance < 1.0, "sluice::jobs::pause_after", "a chance in [0, 1)");
  if (p.first == milliseconds(0)) return p.first;  // 0 times an infinite factor would be NaN
  // In doubles: an overflow is infinity, which min() reduces to `longest`.
  const double grown =
      static_cast<double>(p.first.count()) * std::pow(p.factor, static_cast<double>(failures - 1));
  const double whole = std::min(grown, static_cast<double>(p.longest.count()));
  return milliseconds(std::llround(whole * (1.0 - p.jitter * chance)));
}

}  // namespace sluice::jobs
