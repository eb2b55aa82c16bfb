// How an actor begins, fails, restarts and ends. Its parent's side is in cell_children.cpp.
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
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/on_done.hpp"

namespace sluice::detail {

// ---- beginning

// scheduled_ is true: the cell is not posted meanwhile, even if its constructor sends to itself.
void cell::begin_life() {
  if (!has_successor_) scheduled_ = true;  // else it is true, and others may be sending already
  if (on_ != &system_.on()) on_->begin_use(executor_user::actor);
  if (parent_ != nullptr && !parent_->adopt(*this)) {
    // The parent accepts no children: the actor terminates without having started.
    mode_ = mode::terminated;
    close_intake();
    keep_path();
    release_executor();
    {
      const std::lock_guard hold(guard_);
      is_ending_ = true;
      terminated_.store(true, sluice::release);  // release: pairs with the acquire in is_terminated
    }
    lose_messages();
    while (!control_.empty()) control_.pop_front().run();  // the items see that it has terminated
    system_.never_started();
    return release();
  }
  system_.spawned(*this);
  try {
    const in_turn here(*this);  // sends to itself do not wait for capacity
    construct();
    has_state_ = true;
  } catch (...) {
    extra().error = std::current_exception();
    extra_->reason = end_reason::failed;
    mode_ = mode::stopping;
    on_->post(*this);
    throw;
  }
  finish_turn();
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
  while (all.capacity() < child_count_) {  // no allocation under the lock
    const std::size_t needed = child_count_;
    hold.unlock();
    all.reserve(needed);
    hold.lock();
  }
  const_cast<intrusive_list<child_hook>&>(children_).for_each([&](child_hook& h) {
    of(h).add_ref();
    all.push_back(&of(h));
  });
  return all;
}

std::vector<cell_ptr> cell::eldest_children(std::size_t limit) const {
  std::vector<cell_ptr> eldest;
  // No allocation under the lock: children adopted meanwhile are left out.
  const std::size_t most = std::min(limit, child_count());
  eldest.reserve(most);
  const std::lock_guard hold(guard_);
  children_.for_each_while([&](const child_hook& h) {
    if (eldest.size() == most) return false;
    eldest.emplace_back(&of(const_cast<child_hook&>(h)));
    return true;
  });
  return eldest;
}

std::size_t cell::child_count() const noexcept {
  const std::lock_guard hold(guard_);
  return child_count_;
}

actor_state cell::state() const noexcept {
  const std::lock_guard hold(guard_);
  if (terminated_.load(relaxed)) return actor_state::terminated;  // written under guard_
  if (is_ending_) return actor_state::stopping;
  if (is_restarting_) return actor_state::restarting;
  return closed_ ? actor_state::closing : actor_state::running;
}

std::uint32_t cell::restarts() const noexcept {
  const std::lock_guard hold(guard_);
  return restarts_;
}

// ---- decisions of the parent

void cell::apply_parent_order() noexcept {
  switch (mode_) {
    case mode::resuming:
      mode_ = mode::running;
      extra_->error = nullptr;
      extra_->reason = end_reason::stopped;
      return resume_children();
    case mode::retiring:
      mode_ = mode::running;
      return begin_retire();
    case mode::stopping:
      if (is_ending_) return;  // it is ending already
      mode_ = mode::running;
      return begin_stop(stop_mode::now);
    default:
      return;
  }
}

void cell::recreate_state() noexcept {
  if (mode_ != mode::cooling) return;  // stopped meanwhile
  {
    const std::lock_guard hold(guard_);
    no_children_ = false;
  }
  mode_ = mode::running;
  try {
    construct();
    has_state_ = true;
    mode_ = mode::recreated;
  } catch (...) {
    fail(std::current_exception());
  }
  if (mode_ == mode::recreated) {
    const std::lock_guard hold(guard_);
    is_restarting_ = false;
    ++restarts_;
  }
  const std::exception_ptr failure = std::exchange(extra().failure_after_restart, nullptr);
  if (failure == nullptr || mode_ != mode::recreated) return;
  system_.restarted(*this);
  mode_ = mode::running;
  fail(failure);
}

void cell::fail_after_restart(std::exception_ptr why) noexcept {
  if (mode_ != mode::retiring && mode_ != mode::cooling) return fail(std::move(why));
  extra().failure_after_restart = std::move(why);
}

void cell::fail(std::exception_ptr why) noexcept {
  if (mode_ != mode::running) {
    // It is ending or restarting already: no decision is needed.
    const bool is_restarting = mode_ == mode::retiring;
    return system_.failed(*this, why, is_restarting ? directive::restart : directive::stop);
  }
  extra().error = std::move(why);
  mode_ = mode::failed;
}

// ---- ending

void cell::begin_retire() noexcept {
  if (mode_ != mode::running) return;  // it stops or has failed: the parent gets that report
  mode_ = mode::retiring;
  {
    const std::lock_guard hold(guard_);
    no_children_ = true;  // also for children spawned by `stopping` or a destructor
    is_restarting_ = true;
  }
  stop_tasks();
  continue_ending();
}

bool cell::is_ordered_by_parent() const noexcept {
  const cell* const caller = current();
  return caller == parent_ || (caller == nullptr && parent_ == &system_.root());
}

void cell::request_stop(stop_mode order) noexcept {
  if (kind_ != child_kind::permanent || is_ordered_by_parent()) return order_stop(order);
  (void)call([this] {
    if (mode_ != mode::running) return;  // it is ending or restarting already
    fail(std::make_exception_ptr(actor_error(actor_error::unexpected_end, name(), "")));
  });
}

void cell::order_stop(stop_mode order) noexcept {
  (void)call([this, order] {
    if (order == stop_mode::now || mode_ == mode::stopping) return begin_stop(order);
    is_draining_ = true;  // the turn stops it when the mailbox is empty, also after a restart
    close_intake();
  });
}

void cell::begin_stop(stop_mode order) noexcept {
  if (mode_ == mode::stopping) {
    if (order == stop_mode::drain || stop_mode_ == stop_mode::now) return;
    stop_mode_ = order;
    // Sends the stricter order to the child it waits for; the others get it when they are stopped.
    {
      const std::lock_guard hold(guard_);
      if (children_.empty()) return;
      of(children_.back()).is_stop_ordered_ = false;
    }
    if (tasks_ == 0) (void)stop_last_child();
    return;
  }
  if (mode_ != mode::running && mode_ != mode::retiring && mode_ != mode::cooling) return;
  mode_ = mode::stopping;
  stop_mode_ = order;
  close_intake();
  {
    const std::lock_guard hold(guard_);
    is_ending_ = true;
    no_children_ = true;
  }
  stop_tasks();
  on_ending(order);
  continue_ending();
}

void cell::refuse_messages(const std::exception_ptr& why) noexcept {
  begin_stop(stop_mode::now);
  // No message is added any more.
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
  extra_->round.reset();  // its children end with it
  extra_->failed.clear();
  extra_->watched.clear();
  if (extra_->stop.stop_possible()) extra_->stop.request_stop();
  std::map<std::uint64_t, std::stop_source> timers = std::exchange(extra_->timers, {});
  for (auto& [number, timer] : timers) timer.request_stop();
}

// Ends the coroutines, then the children, the youngest first, then the state.
void cell::continue_ending() noexcept {
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
  if (last->is_held_by_parent_) {
    last->is_stop_ordered_ = true;
    release_child(*last, mode::stopping);
  } else if (!std::exchange(last->is_stop_ordered_, true)) {
    // A child without a state is not recreated only to empty its mailbox.
    const bool drains = mode_ == mode::stopping && !last->is_cooling_;
    last->order_stop(drains ? stop_mode_ : stop_mode::now);
  }
  return true;
}

void cell::finish_state() noexcept {
  is_exclusive_ = false;
  if (std::exchange(has_state_, false)) {
    call_stopping();
    destroy();
  }
  if (extra_ == nullptr) return;
  stop_tasks();  // timers that the last handlers started
  extra_->stop = std::stop_source(std::nostopstate);
  extra_->token = {};
  while (!extra_->behaviours.empty()) behaviour::retire_last(extra_->behaviours);
  has_behaviour_ = false;
  if (mode_ == mode::retiring) drop_links(*this);
  extra_->restarts.clear();  // a restarted supervisor counts from zero
  extra_->stashed = 0;
  taken_.prepend(extra_->stash);
}

void cell::finish() noexcept {
  finish_state();
  lose_messages();
  const end_reason why = extra_ != nullptr ? extra_->reason : end_reason::stopped;
  keep_path();
  release_executor();
  {
    const std::lock_guard hold(guard_);
    terminated_.store(true, sluice::release);  // release: pairs with the acquire in is_terminated
  }
  report_name_of_terminated();
  // No item is added any more. The items see that it has terminated.
  while (!control_.empty()) control_.pop_front().run();
  mode_ = mode::terminated;
  system_.actor_ended(*this, why);
  if (extra_ == nullptr) return;
  if (extra_->own_thread != nullptr) {
    // This turn runs on that thread: the root joins it.
    (void)system_.root().call(
        [thread = std::move(extra_->own_thread)]() mutable { thread.reset(); });
  }
  // The parent is notified after it has unlinked this child.
  const auto is_of_others = [this](const watcher& w) {
    return w.owner != parent_ || w.relation != watcher::kind::watch;
  };
  std::vector<watcher> all = std::exchange(extra_->watchers, {});
  const auto of_parent = std::stable_partition(all.begin(), all.end(), is_of_others);
  std::move(of_parent, all.end(), std::back_inserter(extra_->watchers));
  all.erase(of_parent, all.end());
  notify_watchers(all);
}

// Called before the termination is visible: others may then end the executor.
void cell::release_executor() noexcept {
  if (on_ != &system_.on()) on_->end_use(executor_user::actor);
}

void cell::notify_watchers(std::vector<watcher>& watchers) const noexcept {
  const actor_end end = end_info();
  for (watcher& w : watchers) {
    if (!w.stop.stop_requested()) w.notify(end);
  }
}

// From here on the parent may be destroyed first. Without refs it gets no messages, and its path is
// not read.
void cell::keep_path() {
  // relaxed: a new ref is only made from an existing one.
  if (!system_.options().on_dead_letter || parent_ == nullptr || refs_.load(relaxed) == 1) return;
  if (parent_ != &system_.root()) extra().path_above = parent_->path();
}

// A cell that has not terminated keeps its ancestors alive.
std::string cell::path() const {
  std::string text;
  cell_ptr here(const_cast<cell*>(this));
  for (;;) {
    text.insert(0, "/" + here->name());
    if (here->parent_ == &system_.root()) return text;
    cell_ptr above;
    {
      const std::lock_guard hold(here->guard_);
      // written under guard_
      if (!here->terminated_.load(relaxed)) above = cell_ptr(here->parent_);
    }
    if (!above) return here->extra_ != nullptr ? here->extra_->path_above + text : text;
    here = std::move(above);
  }
}

actor_end cell::end_info() const {
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

// ---- timers

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
              if (!self->has_timer(number)) return;
              try {
                f(number);
              } catch (...) {
                self->fail(std::current_exception());  // the message could not be moved
              }
            });
          });
}

bool cell::has_timer(std::uint64_t number) const noexcept {
  return extra_ != nullptr && extra_->timers.contains(number);
}

bool cell::cancel_call(std::uint64_t number) noexcept {
  if (extra_ == nullptr) return false;
  const auto timer = extra_->timers.find(number);
  if (timer == extra_->timers.end()) return false;
  std::stop_source stop = std::move(timer->second);
  extra_->timers.erase(timer);
  stop.request_stop();
  return true;
}

}  // namespace sluice::detail
