#include "sluice/channel/select.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>

#include "sluice/base/random.hpp"

namespace sluice {

// Visits the cases in random order, drawn one by one: most selects stop at the first.
class select_op::random_order {
 public:
  explicit random_order(std::size_t count) : count_(count) {
    if (count > few) many_.resize(count);
    std::iota(begin(), begin() + count, 0U);
  }
  std::size_t next(std::size_t step) noexcept {
    const auto left = static_cast<std::uint32_t>(count_ - step);
    std::swap(begin()[step], begin()[step + thread_random().below(left)]);
    return begin()[step];
  }
  std::size_t drawn(std::size_t step) noexcept { return begin()[step]; }

 private:
  std::uint32_t* begin() noexcept { return many_.empty() ? few_.data() : many_.data(); }

  std::size_t count_;
  std::array<std::uint32_t, few> few_;
  std::vector<std::uint32_t> many_;
};

bool select_op::can_be_ready() const noexcept {
  return std::any_of(cases_.begin(), cases_.end(),
                     [](const auto* c) { return c->lock() != nullptr; });
}

bool select_op::ready() const noexcept {
  return std::any_of(cases_.begin(), cases_.end(),
                     [](const auto* c) { return c->lock() != nullptr && c->hint(); });
}

bool select_op::spins_linked() const noexcept {
  return std::any_of(cases_.begin(), cases_.end(), [](const auto* c) { return c->meets(); });
}

spin_budget& select_op::spin() noexcept {
  thread_local spin_budget mine;  // a select has no object of its own to remember by
  return mine;
}

// One that is in use this very moment is passed over at first: to wait for it costs more than to
// serve another that is ready.
auto select_op::attempt_case(std::size_t index, bool wait_for_lock) -> looked {
  auto& candidate = *cases_[index];
  if (candidate.lock() == nullptr || !candidate.hint()) return looked::in_vain;
  wake_batch wakes;
  std::unique_lock hold(*candidate.lock(), std::defer_lock);
  if (wait_for_lock) {
    hold.lock();
  } else if (!hold.try_lock()) {
    return looked::away;
  }
  if (!candidate.attempt(wakes)) return looked::in_vain;
  chosen_ = index;
  return looked::well;
}

bool select_op::attempt() {
  if (cases_.empty()) return false;
  if (watch::is_on()) [[unlikely]] note_uses();
  // The first draw is enough when most are ready; the order for the rest is drawn only if not.
  // Every ready case is as likely as any other in both steps, so also in all.
  const auto first = thread_random().below(static_cast<std::uint32_t>(cases_.size()));
  if (attempt_case(first, false) == looked::well) return true;
  random_order order(cases_.size());
  bool in_use = false;
  for (std::size_t step = 0; step < cases_.size(); ++step) {
    const auto found = attempt_case(order.next(step), false);
    if (found == looked::well) return true;
    in_use = in_use || found == looked::away;
  }
  for (std::size_t step = 0; in_use && step < cases_.size(); ++step) {
    if (attempt_case(order.drawn(step), true) == looked::well) return true;
  }
  return false;
}

void select_op::lock_all() {
  const auto first = [&] { return many_locks_.empty() ? few_locks_.data() : many_locks_.data(); };
  if (lock_count_ == 0) {
    if (cases_.size() > few) many_locks_.resize(cases_.size());
    for (const auto* c : cases_) {
      if (c->lock() != nullptr) first()[lock_count_++] = c->lock();
    }
    // One order for everybody, so that two selects never wait for each other's lock.
    std::sort(first(), first() + lock_count_, std::less<>());
    lock_count_ = static_cast<std::size_t>(std::unique(first(), first() + lock_count_) - first());
  }
  std::for_each(first(), first() + lock_count_, [](spin_lock* l) { l->lock(); });
}

void select_op::unlock_all() {
  // Once committed, the whole select may be over and gone as soon as the last of these is
  // released, but not before: it must take every one of them to leave the lines.
  spin_lock** const first = many_locks_.empty() ? few_locks_.data() : many_locks_.data();
  for (auto left = lock_count_; left > 0; --left) first[left - 1]->unlock();
}

bool select_op::attempt_locked(random_order& order, wake_batch& wakes) {
  for (std::size_t step = 0; step < cases_.size(); ++step) {
    const auto index = order.next(step);
    auto& candidate = *cases_[index];
    if (candidate.lock() == nullptr || !candidate.attempt(wakes)) continue;
    chosen_ = index;
    return true;
  }
  return false;
}

bool select_op::attempt_at_one_moment() {
  if (attempt()) return true;
  // One channel looks at one moment already. With more, an item may have moved from a case not
  // yet looked at to one that was: only with all locks held does "none is ready" hold for all.
  if (cases_.size() < 2) return false;
  wake_batch wakes;
  random_order order(cases_.size());
  lock_all();
  const bool done = attempt_locked(order, wakes);
  unlock_all();
  return done;
}

enlisted select_op::enlist(waiter& who) {
  wake_batch wakes;
  random_order order(cases_.size());
  lock_all();
  if (attempt_locked(order, wakes)) {
    unlock_all();
    return enlisted::finished;
  }
  who_ = &who;
  if (lock_count_ == 0) {  // null cases only: no lock keeps this select in place once committed
    return who.commit() ? enlisted::waiting : enlisted::ended;
  }
  // In the order drawn: of two cases on the same channel either may be the one to be served.
  for (std::size_t step = 0; step < cases_.size(); ++step) {
    auto& candidate = *cases_[order.drawn(step)];
    if (candidate.lock() != nullptr) candidate.link(who);
  }
  const bool waits = who.commit();
  if (!waits) {
    for (auto* c : cases_) {
      if (c->lock() != nullptr) c->leave(wakes);
    }
  }
  unlock_all();
  return waits ? enlisted::waiting : enlisted::ended;
}

bool select_op::woken() {
  const wait_node* const winner = who_->winner();
  bool finished = false;
  for (std::size_t index = 0; index < cases_.size(); ++index) {
    auto& candidate = *cases_[index];
    if (candidate.lock() == nullptr) continue;
    wake_batch wakes;
    const std::lock_guard hold(*candidate.lock());
    if (candidate.place() != winner) {
      candidate.leave(wakes);
    } else if (candidate.landed(wakes)) {
      chosen_ = index;
      finished = true;
    }
  }
  return finished;
}

void select_op::retract() {
  for (auto* c : cases_) {
    if (c->lock() == nullptr) continue;
    wake_batch wakes;
    const std::lock_guard hold(*c->lock());
    c->leave(wakes);
  }
}

selected select_op::result(status ended) {
  if (!ended) return {ended, selected::none};
  cases_[chosen_]->finish();
  return {status::ok, chosen_};
}

std::size_t select_op::about(watch::subject* out, std::size_t room) const noexcept {
  std::size_t count = 0;
  for (const auto* c : cases_) {
    if (c->lock() == nullptr) continue;
    if (count < room) out[count] = c->about();
    ++count;
  }
  return count;
}

void select_op::note_uses() const noexcept {
  for (const auto* c : cases_) {
    if (c->lock() != nullptr) c->note_use();
  }
}

void select_op::check_can_end(const wait_limits& limits) const noexcept {
  check(can_be_ready() || !limits.deadline.is_never() || limits.stop.stop_possible(),
        "sluice::select", "a channel, a deadline or a stop_token: this would wait for ever",
        limits.at);
}

selected select_within(const wait_limits& limits, std::span<select_case* const> cases) {
  select_op op(cases);
  op.check_can_end(limits);
  if (!watch::is_on()) [[likely]] return block_on(op, limits);
  wait_limits placed(limits);  // the cases leave no room for a place of the call
  placed.at = limits.at.called_from(__builtin_return_address(0));
  return block_on(op, placed);
}

selected try_select(std::span<select_case* const> cases) {
  select_op op(cases);
  return op.result(op.attempt_at_one_moment() ? status::ok : status::empty);
}

}  // namespace sluice
