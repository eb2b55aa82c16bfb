#include "sluice/actor/detail/keyed_core.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/callback.hpp"
#include "sluice/base/check.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {

// The parent of all of them: takes no messages.
class keyed_core::parent_cell final : public cell {
 public:
  parent_cell(system_core& system, std::weak_ptr<keyed_core> of, const keyed_options& o)
      : cell(system, &system.root(), system.on(), actor_options{}), of_(std::move(of)) {
    auto x = std::make_unique<cell_extra>();
    x->name = o.type + "/*";
    x->children = o.failing;
    set_extra(std::move(x));
  }
  std::string_view type() const noexcept override { return "keyed_actors"; }
  using cell::begin_life;

 private:
  void construct() override {
    // Made anew, it has no timers any more.
    const std::shared_ptr<keyed_core> core = of_.lock();
    if (core == nullptr) return;
    core->sweep();
    core->look_at_crowd();
  }
  void destroy() noexcept override {}
  void tell_stopping() noexcept override {}
  void ending_begins(stop_how how) noexcept override {
    // All at once, so that they are saved together.
    for (cell* const child : children()) {
      child->request_stop(how);
      child->release();
    }
  }

  const std::weak_ptr<keyed_core> of_;
};

keyed_core::keyed_core(system_core& system, keyed_options o)
    : system_(system),
      options_(std::move(o)),
      live_limit_(options_.live_limit != 0 ? options_.live_limit : 2 * options_.live_max) {
  check(options_.live_max > 0, "sluice::keyed_actors", "room for one live actor at least");
  check(live_limit_ >= options_.live_max, "sluice::keyed_actors",
        "a live_limit that is not below live_max");
  check(options_.each.kind == child_kind::transient, "sluice::keyed_actors",
        "actors that may rest: neither permanent nor temporary");
  check(options_.idle.count() >= 0, "sluice::keyed_actors", "an idle time that is not negative");
  watch::set_name(this, options_.type);
  watch::set_name(&room_, "places for " + options_.type);
}

keyed_core::~keyed_core() {
  watch::gone(this);
}

void keyed_core::open() {
  auto* const made = new parent_cell(system_, weak_from_this(), options_);
  parent_ = cell_ptr(made);
  made->begin_life();
}

void keyed_core::close() noexcept {
  parent_->request_stop(stop_how::drain);
}

// ---- finding

cell_ptr keyed_core::find(std::string_view key) {
  return find_or_make(std::unique_lock(lock_), key, nullptr, nullptr);
}

bool keyed_core::may_enter(std::string_view key) const {
  return has_place() || lives_.contains(key);
}

bool keyed_core::has_place() const noexcept {
  return lives_.size() + kept_ < live_limit_ || parent_->is_over();
}

bool keyed_core::has_no_room_for_sender() const noexcept {
  const cell* const here = cell::current();
  return here != nullptr && here->parent() == parent_.get();
}

// It has waited. What it was woken for may be of use to the next one as well.
void keyed_core::entered(std::string_view key) noexcept {
  if (lives_.size() + kept_ + 1 < live_limit_ || lives_.contains(key)) room_.notify_one();
}

bool keyed_core::enter(std::unique_lock<mutex>& hold, std::string_view key,
                       const wait_limits* limits, status& how, bool& waited) {
  how = status::ok;
  if (may_enter(key)) return true;
  if (limits == nullptr || has_no_room_for_sender()) {
    how = status::full;
    return false;
  }
  waited = true;
  how = room_.wait_within(hold, *limits, [&] { return may_enter(key); });
  if (how) entered(key);
  return static_cast<bool>(how);
}

cell_ptr keyed_core::find_within(std::string_view key, keyed_life* not_this,
                                 const wait_limits* limits, status& how) {
  cell_ptr found;
  bool waited = false;
  {
    std::unique_lock hold(lock_);
    if (enter(hold, key, limits, how, waited)) {
      found = find_or_make(std::move(hold), key, not_this, nullptr);
    }
  }
  if (waited) grant_places();  // it may have been woken for a place that it does not need
  return found;
}

cell_ptr keyed_core::find(std::string_view key, const wait_limits* limits, status& how) {
  return find_within(key, nullptr, limits, how);
}

task<cell_ptr> keyed_core::find_async(std::string_view key, wait_limits limits, status& how) {
  std::unique_lock hold(lock_);
  how = status::ok;
  if (may_enter(key)) co_return find_or_make(std::move(hold), key, nullptr, nullptr);
  if (has_no_room_for_sender()) {
    how = status::full;
    co_return cell_ptr();
  }
  const auto enters = [this, key] { return may_enter(key); };
  auto room = room_.async_wait(hold, enters, std::move(limits));
  how = co_await room;
  cell_ptr found;
  if (how) {
    entered(key);
    found = find_or_make(std::move(hold), key, nullptr, nullptr);
  } else {
    hold.unlock();
  }
  grant_places();
  co_return found;
}

// ---- places

enlisted keyed_core::wait_for_place(std::string_view key, wait_node& at, waiter& who) noexcept {
  const std::lock_guard hold(lock_);
  if (!may_enter(key)) return join(places_, at, who);
  ++kept_;
  return enlisted::finished;
}

void keyed_core::leave_line(wait_node& at) noexcept {
  const std::lock_guard hold(lock_);
  if (at.linked()) at.unlink();
}

// What it was for is there by now, and counts itself.
void keyed_core::give_place_back() noexcept {
  {
    const std::lock_guard hold(lock_);
    --kept_;
  }
  grant_places();
}

void keyed_core::grant_places() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  while (has_place()) {
    wait_node* const first = claim_front<wait_node>(places_);
    if (first == nullptr) return;
    ++kept_;
    wakes.add(*first->who);
  }
}

cell_ptr keyed_core::live(std::string_view key) const {
  const std::lock_guard hold(lock_);
  const auto at = lives_.find(key);
  return at == lives_.end() ? cell_ptr() : cell_ptr(&at->second->self());
}

cell_ptr keyed_core::successor(keyed_life& of) {
  // In two statements: the lock is the callee's, but lives as long as the expression.
  cell_ptr found = find_or_make(std::unique_lock(lock_), of.key(), &of, nullptr);
  return unless_last(std::move(found));
}

cell_ptr keyed_core::successor(keyed_life& of, const wait_limits* limits, status& how) {
  cell_ptr found = find_within(of.key(), &of, limits, how);
  return found ? unless_last(std::move(found)) : cell_ptr();
}

// One that is over may have rested already: then there is another. But one that never lived is the
// last.
cell_ptr keyed_core::unless_last(cell_ptr found) const {
  const auto* const life = dynamic_cast<const keyed_life*>(found.get());
  const std::lock_guard hold(lock_);
  return life->never_lived_ ? cell_ptr() : std::move(found);
}

cell_ptr keyed_core::find_or_make(std::unique_lock<mutex> hold, std::string_view key,
                                  keyed_life* not_this, promise<void>* forgets) {
  cell_ptr old;
  if (const auto at = lives_.find(key); at != lives_.end()) {
    keyed_life& there = *at->second;
    if (&there != not_this && !there.self().is_over()) {
      touch(there);
      return cell_ptr(&there.self());
    }
    old = take_out(there);
  }
  cell_ptr before;
  if (not_this != nullptr && !not_this->self().is_over()) before = cell_ptr(&not_this->self());
  keyed_life& made = put(std::string(key), std::move(before));
  if (forgets != nullptr) made.forgotten_first_.push_back(std::move(*forgets));
  cell_ptr found(&made.self());
  hold.unlock();
  start(made);
  return found;
}

keyed_life& keyed_core::put(std::string key, cell_ptr before) {
  keyed_life& made = make(std::move(key), std::move(before));
  made.self().add_ref();
  lives_.emplace(made.key(), &made);
  touch(made);
  return made;
}

cell_ptr keyed_core::take_out(keyed_life& who) noexcept {
  lives_.erase(who.key());
  room_.notify_one();
  if (who.linked()) who.unlink();
  if (std::exchange(who.is_leaving_, false)) --leaving_;
  return cell_ptr::adopt(&who.self());
}

void keyed_core::start(keyed_life& made) {
  const cell_ptr held(&made.self());
  if (!made.start()) {
    {
      const std::lock_guard hold(lock_);
      made.never_lived_ = true;
    }
    return ended(made);  // nobody else says so
  }
  bool must_sweep = false;
  {
    const std::lock_guard hold(lock_);
    if (options_.idle.count() > 0) must_sweep = !std::exchange(sweeps_, true);
  }
  if (must_sweep) later(options_.idle, &keyed_core::sweep);
  trim();
}

void keyed_core::ended(keyed_life& who) noexcept {
  cell_ptr old;
  bool is_crowded = false;
  bool is_for_line = true;
  {
    const std::lock_guard hold(lock_);
    const auto at = lives_.find(who.key());
    if (at == lives_.end() || at->second != &who) return;
    // In turns; one that is notified gives on what it does not take.
    if (room_.waiting() > 0) is_for_line = std::exchange(line_is_next_, !line_is_next_);
    old = take_out(who);
    is_crowded = too_many() > 0;
  }
  if (is_for_line) grant_places();
  if (is_crowded) trim();
}

// ---- use and rest

void keyed_core::touch(keyed_life& who) noexcept {
  who.used_at_ = system_.clock().now();
  who.accepted_then_ = who.self().accepted() + 1;
  if (who.is_leaving_) return;
  if (who.linked()) who.unlink();
  by_use_.push_back(who);
}

bool keyed_core::was_used_since(const keyed_life& who) noexcept {
  return static_cast<std::int32_t>(who.self().accepted() - who.accepted_then_) > 0;
}

keyed_core::leaver keyed_core::take_leave(keyed_life& who) {
  who.unlink();
  who.is_leaving_ = true;
  ++leaving_;
  return {cell_ptr(&who.self()), &who};
}

std::size_t keyed_core::too_many() const noexcept {
  const std::size_t staying = lives_.size() - leaving_;
  return staying > options_.live_max ? staying - options_.live_max : 0;
}

void keyed_core::send_to_rest(std::vector<leaver> those) {
  for (leaver& one : those) {
    cell& c = *one.held;
    // Not taken: it is over, and `ended` has heard of it or is about to.
    (void)c.call([held = std::move(one.held), life = one.life] { life->rest(); });
  }
}

// Tells as many to rest as there are too many, those first that were used longest ago, but none
// that has messages.
void keyed_core::trim() {
  std::vector<leaver> those;
  bool must_look = false;
  {
    const std::lock_guard hold(lock_);
    std::size_t left = too_many();
    for (int tried = 0; left > 0 && tried < candidates_max && !by_use_.empty(); ++tried) {
      keyed_life& oldest = by_use_.front();
      if (oldest.self().queued() > 0 || was_used_since(oldest)) {
        touch(oldest);
      } else {
        those.push_back(take_leave(oldest));
        --left;
      }
    }
    if (left > 0) must_look = !std::exchange(crowded_, true);
  }
  send_to_rest(std::move(those));
  if (must_look) later(crowded_wait, &keyed_core::look_at_crowd);
}

void keyed_core::look_at_crowd() {
  {
    const std::lock_guard hold(lock_);
    crowded_ = false;
  }
  trim();
}

void keyed_core::sweep() {
  std::vector<leaver> those;
  std::optional<std::chrono::nanoseconds> wait;
  {
    const std::lock_guard hold(lock_);
    const time_point now = system_.clock().now();
    while (!by_use_.empty() && options_.idle.count() > 0) {
      keyed_life& oldest = by_use_.front();
      const auto left = oldest.used_at_ + options_.idle - now;
      if (left.count() > 0) {
        wait = left;
        break;
      }
      if (was_used_since(oldest)) {
        touch(oldest);
      } else {
        those.push_back(take_leave(oldest));
      }
    }
    sweeps_ = wait.has_value();
  }
  send_to_rest(std::move(those));
  if (wait) later(*wait, &keyed_core::sweep);
}

void keyed_core::stayed(keyed_life& who, std::chrono::nanoseconds look_again) {
  bool must_look = false;
  bool must_sweep = false;
  {
    const std::lock_guard hold(lock_);
    if (!std::exchange(who.is_leaving_, false)) return;  // it has a successor
    --leaving_;
    touch(who);
    if (options_.idle.count() > 0) must_sweep = !std::exchange(sweeps_, true);
    if (too_many() > 0) must_look = !std::exchange(crowded_, true);
  }
  if (must_sweep) later(options_.idle, &keyed_core::sweep);
  if (must_look) later(look_again, &keyed_core::look_at_crowd);
}

void keyed_core::later(std::chrono::nanoseconds wait, void (keyed_core::*what)()) {
  // Not taken: everything ends.
  (void)parent_->call([weak = weak_from_this(), at = parent_, wait, what] {
    (void)at->call_after(wait, [weak, what, timed = at.get()](std::uint64_t number) {
      (void)timed->cancel_call(number);
      if (const std::shared_ptr<keyed_core> core = weak.lock()) ((*core).*what)();
    });
  });
}

// ---- the rest

void keyed_core::failed(const keyed_life& who, keyed_step what,
                        const std::exception_ptr& why) noexcept {
  failures_.fetch_add(1, relaxed);
  if (options_.on_failure) {
    try {
      return options_.on_failure({options_.type, who.key(), what, why});
    } catch (...) {  // both are reported
      report_exception("on_failure of keyed_actors", options_.type, std::current_exception());
    }
  }
  report_to_stderr(who.self().name() + ", " + std::string(to_string(what)), why);
}

future<void> keyed_core::forget(std::string_view key) {
  promise<void> done;
  future<void> result = done.get_future();
  forget(key, nullptr, std::move(done));
  return result;
}

void keyed_core::forget(std::string_view key, keyed_life* not_this, promise<void> done) {
  const cell_ptr at = find_or_make(std::unique_lock(lock_), key, not_this, &done);
  if (!done.is_unset()) return;  // it is the new one's
  auto* const life = dynamic_cast<keyed_life*>(at.get());
  check(life != nullptr, "sluice::keyed_actors", "an actor that is kept by key");
  auto shared = std::make_shared<promise<void>>(std::move(done));
  if (at->call([at, life, shared] { life->forget(std::move(*shared)); })) return;
  forget(key, life, std::move(*shared));
}

keyed_stats keyed_core::stats() const {
  keyed_stats s;
  {
    const std::lock_guard hold(lock_);
    s.live = lives_.size();
  }
  s.loads = loads_.load(relaxed);
  s.saves = saves_.load(relaxed);
  s.rests = rests_.load(relaxed);
  s.failures = failures_.load(relaxed);
  return s;
}

}  // namespace sluice::detail
