#include "sluice/flow/bulkhead.hpp"

#include <algorithm>
#include <mutex>

namespace sluice {

bulkhead::bulkhead(options o) : options_(std::move(o)) {
  check_named(options_.active_max > 0, "sluice::bulkhead", options_.name.c_str(),
              "an active_max of at least 1");
  if (!options_.name.empty()) watch::set_name(this, options_.name);
}

bulkhead::~bulkhead() {
  const std::lock_guard hold(guard_);  // a call that is over may still be about to let go of it
  check_named(waiters_.empty(), "sluice::bulkhead", options_.name.c_str(),
              "no waiters at its destruction");
  check_named(active_ == 0, "sluice::bulkhead", options_.name.c_str(),
              "nobody inside at its destruction");
  watch::gone(this);
}

bool bulkhead::take() noexcept {
  if (active_ == options_.active_max || !waiters_.empty()) return false;
  ++active_;
  ++stats_.entered;
  stats_.active_most = std::max(stats_.active_most, active_);
  return true;
}

void bulkhead::tell_entered(watch::party who, const call_site& at, bool awaited) const noexcept {
  watch::took({.object = this,
               .type = type_name,
               .how = watch::held_as::permits,
               .by = who,
               .at = at,
               .awaited = awaited});
}

void bulkhead::leave() noexcept {
  watch::gave(this);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  auto* const next = claim_front(waiters_);
  if (next == nullptr) {
    --active_;
    return;
  }
  --in_line_;
  ++stats_.entered;  // the place goes from hand to hand
  wakes.add(*next->who);
}

outcome<bulkhead::permit> bulkhead::try_enter(call_site at) {
  {
    const std::lock_guard hold(guard_);
    if (!take()) {
      ++stats_.refused;
      return status::full;
    }
  }
  if (watch::is_on()) [[unlikely]]
    tell_entered(watch::party::current(), at);
  return permit(*this);
}

std::size_t bulkhead::active() const noexcept {
  const std::lock_guard hold(guard_);
  return active_;
}

std::size_t bulkhead::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return in_line_;
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
  auto& to = bulkhead_;
  const std::lock_guard hold(to.guard_);
  if (to.take()) return true;
  full_ = to.in_line_ >= to.options_.waiting_max;
  to.stats_.refused += full_ ? 1 : 0;
  return full_;
}

enlisted bulkhead::op::enlist(waiter& who) noexcept {
  auto& to = bulkhead_;
  const std::lock_guard hold(to.guard_);
  if (to.take()) return enlisted::finished;
  if (to.in_line_ >= to.options_.waiting_max) {  // others came in between
    full_ = true;
    ++to.stats_.refused;
    return enlisted::finished;
  }
  const auto joined = join(to.waiters_, node_, who);
  if (joined == enlisted::waiting) {
    ++to.in_line_;
    ++to.stats_.waited;
  } else {
    ++to.stats_.gave_up;
  }
  return joined;
}

void bulkhead::op::retract() noexcept {
  const std::lock_guard hold(bulkhead_.guard_);
  ++bulkhead_.stats_.gave_up;
  --bulkhead_.in_line_;
  if (node_.linked()) node_.unlink();
}

}  // namespace sluice
