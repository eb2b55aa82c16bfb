#include "sluice/flow/bulkhead.hpp"

#include <algorithm>
#include <mutex>

namespace sluice {

bulkhead::bulkhead(options o) : options_(std::move(o)) {
  check_named(options_.active_max > 0, "sluice::bulkhead", options_.name.c_str(),
              "an active_max of at least 1");
  if (!options_.name.empty()) wait_report::set_name(this, options_.name);
}

bulkhead::~bulkhead() {
  const std::lock_guard hold(guard_);  // a finished call may still be about to release it
  check_named(waiters_.empty(), "sluice::bulkhead", options_.name.c_str(),
              "no waiters at its destruction");
  check_named(active_ == 0, "sluice::bulkhead", options_.name.c_str(),
              "no calls inside at its destruction");
  wait_report::destroyed(this);
}

bool bulkhead::take() noexcept {
  if (active_ == options_.active_max || !waiters_.empty()) return false;
  ++active_;
  ++stats_.entered;
  stats_.active_most = std::max(stats_.active_most, active_);
  return true;
}

void bulkhead::report_entered(wait_report::party taker, const call_site& at,
                              bool awaited) const noexcept {
  wait_report::took({.object = this,
                     .type = type_name,
                     .mode = wait_report::held_as::permits,
                     .by = taker,
                     .at = at,
                     .awaited = awaited});
}

void bulkhead::leave() noexcept {
  wait_report::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  auto* const next = claim_front(waiters_);
  if (next == nullptr) {
    --active_;
    return;
  }
  --waiting_;
  ++stats_.entered;  // the place is handed over directly
  wakes.add(*next->waiting);
}

outcome<bulkhead::permit> bulkhead::try_enter(call_site at) {
  {
    const std::lock_guard hold(guard_);
    if (!take()) {
      ++stats_.refused;
      return status::full;
    }
  }
  if (wait_report::is_on()) [[unlikely]]
    report_entered(wait_report::party::current(), at);
  return permit(*this);
}

std::size_t bulkhead::active() const noexcept {
  const std::lock_guard hold(guard_);
  return active_;
}

std::size_t bulkhead::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiting_;
}

bulkhead_stats bulkhead::stats() const noexcept {
  const std::lock_guard hold(guard_);
  return stats_;
}

bulkhead::permit bulkhead::enter_or_throw(outcome<permit> entered) const {
  if (!entered) throw refusal(entered.status());
  return std::move(*entered);
}

refused_error bulkhead::refusal(status why) const {
  const auto reason = why == status::timed_out ? refused_error::reason::timed_out
                      : why == status::stopped ? refused_error::reason::stopped
                                               : refused_error::reason::full;
  return {reason, options_.name.empty() ? "bulkhead" : options_.name};
}

// ---- the wait

bool bulkhead::op::attempt() noexcept {
  auto& owner = bulkhead_;
  const std::lock_guard hold(owner.guard_);
  if (owner.take()) return true;
  full_ = owner.waiting_ >= owner.options_.waiting_max;
  owner.stats_.refused += full_ ? 1 : 0;
  return full_;
}

enlisted bulkhead::op::enlist(waiter& waiting) noexcept {
  auto& owner = bulkhead_;
  const std::lock_guard hold(owner.guard_);
  if (owner.take()) return enlisted::finished;
  if (owner.waiting_ >= owner.options_.waiting_max) {  // other callers joined in between
    full_ = true;
    ++owner.stats_.refused;
    return enlisted::finished;
  }
  const auto joined = link_waiter(owner.waiters_, node_, waiting);
  if (joined == enlisted::waiting) {
    ++owner.waiting_;
    ++owner.stats_.waited;
  } else {
    ++owner.stats_.gave_up;
  }
  return joined;
}

void bulkhead::op::retract() noexcept {
  const std::lock_guard hold(bulkhead_.guard_);
  ++bulkhead_.stats_.gave_up;
  --bulkhead_.waiting_;
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice
