#include "sluice/actor/detail/member_table.hpp"

#include <mutex>
#include <optional>

#include "sluice/actor/detail/capacity_wait.hpp"
#include "sluice/actor/detail/member_keeper.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/rendezvous.hpp"

namespace sluice::detail {
namespace {

bool is_delivered(status result) noexcept {
  return result == status::ok || result == status::dropped;
}

// Returns the index of the member with the highest weight for `key`, among the members with a
// weight below `below`. Returns the size if no member qualifies.
std::size_t highest_weight(const std::vector<member>& all, std::uint64_t key,
                           const std::optional<std::uint64_t>& below) noexcept {
  std::size_t best = all.size();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t offered = rendezvous_weight(all[i].slot, key);
    if (below && offered >= *below) continue;
    if (best != all.size() && offered <= most) continue;
    best = i;
    most = offered;
  }
  return best;
}

std::size_t least_loaded(const std::vector<member>& all) noexcept {
  std::size_t best = 0;
  std::size_t least = all[0].target->load();
  for (std::size_t i = 1; i < all.size() && least > 0; ++i) {
    const std::size_t load = all[i].target->load();
    if (load >= least) continue;
    best = i;
    least = load;
  }
  return best;
}

}  // namespace

member_table::member_table(group_options o)
    : options_(std::move(o)),
      drops_(options_.member.mailbox.overflow == overflow::drop_newest ||
             options_.member.mailbox.overflow == overflow::drop_oldest ||
             options_.member.mailbox.overflow == overflow::latest),
      list_(member_list{}) {
  const char* const name = options_.name.c_str();
  check_named(options_.rule == routing::round_robin || options_.rule == routing::least_loaded ||
                  options_.rule == routing::by_key,
              "sluice::actor_router", name, "the rule round_robin, least_loaded or by_key");
  check_named(options_.members_min > 0 && options_.members_min <= options_.members_max,
              "sluice::actor_router", name, "1 <= members_min <= members_max");
}

// ---- selection

status member_table::offer(cell& target, envelope& e) const {
  // A full member would drop a message: offers it to another one first.
  if (drops_ && target.queued() >= options_.member.mailbox.capacity) return status::full;
  return target.send(e, nullptr);
}

member_table::try_result member_table::try_in_turn(const member_list& list, envelope& e,
                                                   std::size_t first) {
  const std::size_t count = list.all.size();
  std::optional<std::size_t> full_at;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (first + i) % count;
    const status result = offer(*list.all[index].target, e);
    if (is_delivered(result)) return {result, index};
    if (result == status::full && !full_at) full_at = index;
  }
  if (!full_at) return {status::closed};
  return {status::full, *full_at};
}

// Tries the owner of the key; while that is being replaced, the member next in weight.
member_table::try_result member_table::try_by_key(const member_list& list, envelope& e,
                                                  std::uint64_t key) {
  for (std::optional<std::uint64_t> below;;) {
    const std::size_t index = highest_weight(list.all, key, below);
    if (index == list.all.size()) return {status::closed};
    const status result = list.all[index].target->send(e, nullptr);
    if (result != status::closed) return {result, index};
    below = rendezvous_weight(list.all[index].slot, key);
  }
}

member_table::try_result member_table::try_each(const member_list& list, envelope& e,
                                                key_if_any key) {
  if (list.all.empty() || list.is_terminated) return {status::closed};
  if (options_.rule == routing::by_key && key != nullptr) return try_by_key(list, e, *key);
  if (options_.rule == routing::least_loaded) return try_in_turn(list, e, least_loaded(list.all));
  // relaxed: the position need not be exact.
  return try_in_turn(list, e, turn_.fetch_add(1, relaxed) % list.all.size());
}

// ---- submission

status member_table::submit(const cell_ptr& keeper, envelope& e, key_if_any key,
                            const wait_limits* limits, cell_ptr* chosen) {
  e.is_tried = true;
  for (;;) {
    if (limits != nullptr && limits->stop.stop_requested()) return note_refused(status::stopped);
    const view list = now();
    const try_result t = try_each(*list, e, key);
    if (chosen != nullptr && !list->all.empty()) *chosen = list->all[t.index].target;
    if (is_delivered(t.result))
      return note_accepted(keeper, *list, *list->all[t.index].target, t.result);
    if (t.result == status::full) {
      if (limits == nullptr && !drops_) return note_refused(status::full);
      cell& target = *list->all[t.index].target;
      const status result = target.send(e, limits);
      if (is_delivered(result)) return note_accepted(keeper, *list, target, result);
      if (result != status::closed) return note_refused(result);
      continue;
    }
    if (list->is_terminated) {
      keeper->report_lost(e);
      return note_refused(status::closed);
    }
    if (limits == nullptr) return note_refused(status::full);
    const status waited = list->replaced->wait(*limits);
    if (!waited) return note_refused(waited);
  }
}

task<status> member_table::submit_async(const cell_ptr& keeper, envelope& e, key_if_any key,
                                        wait_limits limits, cell_ptr* chosen) {
  e.is_tried = true;
  for (;;) {
    if (limits.stop.stop_requested()) co_return note_refused(status::stopped);
    const view list = now();
    const try_result t = try_each(*list, e, key);
    if (chosen != nullptr && !list->all.empty()) *chosen = list->all[t.index].target;
    if (is_delivered(t.result))
      co_return note_accepted(keeper, *list, *list->all[t.index].target, t.result);
    if (t.result == status::full) {
      cell& target = *list->all[t.index].target;
      status result = target.send(e, nullptr);  // for an observer, this member gets the message
      if (target.may_wait(result)) {
        awaitable<reported_capacity_wait> waiting(limits, target, e);
        result = co_await waiting;
      }
      if (is_delivered(result)) co_return note_accepted(keeper, *list, target, result);
      if (result != status::closed) co_return note_refused(result);
      continue;
    }
    if (list->is_terminated) {
      keeper->report_lost(e);
      co_return note_refused(status::closed);
    }
    auto change = list->replaced->async_wait(limits);
    const status waited = co_await change;
    if (!waited) co_return note_refused(waited);
  }
}

status member_table::note_accepted(const cell_ptr& keeper, const member_list& list,
                                   const cell& target, status result) {
  if (result) handed.increment();
  // exchange even if it is already true: the keeper that resets it then sees this message in the
  // mailbox.
  if (list.may_grow && target.queued() >= options_.grow_at &&
      !is_growth_reported.exchange(true, acq_rel)) {
    member_keeper::report_load(keeper);
  }
  return result;
}

status member_table::note_refused(status result) {
  refused.increment();
  return result;
}

cell_ptr member_table::owner_of(std::uint64_t key) const {
  const view list = now();
  for (std::optional<std::uint64_t> below;;) {
    const std::size_t index = highest_weight(list->all, key, below);
    if (index == list->all.size()) return {};
    if (!list->all[index].target->is_terminated()) return list->all[index].target;
    below = rendezvous_weight(list->all[index].slot, key);
  }
}

// ---- the list

void member_table::publish(std::vector<member> all, std::size_t draining_now) {
  member_list next;
  next.may_grow = options_.grow_at > 0 && all.size() + draining_now < options_.members_max;
  next.all = std::move(all);
  draining.store(draining_now, relaxed);  // relaxed: statistics
  replace(std::move(next));
}

void member_table::end() {
  member_list next;
  next.is_terminated = true;
  replace(std::move(next));
}

void member_table::replace(member_list next) {
  view previous;
  {
    const std::lock_guard hold(replacing_);
    is_terminated_ = is_terminated_ || next.is_terminated;
    next.is_terminated = is_terminated_;
    previous = now();
    list_.publish(std::move(next));
  }
  previous->replaced->set();
}

}  // namespace sluice::detail
