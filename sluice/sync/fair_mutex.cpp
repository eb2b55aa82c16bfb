#include "sluice/sync/fair_mutex.hpp"

#include <mutex>

namespace sluice {

fair_mutex::~fair_mutex() {
  // An unlock that has handed the lock to the last owner may still be about to release the guard.
  const std::lock_guard hold(guard_);
  check_object(word_.load(relaxed) == 0, this, type_name,
               "neither owner nor waiters at its destruction");
  wait_report::destroyed(this);
}

std::size_t fair_mutex::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

void fair_mutex::lock_slowly(const call_site& at) {
  lock_op op(*this, lock_op::by_thread, &at);
  const auto ended = wait_blocking(op, at.called_from(__builtin_return_address(0)));
  check(static_cast<bool>(ended), type_name, "an unlimited wait to end with the lock", at);
}

void fair_mutex::unlock_slowly(std::uint32_t seen, call_site at) noexcept {
  const auto owner = seen & owner_mask;
  check_object(owner != 0, this, type_name, "to be locked when it is unlocked", at);
  check_object(owner == coroutine || owner == seam::thread_number(), this, type_name,
               "to be unlocked by the thread that locked it", at);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  // Only the owner and the holder of guard_ change a word that has an owner.
  auto* const next = claim_front<lock_op::node>(waiters_);
  if (next == nullptr) {
    word_.store(0, release);
    return;
  }
  word_.store(next->owner | (waiters_.empty() ? 0 : has_waiters), release);
  wakes.add(*next->waiting);
}

enlisted fair_mutex::lock_op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(mutex_.guard_);
  for (auto seen = mutex_.word_.load(relaxed);;) {
    if (seen == 0) {
      if (mutex_.word_.compare_exchange_weak(seen, node_.owner, acquire, relaxed)) {
        return enlisted::finished;
      }
      continue;
    }
    check_object((seen & owner_mask) != node_.owner || node_.owner == coroutine, &mutex_, type_name,
                 "not to be locked again by the thread that holds it", at_);
    if ((seen & has_waiters) != 0 ||
        mutex_.word_.compare_exchange_weak(seen, seen | has_waiters, relaxed, relaxed)) {
      break;
    }
  }
  const auto joined = link_waiter(mutex_.waiters_, node_, waiting);
  if (joined == enlisted::ended && mutex_.waiters_.empty()) {
    mutex_.word_.fetch_and(~has_waiters, relaxed);
  }
  return joined;
}

void fair_mutex::lock_op::retract() noexcept {
  const std::lock_guard hold(mutex_.guard_);
  if (node_.linked()) node_.unlink();
  // The lock has an owner while the list is not empty, so no waiter needs to be served here.
  if (mutex_.waiters_.empty()) mutex_.word_.fetch_and(~has_waiters, relaxed);
}

}  // namespace sluice
