#include "sluice/actor/detail/member_table.hpp"

#include <mutex>
#include <optional>

#include "sluice/actor/detail/member_keeper.hpp"
#include "sluice/actor/detail/room_wait.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/rendezvous.hpp"

namespace sluice::detail {
namespace {

bool is_taken(status how) noexcept {
  return how == status::ok || how == status::dropped;
}

// The one that bids most of those that bid less than `below`; the size: there is none.
std::size_t best_bidder(const std::vector<member>& all, std::uint64_t key,
                        const std::optional<std::uint64_t>& below) noexcept {
  std::size_t best = all.size();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t offered = bid(all[i].slot, key);
    if (below && offered >= *below) continue;
    if (best != all.size() && offered <= most) continue;
    best = i;
    most = offered;
  }
  return best;
}

std::size_t least_loaded(const std::vector<member>& all) noexcept {
  std::size_t best = 0;
  std::size_t least = all[0].who->load();
  for (std::size_t i = 1; i < all.size() && least > 0; ++i) {
    const std::size_t load = all[i].who->load();
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
              "sluice::actor_router", name, "round_robin, least_loaded or by_key");
  check_named(options_.members_min > 0 && options_.members_min <= options_.members_max,
              "sluice::actor_router", name, "one member at least, and no less than that at most");
}

// ---- to whom

status member_table::offer(cell& to, envelope& e) const {
  // What one would drop goes to another that has room.
  if (drops_ && to.queued() >= options_.member.mailbox.capacity) return status::full;
  return to.send(e, nullptr);
}

member_table::tried member_table::try_in_turn(const member_list& those, envelope& e,
                                              std::size_t first) {
  const std::size_t count = those.all.size();
  std::optional<std::size_t> full_at;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (first + i) % count;
    const status how = offer(*those.all[at].who, e);
    if (is_taken(how)) return {how, at};
    if (how == status::full && !full_at) full_at = at;
  }
  if (!full_at) return {status::closed};
  return {status::full, *full_at};
}

// Only its owner; while that is being replaced, the one that would own it without.
member_table::tried member_table::try_by_key(const member_list& those, envelope& e,
                                             std::uint64_t key) {
  for (std::optional<std::uint64_t> below;;) {
    const std::size_t at = best_bidder(those.all, key, below);
    if (at == those.all.size()) return {status::closed};
    const status how = those.all[at].who->send(e, nullptr);
    if (how != status::closed) return {how, at};
    below = bid(those.all[at].slot, key);
  }
}

member_table::tried member_table::try_each(const member_list& those, envelope& e, key_if_any key) {
  if (those.all.empty() || those.is_over) return {status::closed};
  if (options_.rule == routing::by_key && key != nullptr) return try_by_key(those, e, *key);
  if (options_.rule == routing::least_loaded) return try_in_turn(those, e, least_loaded(those.all));
  // relaxed: any turn is as good as another.
  return try_in_turn(those, e, turn_.fetch_add(1, relaxed) % those.all.size());
}

// ---- handing in

status member_table::hand_in(const cell_ptr& keeper, envelope& e, key_if_any key,
                             const wait_limits* limits, cell_ptr* by) {
  e.is_tried = true;
  for (;;) {
    if (limits != nullptr && limits->stop.stop_requested()) return refuse(status::stopped);
    const view those = now();
    const tried t = try_each(*those, e, key);
    if (by != nullptr && !those->all.empty()) *by = those->all[t.at].who;
    if (is_taken(t.how)) return took(keeper, *those, *those->all[t.at].who, t.how);
    if (t.how == status::full) {
      if (limits == nullptr && !drops_) return refuse(status::full);
      cell& who = *those->all[t.at].who;
      const status how = who.send(e, limits);
      if (is_taken(how)) return took(keeper, *those, who, how);
      if (how != status::closed) return refuse(how);
      continue;
    }
    if (those->is_over) {
      keeper->note_lost(e);
      return refuse(status::closed);
    }
    if (limits == nullptr) return refuse(status::full);
    const status there = those->replaced->wait_within(*limits);
    if (!there) return refuse(there);
  }
}

task<status> member_table::hand_in_async(const cell_ptr& keeper, envelope& e, key_if_any key,
                                         wait_limits limits, cell_ptr* by) {
  e.is_tried = true;
  for (;;) {
    if (limits.stop.stop_requested()) co_return refuse(status::stopped);
    const view those = now();
    const tried t = try_each(*those, e, key);
    if (by != nullptr && !those->all.empty()) *by = those->all[t.at].who;
    if (is_taken(t.how)) co_return took(keeper, *those, *those->all[t.at].who, t.how);
    if (t.how == status::full) {
      cell& who = *those->all[t.at].who;
      status how = who.send(e, nullptr);  // for whoever observes, it is that one's from here on
      if (who.lets_wait(how)) {
        awaitable<told_room_wait> room(limits, who, e);
        how = co_await room;
      }
      if (is_taken(how)) co_return took(keeper, *those, who, how);
      if (how != status::closed) co_return refuse(how);
      continue;
    }
    if (those->is_over) {
      keeper->note_lost(e);
      co_return refuse(status::closed);
    }
    auto change = those->replaced->async_wait(limits);
    const status there = co_await change;
    if (!there) co_return refuse(there);
  }
}

status member_table::took(const cell_ptr& keeper, const member_list& those, const cell& who,
                          status how) {
  if (how) handed.increment();
  // exchange, also where it is true already: the keeper that takes it back sees what is in the
  // mailbox by now.
  if (those.may_grow && who.queued() >= options_.grow_at && !growth_asked.exchange(true, acq_rel)) {
    member_keeper::tell_load_rose(keeper);
  }
  return how;
}

status member_table::refuse(status how) {
  refused.increment();
  return how;
}

cell_ptr member_table::owner_of(std::uint64_t key) const {
  const view those = now();
  for (std::optional<std::uint64_t> below;;) {
    const std::size_t at = best_bidder(those->all, key, below);
    if (at == those->all.size()) return {};
    if (!those->all[at].who->is_over()) return those->all[at].who;
    below = bid(those->all[at].slot, key);
  }
}

// ---- the list

void member_table::publish(std::vector<member> all, std::size_t draining_now) {
  member_list next;
  next.may_grow = options_.grow_at > 0 && all.size() + draining_now < options_.members_max;
  next.all = std::move(all);
  draining.store(draining_now, relaxed);  // a number for people
  replace(std::move(next));
}

void member_table::end() {
  member_list next;
  next.is_over = true;
  replace(std::move(next));
}

void member_table::replace(member_list next) {
  view before;
  {
    const std::lock_guard hold(replacing_);
    is_over_ = is_over_ || next.is_over;
    next.is_over = is_over_;
    before = now();
    list_.publish(std::move(next));
  }
  before->replaced->set();
}

}  // namespace sluice::detail
