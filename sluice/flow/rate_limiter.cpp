#include "sluice/flow/rate_limiter.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

namespace sluice {

rate_limiter::rate_limiter(options o)
    : clock_(o.clock != nullptr ? *o.clock : real_clock()),
      bucket_(o.rate, o.burst, o.initial, clock_.now()),
      alarm_(new detail::wake_timer([this](wake_batch& wakes) { due(wakes); })) {
  if (!o.name.empty()) wait_report::set_name(this, o.name);
}

rate_limiter::~rate_limiter() {
  alarm_->leave(clock_);
  const std::lock_guard hold(guard_);  // a finished call may still be about to release it
  check_object(waiters_.empty(), this, type_name, "no waiters at its destruction");
  wait_report::destroyed(this);
}

// ---- under the guard

void rate_limiter::refill() noexcept {
  // The tokens of the first waiter do not count against the burst: they have been due since their
  // time, however late the timer is. So lateness does not add up.
  const auto set_aside = waiters_.empty() ? 0 : std::min(front().wanted, bucket_.burst());
  bucket_.refill(clock_.now(), set_aside);
}

void rate_limiter::grant(count_type n) noexcept {
  stats_.granted += n;
  ++stats_.served;
}

bool rate_limiter::take(op::node& request) noexcept {
  if (request.wanted > bucket_.burst()) {
    request.refused = true;
    ++stats_.refused;
    return true;
  }
  if (!waiters_.empty()) return false;  // earlier requests are served first
  refill();
  if (!bucket_.take(request.wanted)) return false;
  grant(request.wanted);
  return true;
}

bool rate_limiter::serve_front(wake_batch& wakes) noexcept {
  auto& first = front();
  const bool refused = first.wanted > bucket_.burst();
  if (!refused && !bucket_.take(first.wanted)) return false;
  first.unlink();
  if (first.waiting->try_claim(first)) {
    first.refused = refused;
    if (refused) {
      ++stats_.refused;
    } else {
      grant(first.wanted);
    }
    wakes.add(*first.waiting);
  } else if (!refused) {
    bucket_.give_back(first.wanted);  // its wait has ended: nothing was taken
  }
  bucket_.spill();
  return true;
}

void rate_limiter::serve(wake_batch& wakes) noexcept {
  do {
    refill();
    while (!waiters_.empty() && serve_front(wakes)) {
    }
  } while (!set_alarm(waiters_.empty() ? time_point::max() : bucket_.when(front().wanted)));
}

bool rate_limiter::set_alarm(time_point when) noexcept {
  if (armed_for_ == when) return true;
  if (armed_for_ != time_point::max()) clock_.disarm(*alarm_);
  armed_for_ = time_point::max();
  if (when == time_point::max()) return true;
  if (alarm_->is_coming()) return true;  // it will check again, and set itself again
  if (!clock_.arm(*alarm_, when)) return false;
  armed_for_ = when;
  return true;
}

void rate_limiter::due(wake_batch& wakes) noexcept {
  const std::lock_guard hold(guard_);
  // It may have been armed again since it began to fire.
  clock_.disarm(*alarm_);
  armed_for_ = time_point::max();
  serve(wakes);
}

// ---- calls

bool rate_limiter::try_acquire(count_type n, call_site at) {
  op request(*this, n, &at);
  if (request.attempt()) return !request.refused();
  const std::lock_guard hold(guard_);
  ++stats_.refused;
  return false;
}

void rate_limiter::set_rate(sluice::rate r) {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  refill();
  bucket_.change(r, bucket_.burst());
  serve(wakes);
}

void rate_limiter::set(sluice::rate r, count_type burst) {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  refill();
  bucket_.change(r, burst);
  // Not only the first waiter may have requested more than the new burst.
  waiters_.for_each([&](wait_node& each) {
    auto& request = static_cast<op::node&>(each);
    if (request.wanted <= burst) return;
    request.unlink();
    if (!request.waiting->try_claim(request)) return;
    request.refused = true;
    ++stats_.refused;
    wakes.add(*request.waiting);
  });
  serve(wakes);
}

rate rate_limiter::rate() const noexcept {
  const std::lock_guard hold(guard_);
  return bucket_.speed();
}

rate_limiter::count_type rate_limiter::burst() const noexcept {
  const std::lock_guard hold(guard_);
  return bucket_.burst();
}

rate_limiter::count_type rate_limiter::available() const noexcept {
  const std::lock_guard hold(guard_);
  auto now = bucket_;
  now.refill(clock_.now(), 0);
  return now.whole();
}

std::chrono::nanoseconds rate_limiter::time_until(count_type n, call_site at) noexcept {
  check_object(n > 0, this, type_name, "a request for at least one token", at);
  const std::lock_guard hold(guard_);
  constexpr auto never = std::chrono::nanoseconds::max();
  if (n > bucket_.burst()) return never;
  auto wanted = n;
  waiters_.for_each([&](const wait_node& each) {
    const auto more = static_cast<const op::node&>(each).wanted;
    wanted = wanted > std::numeric_limits<count_type>::max() - more
                 ? std::numeric_limits<count_type>::max()
                 : wanted + more;
  });
  const auto now = clock_.now();
  auto later = bucket_;
  later.refill(now, 0);
  const auto when = later.when(wanted);
  return when == time_point::max() ? never : std::max(when - now, time_point::duration::zero());
}

time_point rate_limiter::full_at() const noexcept {
  const std::lock_guard hold(guard_);
  return bucket_.when(bucket_.burst());
}

std::size_t rate_limiter::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiters_.size();
}

rate_limiter_stats rate_limiter::stats() const noexcept {
  const std::lock_guard hold(guard_);
  return stats_;
}

// ---- the wait

rate_limiter::op::op(rate_limiter& l, count_type n, const call_site* at) noexcept : limiter_(l) {
  check_object(n > 0, &l, type_name, "a request for at least one token", at);
  node_.wanted = n;
}

bool rate_limiter::op::attempt() noexcept {
  const std::lock_guard hold(limiter_.guard_);
  return limiter_.take(node_);
}

enlisted rate_limiter::op::enlist(waiter& waiting) noexcept {
  auto& owner = limiter_;
  const std::lock_guard hold(owner.guard_);
  do {
    if (owner.take(node_)) return enlisted::finished;
  } while (owner.waiters_.empty() && !owner.set_alarm(owner.bucket_.when(node_.wanted)));
  const auto joined = link_waiter(owner.waiters_, node_, waiting);
  if (joined == enlisted::waiting) {
    ++owner.stats_.waits;
  } else if (owner.waiters_.empty()) {
    owner.set_alarm(time_point::max());
  }
  return joined;
}

void rate_limiter::op::retract() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(limiter_.guard_);
  if (!node_.linked()) return;
  node_.unlink();
  limiter_.bucket_.spill();
  limiter_.serve(wakes);  // it may have blocked smaller requests
}

}  // namespace sluice
