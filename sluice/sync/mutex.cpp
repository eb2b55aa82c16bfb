#include "sluice/sync/mutex.hpp"

namespace sluice {
namespace {

// A thread may be overtaken for this long; then the lock is handed to it.
constexpr auto starving_after = std::chrono::milliseconds(1);

}  // namespace

mutex::~mutex() {
  // An unlock that has handed the lock to the last owner may still be about to release the guard.
  const std::lock_guard hold(guard_);
  check_object(word_.load(relaxed) == 0, this, type_name,
               "neither owner nor waiters at its destruction");
  wait_report::destroyed(this);
}

std::size_t mutex::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

bool mutex::try_take(std::uint32_t me) noexcept {
  auto seen = word_.load(relaxed);
  while ((seen & owner_mask) == 0) {
    if (word_.compare_exchange_weak(seen, seen | me, acquire, relaxed)) return true;
  }
  return false;
}

void mutex::lock_slowly(const call_site& at) {
  lock_op op(*this, lock_op::by_thread, &at);
  op.check_not_owner(!held_by_me());
  if (op.attempt()) return;
  const auto ended = wait_blocking(op, at.called_from(__builtin_return_address(0)));
  check(static_cast<bool>(ended), type_name, "an unlimited wait to end with the lock", at);
}

void mutex::unlock_slowly(std::uint32_t seen, call_site at) noexcept {
  const auto owner = seen & owner_mask;
  check_object(owner != 0, this, type_name, "to be locked when it is unlocked", at);
  check_object(owner == coroutine || owner == seam::thread_number(), this, type_name,
               "to be unlocked by the thread that locked it", at);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  auto* const next = claim_front<lock_op::node>(waiters_);
  const std::uint32_t more = waiters_.empty() ? 0 : has_waiters;
  if (next != nullptr && next->hand_over) {
    next->given = true;
    word_.store(next->owner | more, release);
  } else {
    // Only the owner and the holder of guard_ change a word that has an owner.
    word_.store(more, release);
  }
  if (next != nullptr) wakes.add(*next->waiting);
}

enlisted mutex::lock_op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(mutex_.guard_);
  for (auto seen = mutex_.word_.load(relaxed);;) {
    if ((seen & owner_mask) == 0) {
      if (mutex_.word_.compare_exchange_weak(seen, seen | me_, acquire, relaxed)) {
        return enlisted::finished;
      }
      continue;
    }
    check_not_owner((seen & owner_mask) != me_ || me_ == coroutine);
    if ((seen & has_waiters) != 0 ||
        mutex_.word_.compare_exchange_weak(seen, seen | has_waiters, relaxed, relaxed)) {
      break;
    }
  }
  node_.owner = me_;
  node_.given = false;
  const bool first_time = first_wait_ == time_point{};
  if (!waiting.is_thread()) {
    node_.hand_over = true;
  } else if (first_time) {
    first_wait_ = seam::now();
  } else {
    node_.hand_over = seam::now() - first_wait_ > starving_after;
  }
  const auto joined =
      link_waiter(mutex_.waiters_, node_, waiting, first_time ? list_end::back : list_end::front);
  if (joined == enlisted::ended && mutex_.waiters_.empty()) {
    mutex_.word_.fetch_and(~has_waiters, relaxed);
  }
  return joined;
}

bool mutex::lock_op::woken() noexcept {
  // acquire through the wake itself: the hand-over was written before it.
  return node_.given || attempt();
}

void mutex::lock_op::retract() noexcept {
  const std::lock_guard hold(mutex_.guard_);
  if (node_.linked()) node_.unlink();
  if (mutex_.waiters_.empty()) mutex_.word_.fetch_and(~has_waiters, relaxed);
}

}  // namespace sluice
