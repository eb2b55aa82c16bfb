#include "sluice/sync/barrier.hpp"

#include "sluice/base/detail/callback.hpp"

#include <mutex>

namespace sluice {

barrier::barrier(count_type expected, std::function<void()> completion)
    : completion_(std::move(completion)), expected_(expected), missing_(expected) {
  check(expected > 0, "sluice::barrier", "to expect at least one arrival");
}

barrier::~barrier() {
  const std::lock_guard hold(guard_);  // the last arrival may still be about to release it
  check_object(waiters_.empty(), this, type_name, "no waiters at its destruction");
  wait_report::destroyed(this);
}

std::size_t barrier::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

auto barrier::add(count_type n, count_type leaving, const call_site& at) -> arrival_token {
  check_object(n > 0, this, type_name, "at least one arrival", at);
  std::uint64_t phase = 0;
  {
    const std::lock_guard hold(guard_);
    check_object(n <= missing_, this, type_name, "at most the expected arrivals in one phase", at);
    phase = phase_.load(relaxed);
    expected_ -= leaving;
    missing_ -= n;
    if (missing_ > 0) return arrival_token(phase);
  }
  complete();
  return arrival_token(phase);
}

void barrier::complete() noexcept {
  // No arrival is possible now, so only one thread is here: the user's code runs without a lock.
  if (completion_) detail::call_back("the completion of barrier", {}, completion_);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  missing_ = expected_;
  // release: pairs with the acquire in is_complete.
  phase_.store(phase_.load(relaxed) + 1, release);
  while (auto* const node = claim_front(waiters_)) wakes.add(*node->waiting);
}

enlisted barrier::op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(barrier_.guard_);
  return ready() ? enlisted::finished : link_waiter(barrier_.waiters_, node_, waiting);
}

void barrier::op::retract() noexcept {
  const std::lock_guard hold(barrier_.guard_);
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice
