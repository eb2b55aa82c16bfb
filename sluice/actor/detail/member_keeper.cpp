#include "sluice/actor/detail/member_keeper.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::detail {

cell_ptr member_keeper::begin(cell& parent, const std::shared_ptr<member_table>& of) {
  actor_options o;
  o.name = of->options().name;
  o.children = of->options().supervise;
  const cell_ptr keeper = spawn_cell<member_keeper>(
      parent, o, from_arguments<member_keeper, std::shared_ptr<member_table>>(std::in_place, of));
  watch_end(*keeper, [of](const actor_end&) { of->end(); });
  return keeper;
}

member_keeper::member_keeper(std::shared_ptr<member_table> of)
    : table_(std::move(of)),
      wanted_(table_->resized_to > 0 ? table_->resized_to : table_->options().members_min),
      grown_at_(now()) {
  table_->growth_asked.store(false, relaxed);  // the timer that would take it back is gone
  while (members_.size() < wanted_) add_member();
  publish();
}

void member_keeper::stopping() {
  members_.clear();
  draining_.clear();
  publish();
}

// ---- its turn

// What throws (the constructor of a member) makes the keeper fail, and its own parent decides.
template <class F>
void member_keeper::in_turn(const cell_ptr& keeper, F f) {
  (void)keeper->call([keeper, f = std::move(f)] {
    if (keeper->life() != cell::mode::running) return;  // there may be no state
    try {
      f(static_cast<typed_cell<member_keeper>&>(*keeper).state());
    } catch (...) {
      keeper->fail(std::current_exception());
    }
  });
}

template <class F>
void member_keeper::after(std::chrono::nanoseconds wait, F f) {
  cell& mine = self().cell_of();
  mine.call_after(wait, [&mine, f = std::move(f)](std::uint64_t) {
    try {
      f();
    } catch (...) {
      mine.fail(std::current_exception());
    }
  });
}

void member_keeper::tell_load_rose(const cell_ptr& keeper) {
  in_turn(keeper, [](member_keeper& k) { k.look_at_load(); });
}
void member_keeper::tell_resize(const cell_ptr& keeper, std::size_t members) {
  in_turn(keeper, [members](member_keeper& k) { k.resize(members); });
}

time_point member_keeper::now() const noexcept {
  return clock_of(self().cell_of()).now();
}

// ---- members

void member_keeper::add_member() {
  const group_options& o = table_->options();
  const std::uint64_t slot = free_slot();
  actor_options how = o.member;
  how.name = (how.name.empty() ? o.name : how.name) + "/" + std::to_string(slot);
  cell& mine = self().cell_of();
  const cell_ptr made = o.spawn(mine, how);
  members_.push_back({.is = {made, slot}, .begun = made->begun(), .used_at = now()});
  watch_end(*made, [keeper = cell_ptr(&mine), who = made.get()](const actor_end&) {
    in_turn(keeper, [who](member_keeper& k) { k.member_ended(who); });
  });
}

std::uint64_t member_keeper::free_slot() const noexcept {
  for (std::uint64_t slot = 1;; ++slot) {
    // One that drains has its name still.
    const auto has_it = [&](const member& m) { return m.slot == slot; };
    if (std::ranges::none_of(members_, has_it, &kept::is) &&
        std::ranges::none_of(draining_, has_it)) {
      return slot;
    }
  }
}

void member_keeper::member_ended(const cell* who) {
  if (std::erase_if(draining_, [&](const member& m) { return m.who.get() == who; }) > 0) {
    table_->drained.fetch_add(1, relaxed);  // a number for people, as are the others
    return publish();
  }
  if (std::erase_if(members_, [&](const kept& m) { return m.is.who.get() == who; }) == 0) return;
  publish();  // also if no other can be made
  fill();
  publish();
}

// As many in a given time as may be restarted, so that members that end at once do not keep a
// thread busy.
void member_keeper::fill() {
  const supervision& limit = table_->options().supervise;
  const time_point time = now();
  while (!replacements_.empty() && time - replacements_.front() > limit.within) {
    replacements_.pop_front();
  }
  while (members_.size() < wanted_) {
    if (replacements_.size() >= std::max<std::uint32_t>(limit.restarts_max, 1)) {
      if (std::exchange(fills_later_, true)) return;
      // Past the limit, and not at it.
      const auto wait = replacements_.front() + limit.within - time + std::chrono::nanoseconds(1);
      return after(wait, [this] {
        fills_later_ = false;
        fill();
        publish();
      });
    }
    replacements_.push_back(time);
    table_->replaced.fetch_add(1, relaxed);
    add_member();
  }
}

// It is out of the list before it is told: whoever still sends to it hears `closed`, and finds
// another.
void member_keeper::drain(std::size_t at) {
  const cell_ptr who = members_[at].is.who;
  draining_.push_back(members_[at].is);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  publish();
  who->request_stop(stop_how::drain);
}

void member_keeper::resize(std::size_t members) {
  wanted_ = table_->resized_to = members;
  while (members_.size() > wanted_) {
    const auto last =
        std::ranges::max_element(members_, {}, [](const kept& m) { return m.is.slot; });
    drain(static_cast<std::size_t>(last - members_.begin()));
  }
  while (members_.size() < wanted_) add_member();
  publish();
}

void member_keeper::publish() {
  std::vector<member> all;
  all.reserve(members_.size());
  for (const kept& m : members_) all.push_back(m.is);
  std::ranges::sort(all, {}, &member::slot);
  table_->publish(std::move(all), draining_.size());
}

// ---- load

// A sender has met a long queue. Whatever comes of it, the next one is not heard before the pause
// is over.
void member_keeper::look_at_load() {
  go_on_looking();  // first: also if no member can be made
  (void)grow_if_loaded();
}

void member_keeper::go_on_looking() {
  table_->growth_asked.store(true, relaxed);  // nothing is read by it
  after(table_->options().grow_pause, [this] {
    // acq_rel: pairs with the sender's. Taken back before it looks: who comes later, calls.
    table_->growth_asked.exchange(false, acq_rel);
    if (grow_if_loaded()) go_on_looking();
  });
}

bool member_keeper::grow_if_loaded() {
  const group_options& o = table_->options();
  if (members_.size() + draining_.size() >= o.members_max) return false;
  std::size_t queued = 0;
  for (const kept& m : members_) queued += m.is.who->queued();
  if (queued < o.grow_at * members_.size()) return false;
  ++wanted_;
  add_member();
  grown_at_ = now();
  table_->grown.fetch_add(1, relaxed);
  publish();
  watch_for_idle();
  return true;
}

// A timer only while there is somebody to spare.
void member_keeper::watch_for_idle() {
  const group_options& o = table_->options();
  if (o.grow_at == 0 || wanted_ <= o.members_min || std::exchange(looks_for_idle_, true)) return;
  const auto wait = std::max<std::chrono::nanoseconds>(o.idle_for / 4, std::chrono::nanoseconds(1));
  after(wait, [this] {
    looks_for_idle_ = false;
    look_for_idle();
    watch_for_idle();
  });
}

void member_keeper::look_for_idle() {
  const group_options& o = table_->options();
  const time_point time = now();
  for (kept& m : members_) {
    const std::uint32_t begun = m.is.who->begun();
    if (begun == m.begun && m.is.who->load() == 0) continue;
    m.begun = begun;
    m.used_at = time;
  }
  if (time - grown_at_ < o.idle_for) return;
  for (std::size_t i = members_.size(); i-- > 0 && wanted_ > o.members_min;) {
    if (time - members_[i].used_at < o.idle_for) continue;
    --wanted_;
    drain(i);
  }
}

}  // namespace sluice::detail
