#include "sluice/sync/spin_lock.hpp"

#include "sluice/sync/backoff.hpp"

namespace sluice {
namespace {

// Long enough that the owner gets several sections done before its cache line is taken away,
// short enough that a hand-over stays well below a context switch.
constexpr backoff::options patience{.least_pauses = 16, .most_pauses = 256, .yields = 256};

}  // namespace

void spin_lock::lock_slowly() noexcept {
  backoff again(patience);
  do {
    again.pause();
  } while (word_.load(relaxed) != 0 || !try_lock());
}

status spin_lock::lock_within(deadline until, std::stop_token stop) noexcept {
  if (stop.stop_requested()) return status::stopped;
  for (backoff again(patience); word_.load(relaxed) != 0 || !try_lock(); again.pause()) {
    if (stop.stop_requested()) return status::stopped;
    if (until.passed()) return status::timed_out;
  }
  return status::ok;
}

}  // namespace sluice
