#include "sluice/sync/spin_lock.hpp"

#include "sluice/sync/backoff.hpp"

namespace sluice {
namespace {

// Long enough that the owner completes several critical sections before another core takes the
// cache line, short enough that a hand-over stays well below a context switch.
constexpr backoff::options pauses{.least_pauses = 16, .most_pauses = 256, .yields = 256};

}  // namespace

void spin_lock::lock_slowly() noexcept {
  backoff again(pauses);
  do {
    again.pause();
  } while (word_.load(relaxed) != 0 || !try_lock());
}

status spin_lock::lock(const wait_limits& limits) noexcept {
  if (limits.stop.stop_requested()) return status::stopped;
  for (backoff again(pauses); word_.load(relaxed) != 0 || !try_lock(); again.pause()) {
    if (limits.stop.stop_requested()) return status::stopped;
    if (limits.deadline.passed()) return status::timed_out;
  }
  return status::ok;
}

}  // namespace sluice
