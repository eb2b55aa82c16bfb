#include "sluice/actor/detail/member_keeper.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::detail {

cell_ptr member_keeper::begin(cell& parent, const std::shared_ptr<member_table>& table) {
  actor_options o;
  o.name = table->options().name;
  o.children = table->options().supervise;
  const cell_ptr keeper = spawn_cell<member_keeper>(
      parent, o,
      from_arguments<member_keeper, std::shared_ptr<member_table>>(std::in_place, table));
  watch_end(*keeper, [table](const actor_end&) { table->end(); });
  return keeper;
}

member_keeper::member_keeper(std::shared_ptr<member_table> table)
    : table_(std::move(table)),
      target_size_(table_->resized_to > 0 ? table_->resized_to : table_->options().members_min),
      grown_at_(now()) {
  // the timer that would reset it was dropped by the restart
  table_->is_growth_reported.store(false, relaxed);
  while (members_.size() < target_size_) add_member();
  publish();
}

void member_keeper::stopping() {
  members_.clear();
  draining_.clear();
  publish();
}

// ---- turns

// Runs f in the keeper's turn. If f throws (the constructor of a member), the keeper fails, and its
// parent decides.
template <class F>
void member_keeper::run_in_turn(const cell_ptr& keeper, F f) {
  (void)keeper->call([keeper, f = std::move(f)] {
    if (keeper->current_mode() != cell::mode::running) return;  // it may have no state
    try {
      f(static_cast<typed_cell<member_keeper>&>(*keeper).state());
    } catch (...) {
      keeper->fail(std::current_exception());
    }
  });
}

template <class F>
void member_keeper::after(std::chrono::nanoseconds wait, F f) {
  cell& own = self().cell_of();
  own.call_after(wait, [&own, f = std::move(f)](std::uint64_t) {
    try {
      f();
    } catch (...) {
      own.fail(std::current_exception());
    }
  });
}

void member_keeper::report_load(const cell_ptr& keeper) {
  run_in_turn(keeper, [](member_keeper& k) { k.check_load(); });
}
void member_keeper::request_resize(const cell_ptr& keeper, std::size_t members) {
  run_in_turn(keeper, [members](member_keeper& k) { k.resize(members); });
}

time_point member_keeper::now() const noexcept {
  return clock_of(self().cell_of()).now();
}

// ---- members

void member_keeper::add_member() {
  const group_options& o = table_->options();
  const std::uint64_t slot = free_slot();
  actor_options options = o.member;
  options.name = (options.name.empty() ? o.name : options.name) + "/" + std::to_string(slot);
  cell& own = self().cell_of();
  const cell_ptr spawned = o.spawn(own, options);
  members_.push_back({.info = {spawned, slot}, .begun = spawned->begun(), .used_at = now()});
  watch_end(*spawned, [keeper = cell_ptr(&own), ended = spawned.get()](const actor_end&) {
    run_in_turn(keeper, [ended](member_keeper& k) { k.member_ended(ended); });
  });
}

std::uint64_t member_keeper::free_slot() const noexcept {
  for (std::uint64_t slot = 1;; ++slot) {
    // A draining member still uses its name.
    const auto uses_slot = [&](const member& m) { return m.slot == slot; };
    if (std::ranges::none_of(members_, uses_slot, &tracked_member::info) &&
        std::ranges::none_of(draining_, uses_slot)) {
      return slot;
    }
  }
}

void member_keeper::member_ended(const cell* ended) {
  if (std::erase_if(draining_, [&](const member& m) { return m.target.get() == ended; }) > 0) {
    table_->drained.fetch_add(1, relaxed);  // relaxed: statistics, like the others
    return publish();
  }
  if (std::erase_if(members_,
                    [&](const tracked_member& m) { return m.info.target.get() == ended; }) == 0)
    return;
  publish();  // also if the replacement cannot be created
  fill();
  publish();
}

// Replaces missing members, limited like restarts: members that end at once must not keep a thread
// busy.
void member_keeper::fill() {
  const supervision& limit = table_->options().supervise;
  const time_point time = now();
  while (!replacements_.empty() && time - replacements_.front() > limit.within) {
    replacements_.pop_front();
  }
  while (members_.size() < target_size_) {
    if (replacements_.size() >= std::max<std::uint32_t>(limit.restarts_max, 1)) {
      if (std::exchange(has_fill_timer_, true)) return;
      // Just past the limit, not at it.
      const auto wait = replacements_.front() + limit.within - time + std::chrono::nanoseconds(1);
      return after(wait, [this] {
        has_fill_timer_ = false;
        fill();
        publish();
      });
    }
    replacements_.push_back(time);
    table_->replaced.fetch_add(1, relaxed);
    add_member();
  }
}

// Removes the member from the list before it is stopped: a sender that still has it gets `closed`,
// and tries another.
void member_keeper::drain(std::size_t at) {
  const cell_ptr target = members_[at].info.target;
  draining_.push_back(members_[at].info);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  publish();
  target->request_stop(stop_mode::drain);
}

void member_keeper::resize(std::size_t members) {
  target_size_ = table_->resized_to = members;
  while (members_.size() > target_size_) {
    const auto last =
        std::ranges::max_element(members_, {}, [](const tracked_member& m) { return m.info.slot; });
    drain(static_cast<std::size_t>(last - members_.begin()));
  }
  while (members_.size() < target_size_) add_member();
  publish();
}

void member_keeper::publish() {
  std::vector<member> all;
  all.reserve(members_.size());
  for (const tracked_member& m : members_) all.push_back(m.info);
  std::ranges::sort(all, {}, &member::slot);
  table_->publish(std::move(all), draining_.size());
}

// ---- load

// Called when a sender saw a long mailbox. The next report is accepted after the pause, even if the
// group did not grow.
void member_keeper::check_load() {
  schedule_load_check();  // first: also if no member can be created
  (void)grow_if_loaded();
}

void member_keeper::schedule_load_check() {
  table_->is_growth_reported.store(true, relaxed);  // relaxed: publishes no data
  after(table_->options().grow_pause, [this] {
    // acq_rel: pairs with the exchange of the sender. Reset before the check: a later sender
    // reports again.
    table_->is_growth_reported.exchange(false, acq_rel);
    if (grow_if_loaded()) schedule_load_check();
  });
}

bool member_keeper::grow_if_loaded() {
  const group_options& o = table_->options();
  if (members_.size() + draining_.size() >= o.members_max) return false;
  std::size_t queued = 0;
  for (const tracked_member& m : members_) queued += m.info.target->queued();
  if (queued < o.grow_at * members_.size()) return false;
  ++target_size_;
  add_member();
  grown_at_ = now();
  table_->grown.fetch_add(1, relaxed);
  publish();
  schedule_idle_check();
  return true;
}

// A timer runs only while there are members in excess of members_min.
void member_keeper::schedule_idle_check() {
  const group_options& o = table_->options();
  if (o.grow_at == 0 || target_size_ <= o.members_min || std::exchange(has_idle_timer_, true))
    return;
  const auto wait = std::max<std::chrono::nanoseconds>(o.idle_for / 4, std::chrono::nanoseconds(1));
  after(wait, [this] {
    has_idle_timer_ = false;
    drain_idle();
    schedule_idle_check();
  });
}

void member_keeper::drain_idle() {
  const group_options& o = table_->options();
  const time_point time = now();
  for (tracked_member& m : members_) {
    const std::uint32_t begun = m.info.target->begun();
    if (begun == m.begun && m.info.target->load() == 0) continue;
    m.begun = begun;
    m.used_at = time;
  }
  if (time - grown_at_ < o.idle_for) return;
  for (std::size_t i = members_.size(); i-- > 0 && target_size_ > o.members_min;) {
    if (time - members_[i].used_at < o.idle_for) continue;
    --target_size_;
    drain(i);
  }
}

}  // namespace sluice::detail
