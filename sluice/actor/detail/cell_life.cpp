// How an actor begins, fails, is made anew, and ends. What its parent does: cell_children.cpp.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/become.hpp"
#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/in_turn.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/check.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/on_done.hpp"

namespace sluice::detail {

// ---- the beginning

// Nobody posts it meanwhile, also if its constructor sends to itself: scheduled_ is true.
void cell::begin_life() {
  if (!comes_back_) scheduled_ = true;  // else it is, and others may be sending already
  if (on_ != &system_.on()) on_->begin_use(executor_user::actor);
  if (parent_ != nullptr && !parent_->adopt(*this)) {
    // The parent takes no more children: it is born dead.
    mode_ = mode::over;
    close_intake();
    keep_path();
    leave_executor();
    {
      const std::lock_guard hold(guard_);
      ends_ = true;
      over_.store(true, sluice::release);  // release: pairs with the acquire in is_over
    }
    lose_messages();
    while (!control_.empty()) control_.pop_front().run();  // they see that it is over
    system_.never_lived();
    return release();
  }
  system_.spawned(*this);
  try {
    const in_turn here(*this);  // what it sends to itself does not wait for room
    construct();
    has_state_ = true;
  } catch (...) {
    extra().error = std::current_exception();
    extra_->reason = end_reason::failed;
    mode_ = mode::stopping;
    on_->post(*this);
    throw;
  }
  leave();
}

bool cell::adopt(cell& child) noexcept {
  const std::lock_guard hold(guard_);
  if (no_children_) return false;
  children_.push_back(child.sibling());
  ++child_count_;
  return true;
}

std::vector<cell*> cell::children() const {
  std::vector<cell*> all;
  std::unique_lock hold(guard_);
  while (all.capacity() < child_count_) {  // memory is not allocated under the lock
    const std::size_t wanted = child_count_;
    hold.unlock();
    all.reserve(wanted);
    hold.lock();
  }
  const_cast<intrusive_list<child_hook>&>(children_).for_each([&](child_hook& h) {
    of(h).add_ref();
    all.push_back(&of(h));
  });
  return all;
}

std::vector<cell_ptr> cell::eldest_children(std::size_t limit) const {
  std::vector<cell_ptr> some;
  // Memory is not allocated under the lock: those that come meanwhile are left out.
  const std::size_t most = std::min(limit, child_count());
  some.reserve(most);
  const std::lock_guard hold(guard_);
  children_.for_each_while([&](const child_hook& h) {
    if (some.size() == most) return false;
    some.emplace_back(&of(const_cast<child_hook&>(h)));
    return true;
  });
  return some;
}

std::size_t cell::child_count() const noexcept {
  const std::lock_guard hold(guard_);
  return child_count_;
}

actor_state cell::state() const noexcept {
  const std::lock_guard hold(guard_);
  if (over_.load(relaxed)) return actor_state::over;  // written under the guard
  if (ends_) return actor_state::stopping;
  if (is_remade_) return actor_state::restarting;
  return closed_ ? actor_state::closing : actor_state::running;
}

std::uint32_t cell::restarts() const noexcept {
  const std::lock_guard hold(guard_);
  return restarts_;
}

// ---- what the parent has decided

void cell::follow_parent() noexcept {
  switch (mode_) {
    case mode::resuming:
      mode_ = mode::running;
      extra_->error = nullptr;
      extra_->reason = end_reason::stopped;
      return let_children_go_on();
    case mode::retiring:
      mode_ = mode::running;
      return begin_retire();
    case mode::stopping:
      if (ends_) return;  // it is about it
      mode_ = mode::running;
      return begin_stop(stop_how::now);
    default:
      return;
  }
}

void cell::begin_renew() noexcept {
  if (mode_ != mode::cooling) return;  // it has been stopped meanwhile
  {
    const std::lock_guard hold(guard_);
    no_children_ = false;
  }
  mode_ = mode::running;
  try {
    construct();
    has_state_ = true;
    mode_ = mode::renewed;
  } catch (...) {
    fail(std::current_exception());
  }
  if (mode_ == mode::renewed) {
    const std::lock_guard hold(guard_);
    is_remade_ = false;
    ++restarts_;
  }
  const std::exception_ptr owed = std::exchange(extra().fails_anew, nullptr);
  if (owed == nullptr || mode_ != mode::renewed) return;
  system_.restarted(*this);
  mode_ = mode::running;
  fail(owed);
}

void cell::fail_once_there(std::exception_ptr why) noexcept {
  if (mode_ != mode::retiring && mode_ != mode::cooling) return fail(std::move(why));
  extra().fails_anew = std::move(why);
}

void cell::fail(std::exception_ptr why) noexcept {
  if (mode_ != mode::running) {
    // It ends, or is made anew, already; nobody has to decide any more.
    const bool comes_again = mode_ == mode::retiring;
    return system_.failed(*this, why, comes_again ? directive::restart : directive::stop);
  }
  extra().error = std::move(why);
  mode_ = mode::failed;
}

// ---- ending

void cell::begin_retire() noexcept {
  if (mode_ != mode::running) return;  // it stops, or has failed: the parent hears of that
  mode_ = mode::retiring;
  {
    const std::lock_guard hold(guard_);
    no_children_ = true;  // also none that `stopping` or a destructor spawns
    is_remade_ = true;
  }
  stop_tasks();
  go_on_ending();
}

bool cell::is_told_by_parent() const noexcept {
  const cell* const by = current();
  return by == parent_ || (by == nullptr && parent_ == &system_.root());
}

void cell::request_stop(stop_how how) noexcept {
  if (kind_ != child_kind::permanent || is_told_by_parent()) return order_stop(how);
  (void)call([this] {
    if (mode_ != mode::running) return;  // it ends, or is made anew, already
    fail(std::make_exception_ptr(actor_error(actor_error::ended, name(), "")));
  });
}

void cell::order_stop(stop_how how) noexcept {
  (void)call([this, how] {
    if (how == stop_how::now || mode_ == mode::stopping) return begin_stop(how);
    drains_ = true;  // the turn stops it when the mailbox is empty, also after it is made anew
    close_intake();
  });
}

void cell::begin_stop(stop_how how) noexcept {
  if (mode_ == mode::stopping) {
    if (how == stop_how::drain || how_ == stop_how::now) return;
    how_ = how;
    // The child that it waits for is told once more; those after it hear this when it is their
    // turn.
    {
      const std::lock_guard hold(guard_);
      if (children_.empty()) return;
      of(children_.back()).is_asked_ = false;
    }
    if (tasks_ == 0) (void)stop_last_child();
    return;
  }
  if (mode_ != mode::running && mode_ != mode::retiring && mode_ != mode::cooling) return;
  mode_ = mode::stopping;
  how_ = how;
  close_intake();
  {
    const std::lock_guard hold(guard_);
    ends_ = true;
    no_children_ = true;
  }
  stop_tasks();
  ending_begins(how);
  go_on_ending();
}

void cell::refuse_messages(const std::exception_ptr& why) noexcept {
  begin_stop(stop_how::now);
  // Nothing is added any more.
  const auto refuse_all = [&](envelope_list& all) {
    while (envelope* const e = all.pop_front()) {
      system_.lost(*this, *e, loss::unhandled);
      e->ops->refuse(*e, why);
    }
  };
  refuse_all(taken_);
  envelope_list lanes[3];
  {
    const std::lock_guard hold(guard_);
    std::swap(lanes, lanes_);
  }
  for (envelope_list& lane : lanes) refuse_all(lane);
}

void cell::stop_tasks() noexcept {
  if (extra_ == nullptr) return;
  extra_->round.reset();  // its children end along with it
  extra_->failed.clear();
  extra_->watched.clear();
  if (extra_->stop.stop_possible()) extra_->stop.request_stop();
  std::map<std::uint64_t, std::stop_source> timers = std::exchange(extra_->timers, {});
  for (auto& [number, timer] : timers) timer.request_stop();
}

// Its coroutines first, then its children, the youngest first; then its state.
void cell::go_on_ending() noexcept {
  if (tasks_ > 0 || stop_last_child()) return;
  if (mode_ == mode::stopping) {
    if (ready_to_end()) finish();
    return;
  }
  finish_state();
  mode_ = mode::retired;
}

bool cell::stop_last_child() noexcept {
  cell* last = nullptr;
  {
    const std::lock_guard hold(guard_);
    if (children_.empty()) return false;
    last = &of(children_.back());
  }
  if (last->is_with_parent_) {
    last->is_asked_ = true;
    set_going(*last, mode::stopping);
  } else if (!std::exchange(last->is_asked_, true)) {
    // One without a state is not made anew only to empty its mailbox.
    const bool drains = mode_ == mode::stopping && !last->is_cooling_;
    last->order_stop(drains ? how_ : stop_how::now);
  }
  return true;
}

void cell::finish_state() noexcept {
  held_ = false;
  if (std::exchange(has_state_, false)) {
    tell_stopping();
    destroy();
  }
  if (extra_ == nullptr) return;
  stop_tasks();  // timers that the last handlers have started
  extra_->stop = std::stop_source(std::nostopstate);
  extra_->token = {};
  while (!extra_->behaviours.empty()) behaviour::retire_last(extra_->behaviours);
  behaves_ = false;
  if (mode_ == mode::retiring) drop_links(*this);
  extra_->restarts.clear();  // a supervisor that is made anew begins to count anew
  extra_->stashed = 0;
  taken_.prepend(extra_->stash);
}

void cell::finish() noexcept {
  finish_state();
  lose_messages();
  const end_reason why = extra_ != nullptr ? extra_->reason : end_reason::stopped;
  keep_path();
  leave_executor();
  {
    const std::lock_guard hold(guard_);
    over_.store(true, sluice::release);  // release: pairs with the acquire in is_over
  }
  tell_over();
  // Nobody adds to it any more. They see that it is over.
  while (!control_.empty()) control_.pop_front().run();
  mode_ = mode::over;
  system_.actor_ended(*this, why);
  if (extra_ == nullptr) return;
  if (extra_->own_thread != nullptr) {
    // This very turn runs on it: somebody else waits for its end.
    (void)system_.root().call([mine = std::move(extra_->own_thread)]() mutable { mine.reset(); });
  }
  // The parent hears of it when this is not among its children any more.
  const auto is_of_others = [this](const watcher& w) {
    return w.by != parent_ || w.what != watcher::kind::watch;
  };
  std::vector<watcher> all = std::exchange(extra_->watchers, {});
  const auto of_parent = std::stable_partition(all.begin(), all.end(), is_of_others);
  std::move(of_parent, all.end(), std::back_inserter(extra_->watchers));
  all.erase(of_parent, all.end());
  tell_end(all);
}

// Before others see its end: they may end the executor.
void cell::leave_executor() noexcept {
  if (on_ != &system_.on()) on_->end_use(executor_user::actor);
}

void cell::tell_end(std::vector<watcher>& those) const noexcept {
  const actor_end end = how_it_ended();
  for (watcher& w : those) {
    if (!w.life.stop_requested()) w.tell(end);
  }
}

// From here on its parent may go before it. Without refs nobody can send to it, nor ask for its
// path.
void cell::keep_path() {
  // relaxed: a ref comes from another one.
  if (!system_.options().on_dead_letter || parent_ == nullptr || refs_.load(relaxed) == 1) return;
  if (parent_ != &system_.root()) extra().path_above = parent_->path();
}

// As long as one is not over, those above it are there.
std::string cell::path() const {
  std::string text;
  cell_ptr here(const_cast<cell*>(this));
  for (;;) {
    text.insert(0, "/" + here->name());
    if (here->parent_ == &system_.root()) return text;
    cell_ptr above;
    {
      const std::lock_guard hold(here->guard_);
      if (!here->over_.load(relaxed)) above = cell_ptr(here->parent_);  // written under the guard
    }
    if (!above) return here->extra_ != nullptr ? here->extra_->path_above + text : text;
    here = std::move(above);
  }
}

actor_end cell::how_it_ended() const {
  actor_end end;
  end.id = id_;
  end.name = name();
  if (extra_ != nullptr) {
    end.why = extra_->reason;
    if (end.why == end_reason::failed) end.error = extra_->error;
  }
  return end;
}

void cell::lose_messages() noexcept {
  while (envelope* const e = taken_.pop_front()) lose(*e, loss::unhandled);
  envelope_list lanes[3];
  {
    const std::lock_guard hold(guard_);
    std::swap(lanes, lanes_);
  }
  for (envelope_list& lane : lanes) {
    while (envelope* const e = lane.pop_front()) lose(*e, loss::unhandled);
  }
}

// ---- later

std::uint64_t cell::call_after(std::chrono::nanoseconds wait, timed_call f) {
  const std::uint64_t number = ++extra().last_timer;
  call_again(number, wait, std::move(f));
  return number;
}

void cell::call_again(std::uint64_t number, std::chrono::nanoseconds wait, timed_call f) {
  std::stop_source& stop = extra().timers[number];
  const deadline when = deadline::after(wait, system_.clock());
  on_done([when, token = stop.get_token()] { return sleep_until(when, token); },
          [self = cell_ptr(this), number, f = std::move(f)](status slept) mutable {
            if (!slept) return;
            cell& c = *self;
            (void)c.call([self = std::move(self), number, f = std::move(f)]() mutable {
              if (!self->is_timed(number)) return;
              try {
                f(number);
              } catch (...) {
                self->fail(std::current_exception());  // a message that could not be moved
              }
            });
          });
}

bool cell::is_timed(std::uint64_t number) const noexcept {
  return extra_ != nullptr && extra_->timers.contains(number);
}

bool cell::cancel_call(std::uint64_t number) noexcept {
  if (extra_ == nullptr) return false;
  const auto at = extra_->timers.find(number);
  if (at == extra_->timers.end()) return false;
  std::stop_source stop = std::move(at->second);
  extra_->timers.erase(at);
  stop.request_stop();
  return true;
}

}  // namespace sluice::detail
