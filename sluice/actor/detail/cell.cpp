// The mailbox, turns, and senders that wait for capacity.
#include "sluice/actor/detail/cell.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "sluice/actor/detail/capacity_wait.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/in_turn.hpp"
#include "sluice/actor/detail/reported_wait.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/per_thread.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/backoff.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {
namespace {

constinit thread_local cell* current_cell = nullptr;
constinit thread_local in_turn* innermost = nullptr;

// The message that this thread is handling. Set only if there is an observer.
struct handling {
  const cell* receiver = nullptr;
  message_mark message{};
};
constinit thread_local handling current_handling{};

}  // namespace

in_turn::in_turn(cell& c) noexcept
    : owner(c), outer(std::exchange(innermost, this)), before_(observe_sleep(this)) {
  current_cell = &c;
}
in_turn::~in_turn() {
  observe_sleep(before_);
  innermost = outer;
  current_cell = outer == nullptr ? nullptr : &outer->owner;
}

bool cell::is_in_turn_here() const noexcept {
  for (const in_turn* turn = innermost; turn != nullptr; turn = turn->outer) {
    if (&turn->owner == this) return true;
  }
  return false;
}

bool cell::may_wait(status result) const noexcept {
  if (result != status::full || overflow_ != overflow::block) return false;
  if (current_cell == nullptr) return true;
  return is_under_construction(*current_cell) ? !is_in_turn_here() : current_cell != this;
}

cell* cell::current() noexcept {
  return current_cell;
}

message_mark cell::current_mark() noexcept {
  return current_handling.receiver == current_cell ? current_handling.message : message_mark{};
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
  check(capacity_ > 0, "sluice::actor", "a mailbox capacity > 0");
  check(overflow_ != overflow::caller_runs, "sluice::actor",
        "a mailbox overflow policy other than caller_runs");
  // The drop policies must find the queued messages in their lane.
  takes_all_ = overflow_ != overflow::drop_oldest && overflow_ != overflow::latest;
  if (parent != nullptr) system.add_ref();
}

cell::~cell() {
  if (has_reported_name_.load(relaxed)) [[unlikely]]
    wait_report::set_name(as_party(), {}, nullptr);
  extra_.reset();  // its members may use the system
  if (parent_ != nullptr) system_.release();
}

cell_extra::cell_extra() = default;
cell_extra::~cell_extra() = default;

cell_extra& cell::extra() {
  if (extra_ == nullptr) extra_ = std::make_unique<cell_extra>();
  return *extra_;
}

std::string cell::name() const {
  // Constant: extra_ may be created later, but a name only at construction.
  if (has_name_) return extra_->name;
  return std::string(type()) + "-" + std::to_string(id_);
}

wait_report::party cell::as_party() const noexcept {
  const auto self = wait_report::party::actor(id_, system_.number());
  // relaxed: reporting twice reports the same name.
  if (wait_report::is_on() && !has_reported_name_.load(relaxed)) [[unlikely]]
    report_name(self);
  return self;
}

wait_report::party cell::acting_party() const noexcept {
  return is_in_turn_here() ? as_party() : wait_report::party::actor(id_, system_.number());
}

void cell::report_name(wait_report::party self) const noexcept {
  try {
    wait_report::set_name(self, name(), is_terminated() ? nullptr : on_);
    has_reported_name_.store(true, relaxed);
  } catch (const std::bad_alloc&) {  // reports then show its number
  }
}

// Keeps the name for later reports, without an executor.
void cell::report_name_of_terminated() const noexcept {
  if (has_reported_name_.load(relaxed)) [[unlikely]]
    report_name(wait_report::party::actor(id_, system_.number()));
}

std::size_t cell::queued() const noexcept {
  const std::lock_guard hold(guard_);
  if (terminated_.load(relaxed)) return 0;  // written under guard_
  return counted_ - begun_.load(acquire);   // acquire: pairs with the release in `begin`
}

std::size_t cell::load() const noexcept {
  const std::lock_guard hold(guard_);
  // acquire: pairs with the release in `begin`
  return counted_ - begun_.load(acquire) + (scheduled_ ? 1 : 0);
}

std::size_t cell::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return waiting_senders_.size();
}

// ---- sending

void cell::append(envelope& e) noexcept {
  if (e.ops->in_lane == lane::normal && takes_all_) return lanes_[1].push_back_linked(e);
  lanes_[static_cast<std::size_t>(e.ops->in_lane)].push_back(e);
  // relaxed: read again under guard_
  if (e.ops->in_lane == lane::urgent) has_urgent_.store(true, relaxed);
}

cell::offered cell::offer(envelope& e) noexcept {
  if (closed_) return {status::closed, false, nullptr};
  if (!waiting_senders_.empty() || !has_capacity()) [[unlikely]]
    return offer_when_full(e);
  ++counted_;
  append(e);
  return {status::ok, mark_scheduled(), nullptr};
}

cell::offered cell::offer_when_full(envelope& e) noexcept {
  if (overflow_ == overflow::drop_newest) return {status::dropped, false, &e};
  if (overflow_ != overflow::drop_oldest && overflow_ != overflow::latest) {
    return {status::full, false, nullptr};
  }
  // A message never displaces one of a higher lane, and a bounded message never displaces an
  // unbounded one.
  envelope_list passed;
  envelope* victim = nullptr;
  for (const lane from : {lane::low, lane::normal, lane::urgent}) {
    if (from < e.ops->in_lane) break;  // the lanes are ordered from urgent (0) to low
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
  return {status::ok, mark_scheduled(), victim};
}

// Two senders that alternate on each message move the cache lines of the guard, the end of the list
// and the last letter between their cores, which costs many times what a send does. So the more
// often senders collide, the longer one pauses before its next attempt, and the other sends a run
// of messages meanwhile. Each lane that the actor takes, and each turn that ends without work,
// lowers the level by one: senders that collide seldom wait no longer than for any other spin_lock.
void cell::lock_for_send() noexcept {
  if (guard_.try_lock()) [[likely]]
    return;
  constexpr std::uint8_t contention_max = 7;
  const std::uint8_t level = contention_.load(relaxed);
  const std::uint32_t pauses = 16U << level;
  backoff again({.least_pauses = pauses, .most_pauses = 4 * pauses, .yields = 256});
  do {
    again.pause();
  } while (!guard_.try_lock());
  if (level < contention_max) contention_.store(static_cast<std::uint8_t>(level + 1), relaxed);
}

// Must hold guard_.
void cell::decay_contention() noexcept {
  const std::uint8_t level = contention_.load(relaxed);
  if (level > 0) contention_.store(static_cast<std::uint8_t>(level - 1), relaxed);
}

status cell::send(envelope& e, const wait_limits* limits) {
  if (limits != nullptr && limits->stop.stop_requested()) return status::stopped;
  if (system_.tracks_senders()) [[unlikely]]
    note_sent(e);
  offered o;
  {
    lock_for_send();
    const std::lock_guard hold(guard_, std::adopt_lock);
    o = offer(e);
  }
  if (o.must_post) on_->post(*this);
  if (o.result == status::ok && o.victim == nullptr) [[likely]]
    return status::ok;
  return send_slow(e, o.result, o.victim, limits);
}

// Actors of another system count as outside: their ids mean nothing here.
actor_id cell::sender() const noexcept {
  return current_cell != nullptr && &current_cell->system_ == &system_ ? current_cell->id_ : 0;
}

void cell::note_sent(envelope& e) const noexcept {
  const actor_id from = sender();
  // An envelope passed to a successor has its sender already.
  if (e.from == 0 && from <= std::numeric_limits<std::uint32_t>::max()) {
    e.from = static_cast<std::uint32_t>(from);
  }
  if (actor_observer* const observer = system_.observer()) {
    e.note = observer->sent(from, id_, e.ops->type);
  }
}

// Called if the mailbox was full or closed, or if the policy dropped a message.
status cell::send_slow(envelope& e, status::code result, envelope* victim,
                       const wait_limits* limits) {
  if (victim != nullptr) lose(*victim, loss::dropped);
  if (result == status::full && limits != nullptr && overflow_ == overflow::block &&
      !is_in_turn_here()) {
    reported_wait report;
    report.begin(*this, actor_wait::capacity);
    result = block_on(capacity_wait(*this, e), *limits);
    report.end();
  }
  if (result != status::closed) return result;
  if (has_successor_) {
    status reason = status::ok;
    if (const cell_ptr next = successor_within(limits, reason)) return next->send(e, limits);
    if (!reason) return reason;
  }
  if (!e.is_tried) system_.lost(*this, e, loss::ended);
  return result;
}

cell_ptr cell::successor() {
  return {};
}

cell_ptr cell::successor_within(const wait_limits*, status&) {
  return {};
}

bool cell::pass_to_successor(envelope& e) {
  const cell_ptr next = has_successor_ ? successor() : cell_ptr();
  if (!next) return false;
  (void)next->send_uncounted(e);
  return true;
}

cell_ptr cell::successor_if_closed(status& result) {
  result = status::ok;
  if (!has_successor_) return {};
  {
    const std::lock_guard hold(guard_);
    if (!closed_) return {};
  }
  return successor_within(nullptr, result);
}

bool cell::send_uncounted(envelope& e) noexcept {
  e.is_counted = false;
  if (system_.tracks_senders()) note_sent(e);
  bool is_accepted = false;
  bool post = false;
  {
    const std::lock_guard hold(guard_);
    is_accepted = !is_ending_;
    if (is_accepted) {
      append(e);
      post = mark_scheduled();
    }
  }
  if (post) on_->post(*this);
  if (is_accepted) return true;
  if (has_successor_) {
    if (const cell_ptr next = successor()) return next->send_uncounted(e);
  }
  lose(e, loss::ended);
  return false;
}

bool cell::post(work& item) noexcept {
  return enqueue(control_, item);
}

// extra_ exists: the coroutine got its stop token from it.
bool cell::resume(work& item) noexcept {
  return enqueue(extra_->resumed, item);
}

bool cell::enqueue(intrusive_list<work>& list, work& item) noexcept {
  bool post = false;
  {
    const std::lock_guard hold(guard_);
    if (terminated_.load(relaxed)) return false;  // written under guard_
    list.push_back(item);
    has_urgent_.store(true, relaxed);  // relaxed: read again under guard_
    post = mark_scheduled();
  }
  if (post) on_->post(*this);
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

void cell::report_lost(const envelope& e) const noexcept {
  system_.lost(*this, e, loss::ended);
}

// ---- waiting senders

bool capacity_wait::ready() const noexcept {
  // relaxed: only a hint.
  return receiver_.begun_.load(relaxed) != begun_before_;
}

bool capacity_wait::attempt() noexcept {
  cell::offered o;
  {
    const std::lock_guard hold(receiver_.guard_);
    o = receiver_.offer(letter_);
    begun_before_ = receiver_.begun_.load(relaxed);
  }
  return finish(o);
}

bool capacity_wait::finish(const cell::offered& o) noexcept {
  if (o.must_post) receiver_.on_->post(receiver_);
  if (o.result == status::full) return false;
  place_.result = o.result;
  return true;
}

enlisted capacity_wait::enlist(waiter& waiting) noexcept {
  cell::offered o;
  {
    const std::lock_guard hold(receiver_.guard_);
    // The turn may begin its next message without seeing this waiter, and this thread without
    // seeing that begin. The turn then sees the waiter under guard_, before it ends or its thread
    // sleeps.
    o = receiver_.offer(letter_);
    if (o.result == status::full) {
      place_.letter = &letter_;
      const enlisted joined = link_waiter(receiver_.waiting_senders_, place_, waiting);
      receiver_.has_waiting_senders_.store(!receiver_.waiting_senders_.empty(), relaxed);
      return joined;
    }
  }
  (void)finish(o);
  return enlisted::finished;
}

void capacity_wait::retract() noexcept {
  const std::lock_guard hold(receiver_.guard_);
  if (place_.linked()) place_.unlink();
  receiver_.has_waiting_senders_.store(!receiver_.waiting_senders_.empty(), relaxed);
}

void cell::admit_senders() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  if (!waiting_senders_.empty()) admit_senders(wakes);
}

void cell::admit_senders(wake_batch& wakes) noexcept {
  begun_seen_ = begun_.load(relaxed);  // relaxed: written by this turn
  while (counted_ - begun_seen_ < capacity_) {
    auto* const first = claim_front<sender_node>(waiting_senders_);
    if (first == nullptr) break;
    ++counted_;
    append(*first->letter);
    first->result = status::ok;
    wakes.add(*first->waiting);
  }
  has_waiting_senders_.store(!waiting_senders_.empty(), relaxed);
}

void cell::close_intake() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  closed_ = true;
  while (auto* const first = claim_front<sender_node>(waiting_senders_)) {
    first->result = status::closed;
    wakes.add(*first->waiting);
  }
  has_waiting_senders_.store(false, relaxed);
}

// ---- passivation

std::uint32_t cell::accepted() const noexcept {
  const std::lock_guard hold(guard_);
  return counted_;
}

bool cell::is_idle() const noexcept {
  if (!can_take() || tasks_ > 0 || is_draining_ || !taken_.empty()) return false;
  if (extra_ != nullptr && extra_->stashed > 0) return false;
  const std::lock_guard hold(guard_);
  return !has_messages();
}

bool cell::close_if_empty() noexcept {
  if (mode_ != mode::running || is_draining_ || !taken_.empty()) return false;
  const std::lock_guard hold(guard_);
  if (has_messages() || !waiting_senders_.empty()) return false;
  closed_ = is_ending_ = true;
  return true;
}

// ---- turns

void cell::run() noexcept {
  if (has_report()) return parent_->handle_report(*this);
  turn();
}

void cell::turn() noexcept {
  take_turn();
  // The in_turn scope has ended: once the parent has the report, another thread may destroy this
  // cell, so this thread must not use it when it goes to sleep.
  if (!has_report()) return finish_turn();
  admit_senders();
  if (parent_ == nullptr) {
    system_.ended().set();
  } else {
    (void)parent_->post(*this);  // the parent outlives its children
  }
}

void cell::take_turn() noexcept {
  in_turn here(*this);
  if (mode_ != mode::running) [[unlikely]]
    apply_parent_order();
  std::uint32_t resumptions = per_turn_;
  for (std::uint32_t left = per_turn_;;) {
    if (has_urgent_.load(relaxed)) [[unlikely]]
      run_control(resumptions);
    if (has_report()) [[unlikely]]
      break;
    if (extra_ != nullptr && !is_exclusive_ && grant_exclusive()) continue;
    if (!can_take() || left == 0) break;
    envelope* const e = next();
    if (e == nullptr) {
      if (!is_draining_ || tasks_ > 0) break;  // started coroutines finish first
      begin_stop(stop_mode::drain);
      continue;
    }
    --left;
    begin(*e, here);
    handle(*e);
  }
}

// Runs all control items and up to `resumptions` coroutines. Stops when there is a report for the
// parent: the remaining items run later.
void cell::run_control(std::uint32_t& resumptions) noexcept {
  while (!has_report()) {
    work* item = nullptr;
    {
      const std::lock_guard hold(guard_);
      if (!control_.empty()) {
        item = &control_.pop_front();
      } else if (resumptions > 0 && has_resumed()) {
        item = &extra_->resumed.pop_front();
        --resumptions;
      } else {
        has_urgent_.store(!lanes_[0].empty() || has_resumed(), relaxed);
        return;
      }
    }
    item->run();
  }
}

// Must hold guard_.
bool cell::has_resumed() const noexcept {
  return extra_ != nullptr && !extra_->resumed.empty();
}

bool cell::grant_exclusive() noexcept {
  if (extra_->exclusive_waiters.empty()) return false;
  is_exclusive_ = true;
  extra_->exclusive_waiters.pop_front().run();
  return true;
}

envelope* cell::next() noexcept {
  const bool is_fair_turn = ++ticks_ % fair_turn == 0;
  if (has_urgent_.load(relaxed) && !is_fair_turn) [[unlikely]] {
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
    decay_contention();
    taken_.prepend(lanes_[1]);
    return taken_.pop_linked();
  }
  if (envelope* const low = lanes_[2].pop_front()) return low;
  return lanes_[0].pop_front();
}

void cell::begin(envelope& e, in_turn& here) noexcept {
  if (!e.is_counted) return;
  const std::uint32_t now = begun_.load(relaxed) + 1;
  begun_.store(now, sluice::release);  // release: pairs with the acquire in has_capacity
  // relaxed: a waiter missed here is seen under guard_, at the latest when the turn ends.
  if (has_waiting_senders_.load(relaxed)) [[unlikely]]
    here.add_free_slot(now, std::max(capacity_ / 16, 1U));
}

void cell::handle(envelope& e) noexcept {
  actor_observer* const observer = system_.observer();
  if (observer == nullptr) [[likely]] {
    try {
      e.ops->handle(*this, e);
    } catch (...) {
      fail(std::current_exception());
    }
    return;
  }
  const message_mark message{e.ops->type, e.note};
  observer->begun(id_, message.type, message.note);
  const handling before = std::exchange(current_handling, {this, message});
  try {
    e.ops->handle(*this, e);
  } catch (...) {
    fail(std::current_exception());
  }
  current_handling = before;
  if (!is_exclusive_) observer->handled(id_, message.type, message.note);
}

void cell::finish_turn() noexcept {
  wake_batch wakes;
  {
    const std::lock_guard hold(guard_);
    if (!waiting_senders_.empty()) [[unlikely]]
      admit_senders(wakes);
    const bool has_more =
        !control_.empty() || has_resumed() ||
        (can_take() && ((is_draining_ && tasks_ == 0) || !taken_.empty() || has_messages()));
    if (!has_more) {
      decay_contention();
      scheduled_ = false;
      return;
    }
  }
  on_->post(*this);
}

// ---- coroutines of handlers

void cell::task_ended() noexcept {
  --tasks_;
  if (mode_ == mode::retiring || mode_ == mode::stopping) continue_ending();
}

// While `handle` is running, it reports `handled` itself when it returns. An empty type: the task
// was no message.
void cell::release_exclusive(const message_mark& message) noexcept {
  is_exclusive_ = false;
  actor_observer* const observer = system_.observer();
  if (observer == nullptr || current_handling.receiver == this || message.type.empty()) return;
  observer->handled(id_, message.type, message.note);
}

void cell::report_resumed(const message_mark& message) noexcept {
  actor_observer* const observer = system_.observer();
  if (observer == nullptr || current_handling.receiver == this) return;
  observer->resumed(id_, message.type, message.note);
}

void cell::wait_for_exclusive(work& item) {
  extra().exclusive_waiters.push_back(item);
}

const std::stop_token& cell::task_token() {
  cell_extra& x = extra();
  if (!x.stop.stop_possible()) {
    x.stop = std::stop_source();
    x.token = x.stop.get_token();
  }
  return x.token;
}

void cell::unstash(envelope_list& stash) noexcept {
  taken_.prepend(stash);
}

}  // namespace sluice::detail
