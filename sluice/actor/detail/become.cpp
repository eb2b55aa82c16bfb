#include "sluice/actor/detail/become.hpp"

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/sending.hpp"
#include "sluice/actor/detail/system_core.hpp"

namespace sluice::detail {

clock& clock_of(const cell& c) noexcept {
  return c.system().clock();
}

actor_error::reason reason_of(status how) noexcept {
  if (how == status::closed) return actor_error::gone;
  if (how == status::stopped) return actor_error::stopped;
  return actor_error::full;  // also when the deadline came while there was no room
}

void told_wait::begin(const cell& for_whom, actor_wait what) noexcept {
  const cell* const here = cell::current();
  if (here == nullptr || &here->system() != &for_whom.system()) return;
  if (for_whom.system().observer() == nullptr) return;
  tell_ = for_whom.system().observer();
  who_ = here->id();
  for_whom_ = for_whom.id();
  what_ = what;
  number_ = for_whom.system().next_wait();
  tell_->waits(who_, for_whom_, what_, number_);
}

void told_wait::end() noexcept {
  if (tell_ == nullptr) return;
  std::exchange(tell_, nullptr)->waits_no_more(who_, for_whom_, what_, number_);
}

void task_failed(cell& c, const std::exception_ptr& error) noexcept {
  if (c.life() == cell::mode::running) return c.fail(error);
  // It was asked to stop, and says so.
}

void watch_end(cell& other, unique_function<void(const actor_end&)> tell, std::stop_token life) {
  // In the turn of the other, or, if that is over, here.
  auto shared = std::make_shared<unique_function<void(const actor_end&)>>(std::move(tell));
  const cell_ptr held(&other);
  const bool taken = other.call([held, shared, life = std::move(life)] {
    if (held->is_over()) return (*shared)(held->how_it_ended());
    std::vector<watcher>& all = held->extra().watchers;
    // Those that are gone would gather while one is made anew again and again and watches each
    // time.
    if (all.size() == all.capacity()) {
      std::erase_if(all, [](const watcher& w) { return w.life.stop_requested(); });
    }
    all.push_back({[shared](const actor_end& e) { (*shared)(e); }, life, watcher::kind::lasting});
  });
  if (!taken) (*shared)(other.how_it_ended());
}

void link_cells(cell& mine, cell& other) {
  const auto fails_with = [](cell& c, const std::string& name, const std::stop_token& life) {
    (void)c.call([held = cell_ptr(&c), name, life] {
      if (life.stop_requested()) return;
      held->fail(std::make_exception_ptr(actor_error(actor_error::linked, name, "")));
    });
  };
  mine.extra().watchers.push_back({[held = cell_ptr(&other), fails_with](const actor_end& e) {
                                     if (e.why == end_reason::failed) fails_with(*held, e.name, {});
                                   },
                                   {},
                                   watcher::kind::of_this_life});
  const std::stop_token life = mine.task_token();
  watch_end(
      other,
      [held = cell_ptr(&mine), life, fails_with](const actor_end& e) {
        if (e.why == end_reason::failed) fails_with(*held, e.name, life);
      },
      life);
}

bool has_stash_room(cell& c) {
  const cell_extra& x = c.extra();
  return x.stashed < x.stash_capacity;
}

status put_aside(cell& c, envelope& e) {
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

void become_in(cell& c, std::unique_ptr<behaviour> how) {
  c.extra().behaviours.push_back(std::move(how));
  c.set_behaving(true);
}

void unbecome_in(cell& c) {
  cell_extra& x = c.extra();
  if (!x.behaviours.empty()) c.retire_behaviour();
}

}  // namespace sluice::detail
