#include "sluice/sync/barrier.hpp"

#include "sluice/base/callback.hpp"

#include <mutex>

namespace sluice {

barrier::barrier(count_type expected, std::function<void()> completion)
    : completion_(std::move(completion)), expected_(expected), missing_(expected) {
  check(expected > 0, "sluice::barrier", "to expect at least one arrival");
}

barrier::~barrier() {
  const std::lock_guard hold(guard_);  // the last arrival may still be about to let go of it
  check(waiters_.empty(), "sluice::barrier", "no waiters at its destruction");
  watch::gone(this);
}

std::size_t barrier::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

auto barrier::add(count_type n, count_type leaving) -> arrival_token {
  check(n > 0, "sluice::barrier", "to be arrived at by at least one");
  std::uint64_t phase = 0;
  {
    const std::lock_guard hold(guard_);
    check(n <= missing_, "sluice::barrier", "no more arrivals than expected in one phase");
    phase = phase_.load(relaxed);
    expected_ -= leaving;
    missing_ -= n;
    if (missing_ > 0) return arrival_token(phase);
  }
  complete();
  return arrival_token(phase);
}

void barrier::complete() noexcept {
  // Nobody can arrive, so nobody else gets here: no lock is held while the user's code runs.
  if (completion_) call_back("the completion of barrier", {}, completion_);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  missing_ = expected_;
  // release: pairs with the acquire in is_over.
  phase_.store(phase_.load(relaxed) + 1, release);
  while (auto* const node = claim_front(waiters_)) wakes.add(*node->who);
}

enlisted barrier::op::enlist(waiter& who) noexcept {
  const std::lock_guard hold(barrier_.guard_);
  return ready() ? enlisted::finished : join(barrier_.waiters_, node_, who);
}

void barrier::op::retract() noexcept {
  const std::lock_guard hold(barrier_.guard_);
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice
