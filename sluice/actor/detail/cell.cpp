// Messages in, turns, senders that wait.
#include "sluice/actor/detail/cell.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/in_turn.hpp"
#include "sluice/actor/detail/room_wait.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/actor/detail/told_wait.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/per_thread.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/backoff.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {
namespace {

constinit thread_local cell* current_cell = nullptr;
constinit thread_local in_turn* innermost = nullptr;

// What this thread is in the middle of handling, where somebody observes it.
struct handling {
  const cell* by = nullptr;
  message_mark on{};
};
constinit thread_local handling current_handling{};

}  // namespace

in_turn::in_turn(cell& c) noexcept
    : of(c), outer(std::exchange(innermost, this)), before_(observe_sleep(this)) {
  current_cell = &c;
}
in_turn::~in_turn() {
  observe_sleep(before_);
  innermost = outer;
  current_cell = outer == nullptr ? nullptr : &outer->of;
}

bool cell::is_in_turn_here() const noexcept {
  for (const in_turn* at = innermost; at != nullptr; at = at->outer) {
    if (&at->of == this) return true;
  }
  return false;
}

bool cell::lets_wait(status how) const noexcept {
  if (how != status::full || overflow_ != overflow::block) return false;
  if (current_cell == nullptr) return true;
  return is_under_construction(*current_cell) ? !is_in_turn_here() : current_cell != this;
}

cell* cell::current() noexcept {
  return current_cell;
}

message_mark cell::current_mark() noexcept {
  return current_handling.by == current_cell ? current_handling.on : message_mark{};
}

cell::cell(system_core& system, cell* parent, executor& on, const actor_options& o)
    : capacity_(o.mailbox.capacity),
      overflow_(o.mailbox.overflow),
      kind_(o.kind),
      per_turn_(static_cast<std::uint16_t>(std::clamp<std::uint32_t>(o.per_turn, 1, 65'535))),
      on_(&on),
      system_(system),
      parent_(parent),
      id_(parent == nullptr ? 0 : system.next_id()) {
  check(capacity_ > 0, "sluice::actor", "a mailbox with room for one message at least");
  check(overflow_ != overflow::caller_runs, "sluice::actor",
        "a mailbox that does not run messages on the sender's thread (caller_runs)");
  // Those that drop what is inside must find it there.
  takes_all_ = overflow_ != overflow::drop_oldest && overflow_ != overflow::latest;
  if (parent != nullptr) system.add_ref();
}

cell::~cell() {
  if (has_told_name_.load(relaxed)) [[unlikely]]
    watch::set_name(as_party(), {}, nullptr);
  extra_.reset();  // what it has may look at the system
  if (parent_ != nullptr) system_.release();
}

cell_extra& cell::extra() {
  if (extra_ == nullptr) extra_ = std::make_unique<cell_extra>();
  return *extra_;
}

std::string cell::name() const {
  // Constant once there is one: extra_ may come later, but a name only at the beginning.
  if (has_name_) return extra_->name;
  return std::string(type()) + "-" + std::to_string(id_);
}

watch::party cell::as_party() const noexcept {
  const auto who = watch::party::actor(id_, system_.number());
  // relaxed: said twice it is the same name.
  if (watch::is_on() && !has_told_name_.load(relaxed)) [[unlikely]]
    tell_name(who);
  return who;
}

watch::party cell::acting_party() const noexcept {
  return is_in_turn_here() ? as_party() : watch::party::actor(id_, system_.number());
}

void cell::tell_name(watch::party who) const noexcept {
  try {
    watch::set_name(who, name(), is_over() ? nullptr : on_);
    has_told_name_.store(true, relaxed);
  } catch (const std::bad_alloc&) {  // it is known by its number
  }
}

// Its name stays while somebody could ask for it, but it runs nowhere any more.
void cell::tell_over() const noexcept {
  if (has_told_name_.load(relaxed)) [[unlikely]]
    tell_name(watch::party::actor(id_, system_.number()));
}

std::size_t cell::queued() const noexcept {
  const std::lock_guard hold(guard_);
  if (over_.load(relaxed)) return 0;       // written under the guard
  return counted_ - begun_.load(acquire);  // acquire: pairs with the release in `begin`
}

std::size_t cell::load() const noexcept {
  const std::lock_guard hold(guard_);
  // acquire: pairs with the release in `begin`
  return counted_ - begun_.load(acquire) + (scheduled_ ? 1 : 0);
}

std::size_t cell::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return room_.size();
}

// ---- in

void cell::append(envelope& e) noexcept {
  if (e.ops->in_lane == lane::normal && takes_all_) return lanes_[1].push_back_linked(e);
  lanes_[static_cast<std::size_t>(e.ops->in_lane)].push_back(e);
  if (e.ops->in_lane == lane::urgent) poked_.store(true, relaxed);  // read again under guard_
}

cell::offered cell::offer(envelope& e) noexcept {
  if (closed_) return {status::closed, false, nullptr};
  if (!room_.empty() || !has_room()) [[unlikely]]
    return offer_when_full(e);
  ++counted_;
  append(e);
  return {status::ok, must_post(), nullptr};
}

cell::offered cell::offer_when_full(envelope& e) noexcept {
  if (overflow_ == overflow::drop_newest) return {status::dropped, false, &e};
  if (overflow_ != overflow::drop_oldest && overflow_ != overflow::latest) {
    return {status::full, false, nullptr};
  }
  // Nothing is dropped for what is in a lower lane, and what does not count against the bound is
  // not dropped for what does.
  envelope_list passed;
  envelope* victim = nullptr;
  for (const lane from : {lane::low, lane::normal, lane::urgent}) {
    if (from < e.ops->in_lane) break;  // urgent is the least
    envelope_list& list = lanes_[static_cast<std::size_t>(from)];
    if (overflow_ == overflow::latest) {
      victim = list.pop_last_counted();
    } else {
      while (victim == nullptr && !list.empty()) {
        envelope* const first = list.pop_front();
        if (first->is_counted) {
          victim = first;
        } else {
          passed.push_back(*first);
        }
      }
      list.prepend(passed);
    }
    if (victim != nullptr) break;
  }
  if (victim == nullptr) return {status::dropped, false, &e};
  append(e);
  return {status::ok, must_post(), victim};
}

// Senders on two cores that take turns with each message move the guard, the end of the list and
// the last letter to and fro, which costs many times what the sending does. So the more often they
// meet, the longer one waits before it looks again, and the other one sends a whole row meanwhile.
// Each row that the actor takes out, and each time that it has nothing to do, makes them a little
// less patient: who meets seldom, waits not longer than for any other spin_lock.
void cell::lock_for_send() noexcept {
  if (guard_.try_lock()) [[likely]]
    return;
  constexpr std::uint8_t crowd_max = 7;
  const std::uint8_t crowd = crowd_.load(relaxed);
  const std::uint32_t pauses = 16U << crowd;
  backoff again({.least_pauses = pauses, .most_pauses = 4 * pauses, .yields = 256});
  do {
    again.pause();
  } while (!guard_.try_lock());
  if (crowd < crowd_max) crowd_.store(static_cast<std::uint8_t>(crowd + 1), relaxed);
}

// Under guard_.
void cell::be_less_patient() noexcept {
  const std::uint8_t crowd = crowd_.load(relaxed);
  if (crowd > 0) crowd_.store(static_cast<std::uint8_t>(crowd - 1), relaxed);
}

status cell::send(envelope& e, const wait_limits* limits) {
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  if (system_.is_told_of_sends()) [[unlikely]]
    note_sent(e);
  offered o;
  {
    lock_for_send();
    const std::lock_guard hold(guard_, std::adopt_lock);
    o = offer(e);
  }
  if (o.must_post) on_->post(*this);
  if (o.how == status::ok && o.victim == nullptr) [[likely]]
    return status::ok;
  return sent_slowly(e, o.how, o.victim, limits);
}

// Of another system: their numbers mean nothing here.
actor_id cell::sender() const noexcept {
  return current_cell != nullptr && &current_cell->system_ == &system_ ? current_cell->id_ : 0;
}

void cell::note_sent(envelope& e) const noexcept {
  const actor_id from = sender();
  // One that is handed on to a successor has its sender already.
  if (e.from == 0 && from <= std::numeric_limits<std::uint32_t>::max()) {
    e.from = static_cast<std::uint32_t>(from);
  }
  if (actor_observer* const watching = system_.observer()) {
    e.note = watching->sent(from, id_, e.ops->type);
  }
}

// There was no room, or nobody.
status cell::sent_slowly(envelope& e, status::code how, envelope* victim,
                         const wait_limits* limits) {
  if (victim != nullptr) lose(*victim, loss::dropped);
  if (how == status::full && limits != nullptr && overflow_ == overflow::block &&
      !is_in_turn_here()) {
    told_wait told;
    told.begin(*this, actor_wait::room);
    how = block_on(room_wait(*this, e), *limits);
    told.end();
  }
  if (how != status::closed) return how;
  if (comes_back_) {
    status found = status::ok;
    if (const cell_ptr next = successor_within(limits, found)) return next->send(e, limits);
    if (!found) return found;
  }
  if (!e.is_tried) system_.lost(*this, e, loss::ended);
  return how;
}

cell_ptr cell::successor() {
  return {};
}

cell_ptr cell::successor_within(const wait_limits*, status&) {
  return {};
}

bool cell::pass_on(envelope& e) {
  const cell_ptr next = comes_back_ ? successor() : cell_ptr();
  if (!next) return false;
  (void)next->send_uncounted(e);
  return true;
}

cell_ptr cell::successor_if_closed(status& how) {
  how = status::ok;
  if (!comes_back_) return {};
  {
    const std::lock_guard hold(guard_);
    if (!closed_) return {};
  }
  return successor_within(nullptr, how);
}

bool cell::send_uncounted(envelope& e) noexcept {
  e.is_counted = false;
  if (system_.is_told_of_sends()) note_sent(e);
  bool taken = false;
  bool post = false;
  {
    const std::lock_guard hold(guard_);
    taken = !ends_;
    if (taken) {
      append(e);
      post = must_post();
    }
  }
  if (post) on_->post(*this);
  if (taken) return true;
  if (comes_back_) {
    if (const cell_ptr next = successor()) return next->send_uncounted(e);
  }
  lose(e, loss::ended);
  return false;
}

bool cell::post(work& item) noexcept {
  return bring(control_, item);
}

// It has had its token from there.
bool cell::resume(work& item) noexcept {
  return bring(extra_->resumed, item);
}

bool cell::bring(intrusive_list<work>& to, work& item) noexcept {
  bool must = false;
  {
    const std::lock_guard hold(guard_);
    if (over_.load(relaxed)) return false;  // written under the guard
    to.push_back(item);
    poked_.store(true, relaxed);  // read again under the guard
    must = must_post();
  }
  if (must) on_->post(*this);
  return true;
}

bool cell::call(unique_function<void()> f) {
  auto* const item = new control_call(std::move(f));
  if (post(*item)) return true;
  item->discard();
  return false;
}

void cell::lose(envelope& e, loss why) noexcept {
  system_.lost(*this, e, why);
  e.ops->drop(e, *this, why);
}

void cell::note_lost(const envelope& e) const noexcept {
  system_.lost(*this, e, loss::ended);
}

// ---- senders that wait

bool room_wait::ready() const noexcept {
  // relaxed: only a guess.
  return to_.begun_.load(relaxed) != begun_before_;
}

bool room_wait::attempt() noexcept {
  cell::offered o;
  {
    const std::lock_guard hold(to_.guard_);
    o = to_.offer(letter_);
    begun_before_ = to_.begun_.load(relaxed);
  }
  return settle(o);
}

bool room_wait::settle(const cell::offered& o) noexcept {
  if (o.must_post) to_.on_->post(to_);
  if (o.how == status::full) return false;
  place_.how = o.how;
  return true;
}

enlisted room_wait::enlist(waiter& who) noexcept {
  cell::offered o;
  {
    const std::lock_guard hold(to_.guard_);
    // The turn may not have seen this when it begins the next message, nor that be seen here. Then
    // it is seen, under the guard, before the turn ends or its thread falls asleep.
    o = to_.offer(letter_);
    if (o.how == status::full) {
      place_.letter = &letter_;
      const enlisted joined = join(to_.room_, place_, who);
      to_.wanted_room_.store(!to_.room_.empty(), relaxed);
      return joined;
    }
  }
  (void)settle(o);
  return enlisted::finished;
}

void room_wait::retract() noexcept {
  const std::lock_guard hold(to_.guard_);
  if (place_.linked()) place_.unlink();
  to_.wanted_room_.store(!to_.room_.empty(), relaxed);
}

void cell::let_in() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  if (!room_.empty()) let_in(wakes);
}

void cell::let_in(wake_batch& wakes) noexcept {
  begun_seen_ = begun_.load(relaxed);  // this turn's own
  while (counted_ - begun_seen_ < capacity_) {
    auto* const first = claim_front<room_node>(room_);
    if (first == nullptr) break;
    ++counted_;
    append(*first->letter);
    first->how = status::ok;
    wakes.add(*first->who);
  }
  wanted_room_.store(!room_.empty(), relaxed);
}

void cell::close_intake() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  closed_ = true;
  while (auto* const first = claim_front<room_node>(room_)) {
    first->how = status::closed;
    wakes.add(*first->who);
  }
  wanted_room_.store(false, relaxed);
}

// ---- rest

std::uint32_t cell::accepted() const noexcept {
  const std::lock_guard hold(guard_);
  return counted_;
}

bool cell::is_idle() const noexcept {
  if (!may_take() || tasks_ > 0 || drains_ || !taken_.empty()) return false;
  if (extra_ != nullptr && extra_->stashed > 0) return false;
  const std::lock_guard hold(guard_);
  return !has_messages();
}

bool cell::close_if_empty() noexcept {
  if (mode_ != mode::running || drains_ || !taken_.empty()) return false;
  const std::lock_guard hold(guard_);
  if (has_messages() || !room_.empty()) return false;
  closed_ = ends_ = true;
  return true;
}

// ---- a turn

void cell::run() noexcept {
  if (has_something_to_tell()) return parent_->hear(*this);
  turn();
}

void cell::turn() noexcept {
  take_turn();
  // In no turn any more: another thread may end it now, while this one falls asleep on its way out.
  if (!has_something_to_tell()) return leave();
  let_in();
  if (parent_ == nullptr) {
    system_.ended().set();
  } else {
    (void)parent_->post(*this);  // it lives as long as its children
  }
}

void cell::take_turn() noexcept {
  in_turn here(*this);
  if (mode_ != mode::running) [[unlikely]]
    follow_parent();
  std::uint32_t resumptions = per_turn_;
  for (std::uint32_t left = per_turn_;;) {
    if (poked_.load(relaxed)) [[unlikely]]
      attend(resumptions);
    if (has_something_to_tell()) [[unlikely]]
      break;
    if (extra_ != nullptr && !held_ && grant_floor()) continue;
    if (!may_take() || left == 0) break;
    envelope* const e = next();
    if (e == nullptr) {
      if (!drains_ || tasks_ > 0) break;  // what was begun is finished first
      begin_stop(stop_how::drain);
      continue;
    }
    --left;
    begin(*e, here);
    handle(*e);
  }
}

// Orders, as long as there are any, and so many coroutines that go on. From what it does the actor
// may have to tell its parent something: then the rest is for later.
void cell::attend(std::uint32_t& resumptions) noexcept {
  while (!has_something_to_tell()) {
    work* item = nullptr;
    {
      const std::lock_guard hold(guard_);
      if (!control_.empty()) {
        item = &control_.pop_front();
      } else if (resumptions > 0 && has_resumed()) {
        item = &extra_->resumed.pop_front();
        --resumptions;
      } else {
        poked_.store(!lanes_[0].empty() || has_resumed(), relaxed);
        return;
      }
    }
    item->run();
  }
}

// Under guard_.
bool cell::has_resumed() const noexcept {
  return extra_ != nullptr && !extra_->resumed.empty();
}

bool cell::grant_floor() noexcept {
  if (extra_->floor.empty()) return false;
  held_ = true;
  extra_->floor.pop_front().run();
  return true;
}

envelope* cell::next() noexcept {
  const bool is_fair_turn = ++ticks_ % fair_turn == 0;
  if (poked_.load(relaxed) && !is_fair_turn) [[unlikely]] {
    const std::lock_guard hold(guard_);
    envelope* const urgent = lanes_[0].pop_front();
    if (urgent != nullptr) return urgent;
  }
  if (!is_fair_turn) {
    if (envelope* const e = taken_.pop_linked()) return e;
  }
  const std::lock_guard hold(guard_);
  if (is_fair_turn) {
    if (envelope* const low = lanes_[2].pop_front()) return low;
    if (envelope* const e = taken_.pop_front()) return e;
  }
  if (envelope* const urgent = is_fair_turn ? nullptr : lanes_[0].pop_front()) return urgent;
  if (!lanes_[1].empty()) {
    if (!takes_all_) return lanes_[1].pop_front();
    be_less_patient();
    taken_.prepend(lanes_[1]);
    return taken_.pop_linked();
  }
  if (envelope* const low = lanes_[2].pop_front()) return low;
  return lanes_[0].pop_front();
}

void cell::begin(envelope& e, in_turn& here) noexcept {
  if (!e.is_counted) return;
  const std::uint32_t now = begun_.load(relaxed) + 1;
  begun_.store(now, sluice::release);  // release: pairs with the acquire in has_room
  // relaxed: one that is overlooked here is seen under the guard, at the latest when the turn ends.
  if (wanted_room_.load(relaxed)) [[unlikely]]
    here.room_for_one(now, std::max(capacity_ / 16, 1U));
}

void cell::handle(envelope& e) noexcept {
  actor_observer* const watching = system_.observer();
  if (watching == nullptr) [[likely]] {
    try {
      e.ops->handle(*this, e);
    } catch (...) {
      fail(std::current_exception());
    }
    return;
  }
  const message_mark on{e.ops->type, e.note};
  watching->begun(id_, on.type, on.note);
  const handling before = std::exchange(current_handling, {this, on});
  try {
    e.ops->handle(*this, e);
  } catch (...) {
    fail(std::current_exception());
  }
  current_handling = before;
  if (!held_) watching->handled(id_, on.type, on.note);
}

void cell::leave() noexcept {
  wake_batch wakes;
  {
    const std::lock_guard hold(guard_);
    if (!room_.empty()) [[unlikely]]
      let_in(wakes);
    const bool has_more =
        !control_.empty() || has_resumed() ||
        (may_take() && ((drains_ && tasks_ == 0) || !taken_.empty() || has_messages()));
    if (!has_more) {
      be_less_patient();
      scheduled_ = false;
      return;
    }
  }
  on_->post(*this);
}

// ---- coroutines of handlers

void cell::task_ended() noexcept {
  --tasks_;
  if (mode_ == mode::retiring || mode_ == mode::stopping) go_on_ending();
}

// While `handle` is still at it, that one tells the observer, when it has returned. Without a type
// it was no message that had the floor.
void cell::give_floor(const message_mark& on) noexcept {
  held_ = false;
  actor_observer* const watching = system_.observer();
  if (watching == nullptr || current_handling.by == this || on.type.empty()) return;
  watching->handled(id_, on.type, on.note);
}

void cell::tell_resumed(const message_mark& on) noexcept {
  actor_observer* const watching = system_.observer();
  if (watching == nullptr || current_handling.by == this) return;
  watching->resumed(id_, on.type, on.note);
}

void cell::wait_for_floor(work& item) {
  extra().floor.push_back(item);
}

const std::stop_token& cell::task_token() {
  cell_extra& x = extra();
  if (!x.stop.stop_possible()) {
    x.stop = std::stop_source();
    x.token = x.stop.get_token();
  }
  return x.token;
}

void cell::unstash(envelope_list& those) noexcept {
  taken_.prepend(those);
}

}  // namespace sluice::detail
