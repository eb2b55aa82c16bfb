#include "sluice/actor/detail/become.hpp"

#include <algorithm>
#include <mutex>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/sending.hpp"
#include "sluice/actor/detail/system_core.hpp"

namespace sluice::detail {

clock& clock_of(const cell& c) noexcept {
  return c.system().clock();
}

actor_error::reason reason_of(status result) noexcept {
  if (result == status::closed) return actor_error::terminated;
  if (result == status::stopped) return actor_error::stopped;
  return actor_error::full;  // also if the deadline passed while the mailbox was full
}

void reported_wait::begin(const cell& target, actor_wait kind) noexcept {
  const cell* const here = cell::current();
  if (here == nullptr || &here->system() != &target.system()) return;
  if (target.system().observer() == nullptr) return;
  observer_ = target.system().observer();
  waiter_ = here->id();
  target_ = target.id();
  kind_ = kind;
  number_ = target.system().next_wait();
  observer_->wait_begun(waiter_, target_, kind_, number_);
}

void reported_wait::move_to(const cell& target) noexcept {
  if (observer_ == nullptr || target.id() == target_) return;
  if (target.system().observer() != observer_) return;
  observer_->wait_ended(waiter_, target_, kind_, number_);
  target_ = target.id();
  number_ = target.system().next_wait();
  observer_->wait_begun(waiter_, target_, kind_, number_);
}

void reported_wait::end() noexcept {
  if (observer_ == nullptr) return;
  std::exchange(observer_, nullptr)->wait_ended(waiter_, target_, kind_, number_);
}

reported_ask_ptr reported_ask::of(const cell& asked) {
  if (asked.system().observer() == nullptr || cell::current() == nullptr) [[likely]]
    return nullptr;
  auto ask = std::make_shared<reported_ask>();
  ask->wait_.begin(asked, actor_wait::answer);
  return ask->wait_.has_begun() ? ask : nullptr;
}

void reported_ask::move_to(const cell& asked) noexcept {
  const std::lock_guard hold(lock_);
  wait_.move_to(asked);
}

void reported_ask::end() noexcept {
  const std::lock_guard hold(lock_);
  wait_.end();
}

namespace {

// Returns whether `error` is what a wait throws when w stop token is triggered.
bool is_stop_error(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const future_error& e) {
    return e.why() == future_error::cancelled;
  } catch (const actor_error& e) {
    return e.why() == actor_error::stopped;
  } catch (...) {
    return false;
  }
}

}  // namespace

void task_failed(cell& c, const std::exception_ptr& error) noexcept {
  if (c.current_mode() != cell::mode::running && is_stop_error(error)) return;
  c.fail(error);
}

// ---- watches and links

void watch_end(cell& other, unique_function<void(const actor_end&)> notify, watch_terms terms) {
  // Runs in the turn of `other`, or on this thread if `other` has terminated.
  auto shared = std::make_shared<unique_function<void(const actor_end&)>>(std::move(notify));
  const cell_ptr held(&other);
  const bool is_accepted = other.call([held, shared, terms] {
    // The parent is notified after it has unlinked the child, as the last watcher.
    const bool is_of_parent =
        terms.owner == held->parent() && terms.relation == watcher::kind::watch;
    if (held->is_terminated() && !is_of_parent) return (*shared)(held->end_info());
    std::vector<watcher>& all = held->extra().watchers;
    // An actor that restarts often and watches in each life leaves stopped watchers: erase them
    // before the vector grows. Links are removed explicitly.
    if (all.size() == all.capacity()) {
      std::erase_if(all, [](const watcher& w) {
        return w.stop.stop_requested() && w.relation != watcher::kind::link;
      });
    }
    all.push_back(
        {[shared](const actor_end& e) { (*shared)(e); }, terms.stop, terms.owner, terms.relation});
  });
  if (is_accepted) return;
  if (terms.owner == other.parent() && terms.relation == watcher::kind::watch) {
    watcher later{[shared](const actor_end& e) { (*shared)(e); }, terms.stop, terms.owner,
                  terms.relation};
    if (terms.owner->notify_after_unlink(other, later)) return;
  }
  (*shared)(other.end_info());
}

namespace {

std::size_t remove_watchers(cell& watched, const cell& owner, watcher::kind relation) {
  return std::erase_if(watched.extra().watchers, [&](const watcher& w) {
    return w.owner == &owner && w.relation == relation;
  });
}

void order_remove_watchers(cell& watched, cell& owner, watcher::kind relation) {
  (void)watched.call([held = cell_ptr(&watched), owner = cell_ptr(&owner), relation] {
    if (!held->is_terminated()) (void)remove_watchers(*held, *owner, relation);
  });
}

bool is_linked(const cell_extra& x, const cell& other) {
  return std::ranges::any_of(x.watchers, [&](const watcher& w) {
    return w.owner == &other && w.relation == watcher::kind::link;
  });
}

// Called when an actor that is linked to `held` has ended. Ended links are erased only when they
// may be half of the list, so each end costs amortized O(1).
void link_ended(const cell_ptr& held, const cell_ptr& other, const actor_end& e,
                const std::stop_token& stop) {
  cell& c = *held;
  (void)c.call([held, other, stop, name = e.name, has_failed = e.why == end_reason::failed] {
    if (held->is_terminated() || stop.stop_requested()) return;
    cell_extra& x = held->extra();
    if (!has_failed) {
      if (++x.ended_links * 2 < x.watchers.size()) return;
      x.ended_links = 0;
      std::erase_if(x.watchers, [](const watcher& w) {
        return w.relation == watcher::kind::link && w.owner->is_terminated();
      });
      return;
    }
    if (!is_linked(x, *other)) return;  // unlinked meanwhile
    (void)remove_watchers(*held, *other, watcher::kind::link);
    held->fail_after_restart(std::make_exception_ptr(actor_error(actor_error::linked, name, "")));
  });
}

}  // namespace

// Each of the two cells is in the watcher list of the other. A callback holds no reference to the
// cell whose list contains it: that would be a cycle.
void link_cells(cell& self, cell& other) {
  const cell_ptr self_ref(&self);
  const cell_ptr other_ref(&other);
  self.extra().watchers.push_back(
      {.notify = [ends = &self,
                  other_ref](const actor_end& e) { link_ended(other_ref, cell_ptr(ends), e, {}); },
       .owner = &other,
       .relation = watcher::kind::link,
       .ends_at_restart = true});
  const std::stop_token stop = self.task_token();
  watch_end(other,
            [self_ref, ends = &other, stop](const actor_end& e) {
              link_ended(self_ref, cell_ptr(ends), e, stop);
            },
            {.stop = stop, .owner = &self, .relation = watcher::kind::link});
}

bool unlink_cells(cell& self, cell& other) {
  if (remove_watchers(self, other, watcher::kind::link) == 0) return false;
  order_remove_watchers(other, self, watcher::kind::link);
  return !other.is_terminated();
}

void drop_links(cell& self) {
  for (const watcher& w : self.extra().watchers) {
    if (!w.ends_at_restart) continue;
    (void)w.owner->call([held = cell_ptr(w.owner), removed = cell_ptr(&self)] {
      if (held->is_terminated()) return;
      std::erase_if(held->extra().watchers, [&](const watcher& link) {
        return link.owner == removed.get() && link.relation == watcher::kind::link &&
               !link.ends_at_restart;
      });
    });
  }
  std::erase_if(self.extra().watchers, [](const watcher& w) { return w.ends_at_restart; });
  self.extra().ended_links = 0;
}

std::uint64_t begin_watch(cell& self, cell& other) {
  cell_extra& x = self.extra();
  x.watched.emplace(++x.last_watch, cell_ptr(&other));
  return x.last_watch;
}

bool end_watch(cell& self, std::uint64_t number) {
  return self.extra().watched.erase(number) > 0;
}

bool unwatch_cell(cell& self, cell& other) {
  if (std::erase_if(self.extra().watched, [&](auto& w) { return w.second.get() == &other; }) == 0) {
    return false;
  }
  order_remove_watchers(other, self, watcher::kind::watch);
  return true;
}

bool has_stash_capacity(cell& c) {
  const cell_extra& x = c.extra();
  return x.stashed < x.stash_capacity;
}

status stash_envelope(cell& c, envelope& e) {
  cell_extra& x = c.extra();
  e.is_counted = false;
  e.note = cell::current_mark().note;
  ++x.stashed;
  x.stash.push_back(e);
  return status::ok;
}

void unstash_all_of(cell& c) {
  cell_extra& x = c.extra();
  x.stashed = 0;
  c.unstash(x.stash);
}

void become_in(cell& c, std::unique_ptr<behaviour> next) {
  behaviour::retire_last(c.extra().behaviours);
  c.extra().behaviours.push_back(std::move(next));
  c.set_has_behaviour(true);
}

void become_stacked_in(cell& c, std::unique_ptr<behaviour> next) {
  std::vector<std::unique_ptr<behaviour>>& all = c.extra().behaviours;
  check(all.size() < behaviour::stacked_max, "sluice::actor::become_stacked",
        "at most 64 stacked behaviours: call unbecome to remove one");
  all.push_back(std::move(next));
  c.set_has_behaviour(true);
}

void unbecome_in(cell& c) {
  std::vector<std::unique_ptr<behaviour>>& all = c.extra().behaviours;
  behaviour::retire_last(all);
  c.set_has_behaviour(!all.empty());
}

void behaviour::retire_last(std::vector<std::unique_ptr<behaviour>>& all) noexcept {
  if (all.empty()) return;
  behaviour* const last = all.back().release();
  all.pop_back();
  // A running or suspended handler may still use it: the last use deletes it.
  last->is_retired_ = true;
  if (last->users_ == 0) delete last;
}

}  // namespace sluice::detail
