#include "sluice/flow/retry_budget.hpp"

#include <algorithm>

#include "sluice/base/check.hpp"

namespace sluice {
namespace {

constexpr std::int64_t one = 1'000'000;

std::int64_t millionths(double n) noexcept {
  return static_cast<std::int64_t>(n * one);
}

}  // namespace

retry_budget::retry_budget(options o)
    : per_call_(millionths(o.ratio)), most_(millionths(o.saved_max)), left_(millionths(o.reserve)) {
  check(o.ratio >= 0 && o.ratio <= 1'000, "sluice::retry_budget", "a ratio between 0 and 1000");
  check(o.reserve >= 0 && o.saved_max >= o.reserve && o.saved_max >= 1 && o.saved_max <= 1e9,
        "sluice::retry_budget", "a saved_max of at least 1 and the reserve, and up to 1e9");
}

void retry_budget::call() noexcept {
  auto seen = left_.load(relaxed);
  while (seen < most_ &&
         !left_.compare_exchange_weak(seen, std::min(seen + per_call_, most_), relaxed, relaxed)) {
  }
}

bool retry_budget::try_retry() noexcept {
  auto seen = left_.load(relaxed);
  while (seen >= one) {
    if (left_.compare_exchange_weak(seen, seen - one, relaxed, relaxed)) return true;
  }
  refused_.fetch_add(1, relaxed);
  return false;
}

double retry_budget::left() const noexcept {
  return static_cast<double>(left_.load(relaxed)) / one;
}

}  // namespace sluice
