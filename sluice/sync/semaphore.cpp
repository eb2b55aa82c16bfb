#include "sluice/sync/semaphore.hpp"

#include <mutex>

namespace sluice {

semaphore::semaphore(count_type permits) : permits_(permits) {
  check(permits >= 0, "sluice::semaphore", "a count of permits that is not negative");
}

semaphore::~semaphore() {
  const std::lock_guard hold(guard_);  // a release may still be about to let go of it
  check_object(waiters_.empty(), this, type_name, "no waiters at its destruction");
  watch::gone(this);
}

std::size_t semaphore::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

bool semaphore::take(count_type n) noexcept {
  const auto there = permits_.load(relaxed);
  if (there < n || !waiters_.empty()) return false;  // behind those that came first
  permits_.store(there - n, relaxed);
  return true;
}

void semaphore::serve(wake_batch& wakes) noexcept {
  while (!waiters_.empty()) {
    auto& first = static_cast<op::node&>(waiters_.front());
    const auto there = permits_.load(relaxed);
    if (there < first.wanted) return;
    first.unlink();
    if (!first.who->try_claim(first)) continue;  // it gave up; nothing was taken
    permits_.store(there - first.wanted, relaxed);
    wakes.add(*first.who);
  }
}

void semaphore::release(count_type n, call_site at) {
  check_object(n > 0, this, type_name, "to release at least one permit", at);
  watch::gave(this, n);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  const auto there = permits_.load(relaxed);
  check_object(there <= max() - n, this, type_name, "not to be released past its largest count",
               at);
  permits_.store(there + n, relaxed);
  serve(wakes);
}

void semaphore::op::taken_by(watch::party who, const call_site& at, bool awaited) const noexcept {
  watch::took({.object = &semaphore_,
               .type = type_name,
               .how = watch::held_as::permits,
               .by = who,
               .count = node_.wanted,
               .at = at,
               .awaited = awaited});
}

bool semaphore::op::attempt() noexcept {
  const std::lock_guard hold(semaphore_.guard_);
  return semaphore_.take(node_.wanted);
}

enlisted semaphore::op::enlist(waiter& who) noexcept {
  const std::lock_guard hold(semaphore_.guard_);
  if (semaphore_.take(node_.wanted)) return enlisted::finished;
  return join(semaphore_.waiters_, node_, who);
}

void semaphore::op::retract() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(semaphore_.guard_);
  if (!node_.linked()) return;
  node_.unlink();
  semaphore_.serve(wakes);  // it may have stood in the way of smaller requests
}

}  // namespace sluice
