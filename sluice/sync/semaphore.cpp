#include "sluice/sync/semaphore.hpp"

#include <mutex>

namespace sluice {

semaphore::semaphore(count_type permits) : permits_(permits) {
  check(permits >= 0, "sluice::semaphore", "a count of permits that is not negative");
}

semaphore::~semaphore() {
  const std::lock_guard hold(guard_);  // a release may still be about to unlock it
  check_object(waiters_.empty(), this, type_name, "no waiters at its destruction");
  wait_report::destroyed(this);
}

std::size_t semaphore::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

bool semaphore::take(count_type n) noexcept {
  const auto free = permits_.load(relaxed);
  if (free < n || !waiters_.empty()) return false;  // earlier requests are served first
  permits_.store(free - n, relaxed);
  return true;
}

void semaphore::serve(wake_batch& wakes) noexcept {
  while (!waiters_.empty()) {
    auto& first = static_cast<op::node&>(waiters_.front());
    const auto free = permits_.load(relaxed);
    if (free < first.wanted) return;
    first.unlink();
    if (!first.waiting->try_claim(first)) continue;  // its wait has ended; took nothing
    permits_.store(free - first.wanted, relaxed);
    wakes.add(*first.waiting);
  }
}

void semaphore::release(count_type n, call_site at) {
  check_object(n > 0, this, type_name, "to release at least one permit", at);
  wait_report::gave(this, n);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  const auto free = permits_.load(relaxed);
  check_object(free <= max() - n, this, type_name, "not to be released past its largest count", at);
  permits_.store(free + n, relaxed);
  serve(wakes);
}

void semaphore::op::taken_by(wait_report::party taker, const call_site& at,
                             bool awaited) const noexcept {
  wait_report::took({.object = &semaphore_,
                     .type = type_name,
                     .mode = wait_report::held_as::permits,
                     .by = taker,
                     .count = node_.wanted,
                     .at = at,
                     .awaited = awaited});
}

bool semaphore::op::attempt() noexcept {
  const std::lock_guard hold(semaphore_.guard_);
  return semaphore_.take(node_.wanted);
}

enlisted semaphore::op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(semaphore_.guard_);
  if (semaphore_.take(node_.wanted)) return enlisted::finished;
  return link_waiter(semaphore_.waiters_, node_, waiting);
}

void semaphore::op::retract() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(semaphore_.guard_);
  if (!node_.linked()) return;
  node_.unlink();
  semaphore_.serve(wakes);  // it may have blocked smaller requests
}

}  // namespace sluice
