// Sleeping and waking on a futex. Not in seam.cpp, because a simulated build uses it too.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/base/seam.hpp"

namespace sluice::seam {
namespace {

timespec to_timespec(time_point at) noexcept {
  // The futex takes an absolute CLOCK_MONOTONIC time, the clock of steady_clock.
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch());
  const auto count = ns.count() < 0 ? 0 : ns.count();
  return {.tv_sec = static_cast<time_t>(count / 1'000'000'000),
          .tv_nsec = static_cast<long>(count % 1'000'000'000)};
}

long futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* deadline) {
  return ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, nullptr,
                   FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

bool parker::take() noexcept {
  std::uint32_t token = 1;
  // acquire: pairs with the release in unpark, so that the waker's writes are visible.
  return word_.compare_exchange_strong(token, 0, acquire, relaxed);
}

void parker::park() noexcept {
  while (!take()) {
    std::uint32_t none = 0;
    if (!word_.compare_exchange_strong(none, 2, relaxed, relaxed)) continue;
    while (word_.load(relaxed) == 2) futex_wait(word_, 2, nullptr);
  }
}

bool parker::park_until(time_point deadline) noexcept {
  if (deadline == time_point::max()) {
    park();
    return true;
  }
  const auto until = to_timespec(deadline);
  while (!take()) {
    std::uint32_t none = 0;
    if (!word_.compare_exchange_strong(none, 2, relaxed, relaxed)) continue;
    while (word_.load(relaxed) == 2) {
      if (futex_wait(word_, 2, &until) == 0 || errno != ETIMEDOUT) continue;
      // Back to "awake", unless the token was set just now.
      std::uint32_t sleeping = 2;
      if (word_.compare_exchange_strong(sleeping, 0, relaxed, relaxed)) return false;
    }
  }
  return true;
}

void parker::unpark() noexcept {
  // release: pairs with the acquire in take.
  if (word_.exchange(1, release) == 2) {
    ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace sluice::seam
