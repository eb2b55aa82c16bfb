#include "sluice/channel/select.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>

#include "sluice/base/random.hpp"

namespace sluice {

// Visits the cases in random order, drawn one by one, because most selects stop at the first.
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
  thread_local spin_budget budget;  // a select has no lasting object that could keep one
  return budget;
}

// The first pass skips a channel whose lock is taken: waiting for the lock costs more than serving
// another ready case.
auto select_op::attempt_case(std::size_t index, bool wait_for_lock) -> attempted {
  auto& candidate = *cases_[index];
  if (candidate.lock() == nullptr || !candidate.hint()) return attempted::not_ready;
  wake_batch wakes;
  std::unique_lock hold(*candidate.lock(), std::defer_lock);
  if (wait_for_lock) {
    hold.lock();
  } else if (!hold.try_lock()) {
    return attempted::lock_busy;
  }
  if (!candidate.attempt(wakes)) return attempted::not_ready;
  chosen_ = index;
  return attempted::taken;
}

bool select_op::attempt() {
  if (cases_.empty()) return false;
  if (wait_report::is_on()) [[unlikely]] note_uses();
  // One draw suffices when most cases are ready; the order of the rest is drawn only if not. In
  // both steps every ready case is equally likely, so it is in both together.
  const auto first = thread_random().below(static_cast<std::uint32_t>(cases_.size()));
  if (attempt_case(first, false) == attempted::taken) return true;
  random_order order(cases_.size());
  bool in_use = false;
  for (std::size_t step = 0; step < cases_.size(); ++step) {
    const auto found = attempt_case(order.next(step), false);
    if (found == attempted::taken) return true;
    in_use = in_use || found == attempted::lock_busy;
  }
  for (std::size_t step = 0; in_use && step < cases_.size(); ++step) {
    if (attempt_case(order.drawn(step), true) == attempted::taken) return true;
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
    // The same order in every select, so that two selects never wait for each other's lock.
    std::sort(first(), first() + lock_count_, std::less<>());
    lock_count_ = static_cast<std::size_t>(std::unique(first(), first() + lock_count_) - first());
  }
  std::for_each(first(), first() + lock_count_, [](spin_lock* l) { l->lock(); });
}

void select_op::unlock_all() {
  // After a commit the select may be destroyed once the last of these locks is released, but not
  // before: leaving the lists takes all of them.
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

bool select_op::attempt_atomic() {
  if (attempt()) return true;
  // With one channel, attempt() was atomic. With more, an item may have moved from a case not yet
  // tried to one already tried: "no case is ready" holds for all only under all locks.
  if (cases_.size() < 2) return false;
  wake_batch wakes;
  random_order order(cases_.size());
  lock_all();
  const bool done = attempt_locked(order, wakes);
  unlock_all();
  return done;
}

enlisted select_op::enlist(waiter& waiting) {
  wake_batch wakes;
  random_order order(cases_.size());
  lock_all();
  if (attempt_locked(order, wakes)) {
    unlock_all();
    return enlisted::finished;
  }
  waiter_ = &waiting;
  if (lock_count_ == 0) {  // null cases only: no lock keeps this select in place once committed
    return waiting.commit() ? enlisted::waiting : enlisted::ended;
  }
  // In the drawn order, so that of two cases on the same channel either may be served.
  for (std::size_t step = 0; step < cases_.size(); ++step) {
    auto& candidate = *cases_[order.drawn(step)];
    if (candidate.lock() != nullptr) candidate.link(waiting);
  }
  const bool waits = waiting.commit();
  if (!waits) {
    for (auto* c : cases_) {
      if (c->lock() != nullptr) c->leave(wakes);
    }
  }
  unlock_all();
  return waits ? enlisted::waiting : enlisted::ended;
}

bool select_op::woken() {
  const wait_node* const winner = waiter_->winner();
  bool finished = false;
  for (std::size_t index = 0; index < cases_.size(); ++index) {
    auto& candidate = *cases_[index];
    if (candidate.lock() == nullptr) continue;
    wake_batch wakes;
    const std::lock_guard hold(*candidate.lock());
    if (candidate.place() != winner) {
      candidate.leave(wakes);
    } else if (candidate.woken(wakes)) {
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

std::size_t select_op::wait_subject(wait_report::subject* out, std::size_t max) const noexcept {
  std::size_t count = 0;
  for (const auto* c : cases_) {
    if (c->lock() == nullptr) continue;
    if (count < max) out[count] = c->wait_subject();
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

selected select(const wait_limits& limits, std::span<select_case* const> cases) {
  select_op op(cases);
  op.check_can_end(limits);
  if (!wait_report::is_on()) [[likely]] return block_on(op, limits);
  wait_limits placed(limits);  // variadic cases leave no place for a call_site argument
  placed.at = limits.at.called_from(__builtin_return_address(0));
  return block_on(op, placed);
}

selected try_select(std::span<select_case* const> cases) {
  select_op op(cases);
  return op.result(op.attempt_atomic() ? status::ok : status::empty);
}

}  // namespace sluice
