// What a parent does about its children: hears of them, decides, restarts.
#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"

namespace sluice::detail {

void cell::hear(cell& child) noexcept {
  switch (child.mode_) {
    case mode::failed:
      child.mode_ = mode::suspended;
      child.is_with_parent_ = true;
      return child_failed(child);
    case mode::retired:
      child.mode_ = mode::suspended;
      child.is_with_parent_ = true;
      if (mode_ != mode::running) return go_on_if_ending();
      return child_retired(child);
    case mode::renewed:
      system_.restarted(child);
      set_going(child, mode::running);
      if (mode_ != mode::running) return go_on_if_ending();
      return child_settled(child);
    case mode::over:
      return child_over(child);
    default:
      return;
  }
}

void cell::go_on_if_ending() noexcept {
  if (mode_ == mode::stopping || mode_ == mode::retiring) go_on_ending();
}

void cell::set_going(cell& child, mode next) noexcept {
  child.is_with_parent_ = false;
  child.mode_ = next;
  child.on_->post(child);
}

// What a restart is for a child of its kind.
directive cell::at_restart(const cell& child) noexcept {
  return child.kind_ == child_kind::temporary ? directive::stop : directive::restart;
}

void cell::child_failed(cell& child) noexcept {
  if (mode_ != mode::running) {
    // It ends along with this one.
    child.extra_->reason = end_reason::failed;
    system_.failed(child, child.extra_->error, directive::stop);
    return go_on_if_ending();
  }
  cell_extra& x = extra();
  if (!x.round) return decide(child);
  const bool is_in_it = std::ranges::find(x.round->who, &child) != x.round->who.end();
  if (is_in_it && x.round->now == restart_round::phase::taking_down) {
    system_.failed(child, child.extra_->error, at_restart(child));
    // If it is being taken down, the order for that is before it: it has only to go on. Else its
    // turn comes.
    if (x.round->awaited == &child) set_going(child, mode::running);
    return;
  }
  x.failed.push_back(&child);
  child_settled(child);
}

void cell::decide(cell& child) noexcept {
  const supervision& how = supervises();
  const std::exception_ptr error = child.extra_->error;
  directive what = how.what;
  try {
    if (how.decide) what = how.decide(error);
  } catch (...) {
    what = directive::escalate;
  }
  if (what == directive::resume && !child.has_state_) what = directive::stop;
  if (what == directive::restart) what = at_restart(child);
  if (what == directive::restart && !may_restart()) what = directive::escalate;
  if (what == directive::escalate && parent_ == nullptr) what = directive::stop;
  system_.failed(child, error, what);
  switch (what) {
    case directive::resume:
      return set_going(child, mode::resuming);
    case directive::restart:
      return restart(child);
    case directive::stop:
      child.extra_->reason = end_reason::failed;
      return set_going(child, mode::stopping);
    case directive::escalate:
      child.extra_->reason = end_reason::failed;
      return fail(error);
  }
}

const supervision& cell::supervises() const noexcept {
  if (parent_ == nullptr) return system_.options().top;
  static const supervision usual;
  return extra_ != nullptr && extra_->children ? *extra_->children : usual;
}

bool cell::may_restart() noexcept {
  cell_extra& x = extra();
  const supervision& how = supervises();
  const time_point now = system_.clock().now();
  while (!x.restarts.empty() && now - x.restarts.front() > how.within) x.restarts.pop_front();
  if (x.restarts.size() >= how.restarts_max) return false;
  x.restarts.push_back(now);
  return true;
}

// Doubled each time, up to the longest; forgotten when it has gone well for long enough.
std::chrono::nanoseconds cell::backoff_of(cell& child) noexcept {
  const supervision& how = supervises();
  if (how.backoff_first.count() <= 0) return {};
  cell_extra& its = *child.extra_;
  const time_point now = system_.clock().now();
  if (now - its.made_anew > how.within) its.in_a_row = 0;
  std::chrono::nanoseconds wait = std::min(how.backoff_first, how.backoff_max);
  for (std::uint32_t i = 0; i < its.in_a_row && wait < how.backoff_max; ++i) {
    wait = wait > how.backoff_max / 2 ? how.backoff_max : wait * 2;
  }
  if (wait < how.backoff_max) ++its.in_a_row;
  its.made_anew = wait < time_point::max() - now ? now + wait : time_point::max();
  return wait;
}

void cell::restart(cell& child) noexcept {
  const strategy who = supervises().who;
  const std::chrono::nanoseconds wait = backoff_of(child);
  if (who == strategy::one_for_one) {
    // Alone: what becomes of others does not wait for it.
    child.extra_->backoff = wait;
    return set_going(child, mode::retiring);
  }
  restart_round& round = extra().round.emplace();
  bool is_past = false;
  {
    const std::lock_guard hold(guard_);
    children_.for_each([&](child_hook& h) {
      is_past = is_past || &of(h) == &child;
      if (who == strategy::one_for_all || is_past) round.who.push_back(&of(h));
    });
  }
  // What another of them failed with is settled by this: it is made anew as well.
  std::erase_if(extra().failed, [&](cell* other) {
    if (std::ranges::find(round.who, other) == round.who.end()) return false;
    system_.failed(*other, other->extra_->error, at_restart(*other));
    return true;
  });
  round.at = round.who.size();
  round.wait = wait;
  restart_step();
}

void cell::restart_step() noexcept {
  using phase = restart_round::phase;
  restart_round& round = *extra().round;
  if (round.now == phase::taking_down && round.at > 0) {
    cell& next = *round.who[--round.at];
    round.awaited = &next;
    return take_down(next);
  }
  if (round.now == phase::taking_down) {
    round.now = phase::waiting;
    if (round.wait.count() > 0 && !round.who.empty()) {
      round.timer = call_after(round.wait, [this](std::uint64_t number) {
        (void)cancel_call(number);
        extra().round->now = phase::making;
        restart_step();
      });
      return;
    }
    round.now = phase::making;
  }
  if (round.at < round.who.size()) {
    round.awaited = round.who[round.at++];
    return renew_child(*round.awaited);
  }
  extra().round.reset();
  decide_next();
}

// If it is over, that is still to be heard.
void cell::take_down(cell& child) noexcept {
  const bool is_for_good = at_restart(child) == directive::stop;
  if (!child.is_with_parent_) {
    if (is_for_good) return child.order_stop(stop_how::now);
    (void)child.call([&child] { child.begin_retire(); });
    return;
  }
  if (is_for_good) child.extra_->reason = end_reason::failed;
  set_going(child, is_for_good ? mode::stopping : mode::retiring);
}

// Its state is gone.
void cell::child_retired(cell& child) noexcept {
  child.is_cooling_ = true;
  const std::chrono::nanoseconds wait =
      child.extra_ != nullptr ? child.extra_->backoff : std::chrono::nanoseconds(0);
  set_going(child, mode::cooling);
  if (!extra().round) return renew_after(child, wait);
  child_settled(child);
}

// The round, if there is one, need not wait for it any more.
void cell::child_settled(cell& child) noexcept {
  cell_extra& x = extra();
  if (!x.round || x.round->awaited != &child) return;
  x.round->awaited = nullptr;
  restart_step();
}

void cell::renew_after(cell& child, std::chrono::nanoseconds wait) noexcept {
  if (wait.count() <= 0) return renew_child(child);
  (void)call_after(wait, [this, held = cell_ptr(&child)](std::uint64_t number) {
    (void)cancel_call(number);
    if (held->is_cooling_) renew_child(*held);
  });
}

void cell::renew_child(cell& child) noexcept {
  child.is_cooling_ = false;
  (void)child.call([&child] { child.begin_renew(); });  // if it is over, that is still to be heard
}

void cell::decide_next() noexcept {
  cell_extra& x = extra();
  while (mode_ == mode::running && !x.round && !x.failed.empty()) {
    cell& child = *x.failed.front();
    x.failed.pop_front();
    decide(child);
  }
}

void cell::child_over(cell& child) noexcept {
  {
    const std::lock_guard hold(guard_);
    child.sibling().unlink();
    --child_count_;
  }
  child.is_cooling_ = false;
  if (extra_ != nullptr) leave_round(child);
  tell_parents_watches(child);
  child.release();  // a living actor counts as one ref
  go_on_if_ending();
}

bool cell::tell_when_heard(cell& child, watcher& w) {
  {
    const std::lock_guard hold(guard_);
    if (!child.sibling().linked()) return false;
  }
  extra().unheard.emplace_back(&child, std::move(w));
  return true;
}

void cell::tell_parents_watches(cell& child) noexcept {
  if (child.extra_ != nullptr) {
    std::vector<watcher> those = std::exchange(child.extra_->watchers, {});
    child.tell_end(those);
  }
  if (extra_ == nullptr || extra_->unheard.empty()) return;
  std::vector<watcher> late;
  std::erase_if(extra_->unheard, [&](auto& each) {
    if (each.first != &child) return false;
    late.push_back(std::move(each.second));
    return true;
  });
  child.tell_end(late);
}

void cell::leave_round(cell& child) noexcept {
  cell_extra& x = *extra_;
  std::erase(x.failed, &child);
  if (!x.round) return;
  restart_round& round = *x.round;
  const auto found = std::ranges::find(round.who, &child);
  if (found == round.who.end()) return;
  if (static_cast<std::size_t>(found - round.who.begin()) < round.at) --round.at;
  round.who.erase(found);
  if (mode_ != mode::running) return;
  if (round.awaited == &child) return child_settled(child);
  if (!round.who.empty() || round.now != restart_round::phase::waiting) return;
  (void)cancel_call(round.timer);
  x.round.reset();
  decide_next();
}

// The grandparent has let this one go on: so it does with the child whose failure it could not
// decide about. Those that wait for a round to end still do.
void cell::let_children_go_on() noexcept {
  const cell_extra& x = extra();
  const auto waits_for_round = [&](cell* child) {
    return std::ranges::find(x.failed, child) != x.failed.end() ||
           (x.round && std::ranges::find(x.round->who, child) != x.round->who.end());
  };
  for (cell* const child : children()) {
    if (child->is_with_parent_ && !waits_for_round(child)) {
      set_going(*child, child->has_state_ ? mode::resuming : mode::stopping);
    }
    child->release();
  }
  decide_next();
}

}  // namespace sluice::detail
