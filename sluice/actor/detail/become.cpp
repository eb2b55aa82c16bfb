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

void told_wait::move_to(const cell& for_whom) noexcept {
  if (tell_ == nullptr || for_whom.id() == for_whom_) return;
  if (for_whom.system().observer() != tell_) return;
  tell_->waits_no_more(who_, for_whom_, what_, number_);
  for_whom_ = for_whom.id();
  number_ = for_whom.system().next_wait();
  tell_->waits(who_, for_whom_, what_, number_);
}

void told_wait::end() noexcept {
  if (tell_ == nullptr) return;
  std::exchange(tell_, nullptr)->waits_no_more(who_, for_whom_, what_, number_);
}

told_ask_ptr told_ask::of(const cell& asked) {
  if (asked.system().observer() == nullptr || cell::current() == nullptr) [[likely]]
    return nullptr;
  auto made = std::make_shared<told_ask>();
  made->told_.begin(asked, actor_wait::answer);
  return made->told_.has_begun() ? made : nullptr;
}

void told_ask::move_to(const cell& asked) noexcept {
  const std::lock_guard hold(lock_);
  told_.move_to(asked);
}

void told_ask::end() noexcept {
  const std::lock_guard hold(lock_);
  told_.end();
}

namespace {

// What a wait throws whose stop was asked for.
bool says_stopped(const std::exception_ptr& error) noexcept {
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
  if (c.life() != cell::mode::running && says_stopped(error)) return;
  c.fail(error);
}

// ---- watches and links

void watch_end(cell& other, unique_function<void(const actor_end&)> tell, watch_terms terms) {
  // In the turn of the other, or, if that is over, here.
  auto shared = std::make_shared<unique_function<void(const actor_end&)>>(std::move(tell));
  const cell_ptr held(&other);
  const bool taken = other.call([held, shared, terms] {
    // Its parent hears of it when it is not among its children any more: that is told last.
    const bool is_of_parent = terms.by == held->parent() && terms.what == watcher::kind::watch;
    if (held->is_over() && !is_of_parent) return (*shared)(held->how_it_ended());
    std::vector<watcher>& all = held->extra().watchers;
    // Those that are gone would gather while one is made anew again and again and watches each
    // time. Links are taken back.
    if (all.size() == all.capacity()) {
      std::erase_if(all, [](const watcher& w) {
        return w.life.stop_requested() && w.what != watcher::kind::link;
      });
    }
    all.push_back(
        {[shared](const actor_end& e) { (*shared)(e); }, terms.life, terms.by, terms.what});
  });
  if (taken) return;
  if (terms.by == other.parent() && terms.what == watcher::kind::watch) {
    watcher later{[shared](const actor_end& e) { (*shared)(e); }, terms.life, terms.by, terms.what};
    if (terms.by->tell_when_heard(other, later)) return;
  }
  (*shared)(other.how_it_ended());
}

namespace {

std::size_t forget_watchers(cell& of, const cell& by, watcher::kind what) {
  return std::erase_if(of.extra().watchers,
                       [&](const watcher& w) { return w.by == &by && w.what == what; });
}

void forget_watchers_later(cell& of, cell& by, watcher::kind what) {
  (void)of.call([held = cell_ptr(&of), gone = cell_ptr(&by), what] {
    if (!held->is_over()) (void)forget_watchers(*held, *gone, what);
  });
}

bool is_linked(const cell_extra& x, const cell& to) {
  return std::ranges::any_of(
      x.watchers, [&](const watcher& w) { return w.by == &to && w.what == watcher::kind::link; });
}

// One that `held` is linked to has ended. Half of those in the list may be such, so that each is
// looked at only now and then.
void link_ended(const cell_ptr& held, const cell_ptr& other, const actor_end& e,
                const std::stop_token& life) {
  cell& c = *held;
  (void)c.call([held, other, life, name = e.name, has_failed = e.why == end_reason::failed] {
    if (held->is_over() || life.stop_requested()) return;
    cell_extra& x = held->extra();
    if (!has_failed) {
      if (++x.ended_links * 2 < x.watchers.size()) return;
      x.ended_links = 0;
      std::erase_if(x.watchers, [](const watcher& w) {
        return w.what == watcher::kind::link && w.by->is_over();
      });
      return;
    }
    if (!is_linked(x, *other)) return;  // not any more
    (void)forget_watchers(*held, *other, watcher::kind::link);
    held->fail_once_there(std::make_exception_ptr(actor_error(actor_error::linked, name, "")));
  });
}

}  // namespace

// Each of the two has the other among its watchers. None of these holds the one that it is of.
void link_cells(cell& mine, cell& other) {
  const cell_ptr me(&mine);
  const cell_ptr them(&other);
  mine.extra().watchers.push_back(
      {.tell = [ends = &mine,
                them](const actor_end& e) { link_ended(them, cell_ptr(ends), e, {}); },
       .by = &other,
       .what = watcher::kind::link,
       .is_of_this_life = true});
  const std::stop_token life = mine.task_token();
  watch_end(
      other,
      [me, ends = &other, life](const actor_end& e) { link_ended(me, cell_ptr(ends), e, life); },
      {.life = life, .by = &mine, .what = watcher::kind::link});
}

bool unlink_cells(cell& mine, cell& other) {
  if (forget_watchers(mine, other, watcher::kind::link) == 0) return false;
  forget_watchers_later(other, mine, watcher::kind::link);
  return !other.is_over();
}

void drop_links(cell& mine) {
  for (const watcher& w : mine.extra().watchers) {
    if (!w.is_of_this_life) continue;
    (void)w.by->call([held = cell_ptr(w.by), gone = cell_ptr(&mine)] {
      if (held->is_over()) return;
      std::erase_if(held->extra().watchers, [&](const watcher& its) {
        return its.by == gone.get() && its.what == watcher::kind::link && !its.is_of_this_life;
      });
    });
  }
  std::erase_if(mine.extra().watchers, [](const watcher& w) { return w.is_of_this_life; });
  mine.extra().ended_links = 0;
}

std::uint64_t begin_watch(cell& mine, cell& other) {
  cell_extra& x = mine.extra();
  x.watched.emplace(++x.last_watch, cell_ptr(&other));
  return x.last_watch;
}

bool end_watch(cell& mine, std::uint64_t number) {
  return mine.extra().watched.erase(number) > 0;
}

bool unwatch_cell(cell& mine, cell& other) {
  if (std::erase_if(mine.extra().watched, [&](auto& w) { return w.second.get() == &other; }) == 0) {
    return false;
  }
  forget_watchers_later(other, mine, watcher::kind::watch);
  return true;
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
  behaviour::retire_last(c.extra().behaviours);
  c.extra().behaviours.push_back(std::move(how));
  c.set_behaving(true);
}

void become_stacked_in(cell& c, std::unique_ptr<behaviour> how) {
  std::vector<std::unique_ptr<behaviour>>& all = c.extra().behaviours;
  check(all.size() < behaviour::stacked_max, "sluice::actor::become_stacked",
        "not more than 64 on top of each other: unbecome takes them back");
  all.push_back(std::move(how));
  c.set_behaving(true);
}

void unbecome_in(cell& c) {
  std::vector<std::unique_ptr<behaviour>>& all = c.extra().behaviours;
  behaviour::retire_last(all);
  c.set_behaving(!all.empty());
}

void behaviour::retire_last(std::vector<std::unique_ptr<behaviour>>& all) noexcept {
  if (all.empty()) return;
  behaviour* const last = all.back().release();
  all.pop_back();
  // One of its handlers may be the one that runs, or be suspended: then that one deletes it.
  last->is_retired_ = true;
  if (last->users_ == 0) delete last;
}

}  // namespace sluice::detail
