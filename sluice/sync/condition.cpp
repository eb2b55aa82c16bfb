#include "sluice/sync/condition.hpp"

namespace sluice {

condition::~condition() {
  const std::lock_guard hold(guard_);  // a notifier may still be about to release it
  check_object(inside_ == 0, this, type_name, "all waits to have returned at its destruction");
  wait_report::destroyed(this);
}

std::size_t condition::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

void condition::notify_one() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  if (auto* const at = claim_front(waiters_)) wakes.add(*at->waiting);
}

void condition::notify_all() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  // All are claimed now: they can neither time out nor take a later notify_one.
  while (auto* const at = claim_front(waiters_)) notified_.push_back(*at);
  if (!chain_) wake_next(wakes);  // else the running chain of wake-ups reaches them
}

void condition::wake_next(wake_batch& wakes) noexcept {
  chain_ = !notified_.empty();
  if (!chain_) return;
  auto& next = static_cast<place&>(notified_.pop_front());
  next.wakes_next = true;
  wakes.add(*next.waiting);
}

enlisted condition::enlist(place& at, waiter& waiting) noexcept {
  const std::lock_guard hold(guard_);
  at.wakes_next = false;
  const auto joined = link_waiter(waiters_, at, waiting);
  if (joined == enlisted::waiting) ++inside_;
  return joined;
}

void condition::leave(place& at) noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  --inside_;
  if (at.linked()) at.unlink();  // it timed out or was stopped
  if (at.wakes_next) wake_next(wakes);
}

void condition::sleeper::enlist() noexcept {
  const auto joined = condition_.enlist(place_, self_);
  check(joined == enlisted::waiting, type_name, "no limit to be armed before the list");
}

waiter::state condition::sleeper::sleep(const wait_limits& limits) noexcept {
  // It is linked already, so a notification during the spin saves the system call.
  spin_until(condition_.spin_, limits,
             [this] { return self_.ended_by() != waiter::state::waiting; });
  wait_report::wait_record report;
  if (wait_report::is_on()) [[unlikely]] {
    report.begin(condition_, self_, limits, wait_report::party::current());
  }
  return self_.park(limits);
}

}  // namespace sluice
