// The parent's side of supervision: reports of children, decisions, restarts.
#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"

namespace sluice::detail {

void cell::handle_report(cell& child) noexcept {
  switch (child.mode_) {
    case mode::failed:
      child.mode_ = mode::suspended;
      child.is_held_by_parent_ = true;
      return child_failed(child);
    case mode::retired:
      child.mode_ = mode::suspended;
      child.is_held_by_parent_ = true;
      if (mode_ != mode::running) return continue_if_ending();
      return child_retired(child);
    case mode::recreated:
      system_.restarted(child);
      release_child(child, mode::running);
      if (mode_ != mode::running) return continue_if_ending();
      return child_done(child);
    case mode::terminated:
      return child_terminated(child);
    default:
      return;
  }
}

void cell::continue_if_ending() noexcept {
  if (mode_ == mode::stopping || mode_ == mode::retiring) continue_ending();
}

void cell::release_child(cell& child, mode next) noexcept {
  child.is_held_by_parent_ = false;
  child.mode_ = next;
  child.on_->post(child);
}

// Returns what a restart means for a child of its kind.
directive cell::at_restart(const cell& child) noexcept {
  return child.kind_ == child_kind::temporary ? directive::stop : directive::restart;
}

void cell::child_failed(cell& child) noexcept {
  if (mode_ != mode::running) {
    // The child ends together with its parent.
    child.extra_->reason = end_reason::failed;
    system_.failed(child, child.extra_->error, directive::stop);
    return continue_if_ending();
  }
  cell_extra& x = extra();
  if (!x.round) return decide(child);
  const bool is_in_round = std::ranges::find(x.round->members, &child) != x.round->members.end();
  if (is_in_round && x.round->current == restart_round::phase::retiring) {
    system_.failed(child, child.extra_->error, at_restart(child));
    // If the child is being retired, that order is already in its control list: it only has to run.
    // Other children of the round are retired in their order.
    if (x.round->awaited == &child) release_child(child, mode::running);
    return;
  }
  x.failed.push_back(&child);
  child_done(child);
}

void cell::decide(cell& child) noexcept {
  const supervision& options = supervises();
  const std::exception_ptr error = child.extra_->error;
  directive decision = options.action;
  try {
    if (options.decide) decision = options.decide(error);
  } catch (...) {
    decision = directive::escalate;
  }
  if (decision == directive::resume && !child.has_state_) decision = directive::stop;
  if (decision == directive::restart) decision = at_restart(child);
  if (decision == directive::restart && !may_restart()) decision = directive::escalate;
  if (decision == directive::escalate && parent_ == nullptr) decision = directive::stop;
  system_.failed(child, error, decision);
  switch (decision) {
    case directive::resume:
      return release_child(child, mode::resuming);
    case directive::restart:
      return restart(child);
    case directive::stop:
      child.extra_->reason = end_reason::failed;
      return release_child(child, mode::stopping);
    case directive::escalate:
      child.extra_->reason = end_reason::failed;
      return fail(error);
  }
}

const supervision& cell::supervises() const noexcept {
  if (parent_ == nullptr) return system_.options().top;
  static const supervision defaults;
  return extra_ != nullptr && extra_->children ? *extra_->children : defaults;
}

bool cell::may_restart() noexcept {
  cell_extra& x = extra();
  const supervision& options = supervises();
  const time_point now = system_.clock().now();
  while (!x.restarts.empty() && now - x.restarts.front() > options.within) x.restarts.pop_front();
  if (x.restarts.size() >= options.restarts_max) return false;
  x.restarts.push_back(now);
  return true;
}

// Doubles with each restart, up to backoff_max; starts over after `within` without a failure.
std::chrono::nanoseconds cell::backoff_of(cell& child) noexcept {
  const supervision& options = supervises();
  if (options.backoff_first.count() <= 0) return {};
  cell_extra& x = *child.extra_;
  const time_point now = system_.clock().now();
  if (now - x.restarted_at > options.within) x.in_a_row = 0;
  std::chrono::nanoseconds wait = std::min(options.backoff_first, options.backoff_max);
  for (std::uint32_t i = 0; i < x.in_a_row && wait < options.backoff_max; ++i) {
    wait = wait > options.backoff_max / 2 ? options.backoff_max : wait * 2;
  }
  if (wait < options.backoff_max) ++x.in_a_row;
  x.restarted_at = wait < time_point::max() - now ? now + wait : time_point::max();
  return wait;
}

void cell::restart(cell& child) noexcept {
  const strategy scope = supervises().strategy;
  const std::chrono::nanoseconds wait = backoff_of(child);
  if (scope == strategy::one_for_one) {
    // This child alone: no other child waits for it.
    child.extra_->backoff = wait;
    return release_child(child, mode::retiring);
  }
  restart_round& round = extra().round.emplace();
  bool is_past = false;
  {
    const std::lock_guard hold(guard_);
    children_.for_each([&](child_hook& h) {
      is_past = is_past || &of(h) == &child;
      if (scope == strategy::one_for_all || is_past) round.members.push_back(&of(h));
    });
  }
  // A failure of another child of the round needs no decision: that child is restarted as well.
  std::erase_if(extra().failed, [&](cell* other) {
    if (std::ranges::find(round.members, other) == round.members.end()) return false;
    system_.failed(*other, other->extra_->error, at_restart(*other));
    return true;
  });
  round.position = round.members.size();
  round.backoff = wait;
  restart_step();
}

void cell::restart_step() noexcept {
  using phase = restart_round::phase;
  restart_round& round = *extra().round;
  if (round.current == phase::retiring && round.position > 0) {
    cell& next = *round.members[--round.position];
    round.awaited = &next;
    return retire_or_stop(next);
  }
  if (round.current == phase::retiring) {
    round.current = phase::waiting;
    if (round.backoff.count() > 0 && !round.members.empty()) {
      round.timer = call_after(round.backoff, [this](std::uint64_t number) {
        (void)cancel_call(number);
        extra().round->current = phase::recreating;
        restart_step();
      });
      return;
    }
    round.current = phase::recreating;
  }
  if (round.position < round.members.size()) {
    round.awaited = round.members[round.position++];
    return recreate_child(*round.awaited);
  }
  extra().round.reset();
  decide_next();
}

// A terminated child ignores the order; its report is still queued, and continues the round.
void cell::retire_or_stop(cell& child) noexcept {
  const bool is_final = at_restart(child) == directive::stop;
  if (!child.is_held_by_parent_) {
    if (is_final) return child.order_stop(stop_mode::now);
    (void)child.call([&child] { child.begin_retire(); });
    return;
  }
  if (is_final) child.extra_->reason = end_reason::failed;
  release_child(child, is_final ? mode::stopping : mode::retiring);
}

// Called when the child has destroyed its state.
void cell::child_retired(cell& child) noexcept {
  child.is_cooling_ = true;
  const std::chrono::nanoseconds wait =
      child.extra_ != nullptr ? child.extra_->backoff : std::chrono::nanoseconds(0);
  release_child(child, mode::cooling);
  if (!extra().round) return recreate_after(child, wait);
  child_done(child);
}

// Continues the round if it waits for this child.
void cell::child_done(cell& child) noexcept {
  cell_extra& x = extra();
  if (!x.round || x.round->awaited != &child) return;
  x.round->awaited = nullptr;
  restart_step();
}

void cell::recreate_after(cell& child, std::chrono::nanoseconds wait) noexcept {
  if (wait.count() <= 0) return recreate_child(child);
  (void)call_after(wait, [this, held = cell_ptr(&child)](std::uint64_t number) {
    (void)cancel_call(number);
    if (held->is_cooling_) recreate_child(*held);
  });
}

void cell::recreate_child(cell& child) noexcept {
  child.is_cooling_ = false;
  // Ignored by a terminated child, whose report is still queued
  (void)child.call([&child] { child.recreate_state(); });
}

void cell::decide_next() noexcept {
  cell_extra& x = extra();
  while (mode_ == mode::running && !x.round && !x.failed.empty()) {
    cell& child = *x.failed.front();
    x.failed.pop_front();
    decide(child);
  }
}

void cell::child_terminated(cell& child) noexcept {
  {
    const std::lock_guard hold(guard_);
    child.sibling().unlink();
    --child_count_;
  }
  child.is_cooling_ = false;
  if (extra_ != nullptr) remove_from_round(child);
  notify_parents_watches(child);
  child.release();  // a live actor counts as one ref
  continue_if_ending();
}

bool cell::notify_after_unlink(cell& child, watcher& w) {
  {
    const std::lock_guard hold(guard_);
    if (!child.sibling().linked()) return false;
  }
  extra().watches_until_unlink.emplace_back(&child, std::move(w));
  return true;
}

void cell::notify_parents_watches(cell& child) noexcept {
  if (child.extra_ != nullptr) {
    std::vector<watcher> watchers = std::exchange(child.extra_->watchers, {});
    child.notify_watchers(watchers);
  }
  if (extra_ == nullptr || extra_->watches_until_unlink.empty()) return;
  std::vector<watcher> of_parent;
  std::erase_if(extra_->watches_until_unlink, [&](auto& each) {
    if (each.first != &child) return false;
    of_parent.push_back(std::move(each.second));
    return true;
  });
  child.notify_watchers(of_parent);
}

void cell::remove_from_round(cell& child) noexcept {
  cell_extra& x = *extra_;
  std::erase(x.failed, &child);
  if (!x.round) return;
  restart_round& round = *x.round;
  const auto found = std::ranges::find(round.members, &child);
  if (found == round.members.end()) return;
  if (static_cast<std::size_t>(found - round.members.begin()) < round.position) --round.position;
  round.members.erase(found);
  if (mode_ != mode::running) return;
  if (round.awaited == &child) return child_done(child);
  if (!round.members.empty() || round.current != restart_round::phase::waiting) return;
  (void)cancel_call(round.timer);
  x.round.reset();
  decide_next();
}

// The grandparent has resumed this actor, so it resumes the child whose failure it escalated.
// Children that wait for a round to end keep waiting.
void cell::resume_children() noexcept {
  const cell_extra& x = extra();
  const auto waits_for_round = [&](cell* child) {
    return std::ranges::find(x.failed, child) != x.failed.end() ||
           (x.round && std::ranges::find(x.round->members, child) != x.round->members.end());
  };
  for (cell* const child : children()) {
    if (child->is_held_by_parent_ && !waits_for_round(child)) {
      release_child(*child, child->has_state_ ? mode::resuming : mode::stopping);
    }
    child->release();
  }
  decide_next();
}

}  // namespace sluice::detail
