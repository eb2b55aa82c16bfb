#include "sluice/actor/detail/keyed_core.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/callback.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {

// The parent of the keyed actors; it takes no messages.
class keyed_core::parent_cell final : public cell {
 public:
  parent_cell(system_core& system, std::weak_ptr<keyed_core> core, const keyed_options& o)
      : cell(system, &system.root(), system.on(), actor_options{}), core_(std::move(core)) {
    auto x = std::make_unique<cell_extra>();
    x->name = o.type + "/*";
    x->children = o.failing;
    set_extra(std::move(x));
  }
  std::string_view type() const noexcept override { return "keyed_actors"; }
  using cell::begin_life;

 private:
  void construct() override {
    // A restart has dropped its timers.
    const std::shared_ptr<keyed_core> core = core_.lock();
    if (core == nullptr) return;
    core->sweep();
    core->trim_again();
  }
  void destroy() noexcept override {}
  void call_stopping() noexcept override {}
  void on_ending(stop_mode order) noexcept override {
    // All at once, so that they are saved together.
    for (cell* const child : children()) {
      child->request_stop(order);
      child->release();
    }
  }

  const std::weak_ptr<keyed_core> core_;
};

keyed_core::keyed_core(system_core& system, keyed_options o)
    : system_(system),
      options_(std::move(o)),
      live_limit_(options_.live_limit != 0 ? options_.live_limit : 2 * options_.live_max) {
  check(options_.live_max > 0, "sluice::keyed_actors", "live_max > 0");
  check(live_limit_ >= options_.live_max, "sluice::keyed_actors", "live_limit >= live_max, or 0");
  check(options_.each.kind == child_kind::transient, "sluice::keyed_actors",
        "each.kind to be transient: other kinds cannot be passivated");
  check(options_.idle.count() >= 0, "sluice::keyed_actors", "idle >= 0");
  wait_report::set_name(this, options_.type);
  wait_report::set_name(&place_freed_, "places for " + options_.type);
}

keyed_core::~keyed_core() {
  wait_report::destroyed(this);
}

void keyed_core::open() {
  auto* const created = new parent_cell(system_, weak_from_this(), options_);
  parent_ = cell_ptr(created);
  created->begin_life();
}

void keyed_core::close() noexcept {
  parent_->request_stop(stop_mode::drain);
}

// ---- finding

cell_ptr keyed_core::find(std::string_view key) {
  return find_or_make(std::unique_lock(lock_), key, nullptr, nullptr);
}

bool keyed_core::can_enter(std::string_view key) const {
  return has_place() || actors_.contains(key);
}

bool keyed_core::has_place() const noexcept {
  return actors_.size() + reserved_ < live_limit_ || parent_->is_terminated();
}

bool keyed_core::is_called_by_member() const noexcept {
  const cell* const caller = cell::current();
  return caller != nullptr && caller->parent() == parent_.get();
}

// Called after a wait. The wake may also serve the next waiter: passes it on.
void keyed_core::entered(std::string_view key) noexcept {
  if (actors_.size() + reserved_ + 1 < live_limit_ || actors_.contains(key))
    place_freed_.notify_one();
}

bool keyed_core::enter(std::unique_lock<mutex>& hold, std::string_view key,
                       const wait_limits* limits, status& result, bool& waited) {
  result = status::ok;
  if (can_enter(key)) return true;
  if (limits == nullptr || is_called_by_member()) {
    result = status::full;
    return false;
  }
  waited = true;
  result = place_freed_.wait(
      hold, [&] { return can_enter(key); }, *limits);
  if (result) entered(key);
  return static_cast<bool>(result);
}

cell_ptr keyed_core::find_within(std::string_view key, keyed_life* excluded,
                                 const wait_limits* limits, status& result) {
  cell_ptr found;
  bool waited = false;
  {
    std::unique_lock hold(lock_);
    if (enter(hold, key, limits, result, waited)) {
      found = find_or_make(std::move(hold), key, excluded, nullptr);
    }
  }
  if (waited) grant_places();  // the wake may have been for a place that was not needed
  return found;
}

cell_ptr keyed_core::find(std::string_view key, const wait_limits* limits, status& result) {
  return find_within(key, nullptr, limits, result);
}

task<cell_ptr> keyed_core::find_async(std::string_view key, wait_limits limits, status& result) {
  std::unique_lock hold(lock_);
  result = status::ok;
  if (can_enter(key)) co_return find_or_make(std::move(hold), key, nullptr, nullptr);
  if (is_called_by_member()) {
    result = status::full;
    co_return cell_ptr();
  }
  const auto is_free = [this, key] { return can_enter(key); };
  auto waiting = place_freed_.async_wait(hold, is_free, std::move(limits));
  result = co_await waiting;
  cell_ptr found;
  if (result) {
    entered(key);
    found = find_or_make(std::move(hold), key, nullptr, nullptr);
  } else {
    hold.unlock();
  }
  grant_places();
  co_return found;
}

// ---- places

enlisted keyed_core::wait_for_place(std::string_view key, wait_node& node,
                                    waiter& waiting) noexcept {
  const std::lock_guard hold(lock_);
  if (!can_enter(key)) return link_waiter(places_, node, waiting);
  ++reserved_;
  return enlisted::finished;
}

void keyed_core::cancel_place_wait(wait_node& node) noexcept {
  const std::lock_guard hold(lock_);
  if (node.linked()) node.unlink();
}

// The actor that the place was reserved for exists by now, and is counted itself.
void keyed_core::release_place() noexcept {
  {
    const std::lock_guard hold(lock_);
    --reserved_;
  }
  grant_places();
}

void keyed_core::grant_places() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  while (has_place()) {
    wait_node* const first = claim_front<wait_node>(places_);
    if (first == nullptr) return;
    ++reserved_;
    wakes.add(*first->waiting);
  }
}

cell_ptr keyed_core::live(std::string_view key) const {
  const std::lock_guard hold(lock_);
  const auto at = actors_.find(key);
  return at == actors_.end() ? cell_ptr() : cell_ptr(&at->second->self());
}

cell_ptr keyed_core::successor(keyed_life& closed) {
  // Two statements: the lock is moved into the callee, but lives as long as the full expression.
  cell_ptr found = find_or_make(std::unique_lock(lock_), closed.key(), &closed, nullptr);
  return successor_or_none(std::move(found));
}

cell_ptr keyed_core::successor(keyed_life& closed, const wait_limits* limits, status& result) {
  cell_ptr found = find_within(closed.key(), &closed, limits, result);
  return found ? successor_or_none(std::move(found)) : cell_ptr();
}

// A terminated cell may have been passivated already, and then has a successor; a cell that never
// started has none.
cell_ptr keyed_core::successor_or_none(cell_ptr found) const {
  const auto* const life = dynamic_cast<const keyed_life*>(found.get());
  const std::lock_guard hold(lock_);
  return life->never_started_ ? cell_ptr() : std::move(found);
}

cell_ptr keyed_core::find_or_make(std::unique_lock<mutex> hold, std::string_view key,
                                  keyed_life* excluded, promise<void>* forgets) {
  cell_ptr old;
  if (const auto at = actors_.find(key); at != actors_.end()) {
    keyed_life& live = *at->second;
    if (&live != excluded && !live.self().is_terminated()) {
      touch(live);
      return cell_ptr(&live.self());
    }
    old = take_out(live);
  }
  cell_ptr predecessor;
  if (excluded != nullptr && !excluded->self().is_terminated())
    predecessor = cell_ptr(&excluded->self());
  keyed_life& created = put(std::string(key), std::move(predecessor));
  if (forgets != nullptr) created.remove_before_load_.push_back(std::move(*forgets));
  cell_ptr found(&created.self());
  hold.unlock();
  start(created);
  return found;
}

keyed_life& keyed_core::put(std::string key, cell_ptr predecessor) {
  keyed_life& created = make(std::move(key), std::move(predecessor));
  created.self().add_ref();
  actors_.emplace(created.key(), &created);
  touch(created);
  return created;
}

cell_ptr keyed_core::take_out(keyed_life& life) noexcept {
  actors_.erase(life.key());
  place_freed_.notify_one();
  if (life.linked()) life.unlink();
  if (std::exchange(life.is_passivating_, false)) --passivating_;
  return cell_ptr::adopt(&life.self());
}

void keyed_core::start(keyed_life& created) {
  const cell_ptr held(&created.self());
  if (!created.start()) {
    {
      const std::lock_guard hold(lock_);
      created.never_started_ = true;
    }
    return ended(created);  // the cell itself does not report it
  }
  bool must_sweep = false;
  {
    const std::lock_guard hold(lock_);
    if (options_.idle.count() > 0) must_sweep = !std::exchange(has_sweep_timer_, true);
  }
  if (must_sweep) later(options_.idle, &keyed_core::sweep);
  trim();
}

void keyed_core::ended(keyed_life& life) noexcept {
  cell_ptr old;
  bool has_excess = false;
  bool serves_places = true;
  {
    const std::lock_guard hold(lock_);
    const auto at = actors_.find(life.key());
    if (at == actors_.end() || at->second != &life) return;
    // Callers and the place queue alternate; a notified caller passes on an unused wake.
    if (place_freed_.waiting() > 0)
      serves_places = std::exchange(places_are_next_, !places_are_next_);
    old = take_out(life);
    has_excess = excess() > 0;
  }
  if (serves_places) grant_places();
  if (has_excess) trim();
}

// ---- use and passivation

void keyed_core::touch(keyed_life& life) noexcept {
  life.used_at_ = system_.clock().now();
  life.accepted_at_use_ = life.self().accepted() + 1;
  if (life.is_passivating_) return;
  if (life.linked()) life.unlink();
  by_use_.push_back(life);
}

bool keyed_core::was_used_since(const keyed_life& life) noexcept {
  return static_cast<std::int32_t>(life.self().accepted() - life.accepted_at_use_) > 0;
}

keyed_core::passivation keyed_core::begin_passivation(keyed_life& life) {
  life.unlink();
  life.is_passivating_ = true;
  ++passivating_;
  return {cell_ptr(&life.self()), &life};
}

std::size_t keyed_core::excess() const noexcept {
  const std::size_t live = actors_.size() - passivating_;
  return live > options_.live_max ? live - options_.live_max : 0;
}

void keyed_core::passivate_all(std::vector<passivation> idle) {
  for (passivation& each : idle) {
    cell& c = *each.held;
    // False: it has terminated, and `ended` was or will be called for it.
    (void)c.call([held = std::move(each.held), life = each.life] { life->passivate(); });
  }
}

// Passivates the actors in excess of live_max, least recently used first, skipping those with
// messages.
void keyed_core::trim() {
  std::vector<passivation> idle;
  bool must_retry = false;
  {
    const std::lock_guard hold(lock_);
    std::size_t left = excess();
    for (int tried = 0; left > 0 && tried < candidates_max && !by_use_.empty(); ++tried) {
      keyed_life& oldest = by_use_.front();
      if (oldest.self().queued() > 0 || was_used_since(oldest)) {
        touch(oldest);
      } else {
        idle.push_back(begin_passivation(oldest));
        --left;
      }
    }
    if (left > 0) must_retry = !std::exchange(has_trim_timer_, true);
  }
  passivate_all(std::move(idle));
  if (must_retry) later(excess_wait, &keyed_core::trim_again);
}

void keyed_core::trim_again() {
  {
    const std::lock_guard hold(lock_);
    has_trim_timer_ = false;
  }
  trim();
}

void keyed_core::sweep() {
  std::vector<passivation> idle;
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
        idle.push_back(begin_passivation(oldest));
      }
    }
    has_sweep_timer_ = wait.has_value();
  }
  passivate_all(std::move(idle));
  if (wait) later(*wait, &keyed_core::sweep);
}

void keyed_core::stays_live(keyed_life& life, std::chrono::nanoseconds retry_after) {
  bool must_retry = false;
  bool must_sweep = false;
  {
    const std::lock_guard hold(lock_);
    if (!std::exchange(life.is_passivating_, false)) return;  // it has a successor
    --passivating_;
    touch(life);
    if (options_.idle.count() > 0) must_sweep = !std::exchange(has_sweep_timer_, true);
    if (excess() > 0) must_retry = !std::exchange(has_trim_timer_, true);
  }
  if (must_sweep) later(options_.idle, &keyed_core::sweep);
  if (must_retry) later(retry_after, &keyed_core::trim_again);
}

void keyed_core::later(std::chrono::nanoseconds wait, void (keyed_core::*step)()) {
  // False: everything is ending.
  (void)parent_->call([weak = weak_from_this(), parent = parent_, wait, step] {
    (void)parent->call_after(wait, [weak, step, parent = parent.get()](std::uint64_t number) {
      (void)parent->cancel_call(number);
      if (const std::shared_ptr<keyed_core> core = weak.lock()) ((*core).*step)();
    });
  });
}

// ---- failures, forgetting, statistics

void keyed_core::failed(const keyed_life& life, keyed_step step,
                        const std::exception_ptr& error) noexcept {
  failures_.fetch_add(1, relaxed);
  if (options_.on_failure) {
    try {
      return options_.on_failure({options_.type, life.key(), step, error});
    } catch (...) {  // both errors are reported
      report_exception("on_failure of keyed_actors", options_.type, std::current_exception());
    }
  }
  report_to_stderr(life.self().name() + ", " + std::string(to_string(step)), error);
}

future<void> keyed_core::forget(std::string_view key) {
  promise<void> done;
  future<void> result = done.get_future();
  forget(key, nullptr, std::move(done));
  return result;
}

void keyed_core::forget(std::string_view key, keyed_life* excluded, promise<void> done) {
  const cell_ptr live = find_or_make(std::unique_lock(lock_), key, excluded, &done);
  if (!done.is_unset()) return;  // the new actor has it
  auto* const life = dynamic_cast<keyed_life*>(live.get());
  check(life != nullptr, "sluice::keyed_actors", "an actor that is kept by key");
  auto shared = std::make_shared<promise<void>>(std::move(done));
  if (live->call([live, life, shared] { life->forget(std::move(*shared)); })) return;
  forget(key, life, std::move(*shared));
}

keyed_stats keyed_core::stats() const {
  keyed_stats s;
  {
    const std::lock_guard hold(lock_);
    s.live = actors_.size();
  }
  s.loads = loads_.load(relaxed);
  s.saves = saves_.load(relaxed);
  s.passivations = passivations_.load(relaxed);
  s.failures = failures_.load(relaxed);
  return s;
}

}  // namespace sluice::detail
