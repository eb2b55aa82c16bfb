#pragma once

// What an actor is beside its state: mailbox, turn, place in the tree, life.
//
// A cell is one piece of `work`. It stands in its executor's line while it has something to do, and
// nowhere otherwise. Where it stands is always known from `scheduled_` and `mode_`:
//   scheduled_ false                      idle: whoever brings something posts it
//   scheduled_ true, mode_ running ...    in its executor's line, or in its turn
//   scheduled_ true, mode_ failed, retired, renewed, over   in its parent's control list: it has
//                                         something to say to the parent (`run` says it there)
//   scheduled_ true, mode_ suspended      nowhere: the parent has heard of it, and decides; then it
//                                         sets mode_ and posts it
// So one hook is enough, and no message about life and death is ever allocated.
//
// Four lists bring work in, all under guard_: the lanes (messages), `control_` (orders about its
// life: never bounded, never refused), `extra_->resumed` (coroutines of its handlers that go on),
// and `room_` (senders that wait). In its turn it does all that control_ has, as many resumptions
// as messages at most, so that a coroutine that yields again and again does not keep the thread,
// and messages. It takes them out of a lane all at once; `begun_` says how many of those that were
// counted in have been begun, so that the bound is exact although the lock is not taken for each.
//
// Refs count the cell, not the actor: the state dies when the actor ends, the cell with its last
// ref. A living actor counts as one.

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_end.hpp"
#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/actor_state.hpp"
#include "sluice/actor/detail/cell_parts.hpp"
#include "sluice/actor/detail/envelope.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

class system_core;
class cell_extra;
class room_wait;
class cell;
class in_turn;
class place_line;
struct watcher;
using cell_ptr = counted_ptr<cell>;

class cell : public work, private child_hook {
 public:
  enum class mode : std::uint8_t {
    running,
    failed,     // tells its parent, and takes nothing
    suspended,  // the parent has heard, and has not decided
    resuming,   // goes on, and lets its children go on
    retiring,   // for a restart: ends its coroutines and children, then its state
    retired,    // tells its parent that the state is gone
    cooling,    // without a state, until its parent has it made anew; can be stopped
    renewed,    // tells its parent that there is one again
    stopping,   // ends its coroutines and children, then its state
    over,       // tells its parent; then there are only refs
  };

  // ---- any thread

  void add_ref() noexcept { refs_.fetch_add(1, relaxed); }  // from one that exists
  void release() noexcept {
    // acq_rel: the last one sees what all others did before they let go.
    if (refs_.fetch_sub(1, acq_rel) == 1) delete this;
  }

  // Null limits: without waiting. The envelope is the cell's if it says ok or dropped.
  status send(envelope& e, const wait_limits* limits);
  // Is taken whatever the bound says. False: the actor has ended; the envelope is a dead letter.
  bool send_uncounted(envelope& e) noexcept;
  // False: the actor has ended; nothing happens.
  bool post(work& item) noexcept;
  // The same for a coroutine of a handler.
  bool resume(work& item) noexcept;
  bool call(unique_function<void()> f);
  // By its parent, or it is a failure if it is permanent.
  void request_stop(stop_how how) noexcept;

  // A message that nobody will handle.
  void lose(envelope& e, loss why) noexcept;

  bool is_over() const noexcept { return over_.load(acquire); }
  actor_id id() const noexcept { return id_; }
  std::string name() const;
  // The names of all above it and its own, as in "/lobby/garden/anna". Where dead letters are not
  // told, those above one that is over are left out.
  std::string path() const;
  // As whoever watches (sluice::inspect) knows it. Its name is told with the first of these.
  watch::party as_party() const noexcept;
  // The same, but told only from its own turn: any other thread may hold what names wait for.
  watch::party acting_party() const noexcept;
  virtual std::string_view type() const noexcept = 0;
  system_core& system() const noexcept { return system_; }
  cell* parent() const noexcept { return parent_; }
  executor& runs_on() const noexcept { return *on_; }
  // Messages that wait.
  std::size_t queued() const noexcept;
  // The same, and one more while it is at work or waits for its turn.
  std::size_t load() const noexcept;
  // Messages that it has begun, ever (modulo 2^32); those that do not count against the bound are
  // not in it. relaxed: a number to compare with an older one.
  std::uint32_t begun() const noexcept { return begun_.load(relaxed); }
  std::size_t waiting() const noexcept;  // senders
  // How long senders wait for one another, in steps: 0 is least. relaxed: a number to look at.
  std::uint32_t patience() const noexcept { return crowd_.load(relaxed); }
  actor_state state() const noexcept;
  std::uint32_t restarts() const noexcept;  // how often it has been made anew

  // ---- in the actor's own turn

  // Of the actor in whose turn this thread is, for what that sends to this one; 0: none of this
  // system.
  actor_id sender() const noexcept;
  // The actor whose turn this thread is in, or null.
  static cell* current() noexcept;
  bool is_in_turn_here() const noexcept;  // this one's, or one around that
  // What that handles on this thread; empty without an observer, and in resumed coroutines.
  static message_mark current_mark() noexcept;
  // An urgent message or an order has come: for handlers that run long.
  bool is_poked() const noexcept { return poked_.load(relaxed); }

  void set_extra(std::unique_ptr<cell_extra> x) noexcept;  // before begin_life
  cell_extra& extra();
  cell_extra* extra_if_any() const noexcept { return extra_.get(); }
  void fail(std::exception_ptr why) noexcept;
  // For a reason that is not its own: one that is just being made anew fails when it is there
  // again.
  void fail_once_there(std::exception_ptr why) noexcept;
  // Coroutines of handlers. One that has the floor keeps the next message out.
  void task_began() noexcept { ++tasks_; }
  void task_ended() noexcept;
  void take_floor() noexcept { held_ = true; }
  void give_floor(const message_mark& on) noexcept;
  void tell_resumed(const message_mark& on) noexcept;
  bool is_held() const noexcept { return held_; }
  void wait_for_floor(work& item);
  const std::stop_token& task_token();

  // False: it ends, and takes no children. Also from other threads, for the system's root.
  bool adopt(cell& child) noexcept;
  std::vector<cell*> children() const;  // with a reference each; any thread
  // The same, but no more than so many.
  std::vector<cell_ptr> eldest_children(std::size_t limit) const;
  std::size_t child_count() const noexcept;  // any thread
  // For a child that is over: false if this one, in whose turn it is, has heard of that and lists
  // it no more. Else it tells the watcher when it does.
  bool tell_when_heard(cell& child, watcher& w);
  bool is_behaving() const noexcept { return behaves_; }
  void set_behaving(bool b) noexcept { behaves_ = b; }
  // A coroutine whose send said so may wait for room: it holds up no thread, and so no turn but the
  // one that it is in itself, or the one that makes its actor.
  bool lets_wait(status how) const noexcept;
  void note_lost(const envelope& e) const noexcept;
  // For a letter that waited for room when the actor ended: the successor's, beyond the bound.
  // False: there is none; the letter is still the caller's.
  bool pass_on(envelope& e);
  // Empty: it takes messages, or there is none; or `how` says full: there is no place for one.
  cell_ptr successor_if_closed(status& how);
  // Where a coroutine waits for that. Null: it does not come back.
  virtual place_line* places() noexcept { return nullptr; }
  // Runs it in this actor's turn, after so long, unless the actor ends, is made anew or cancels it.
  // It gets the number that is given here, which stands for it until it is cancelled: also by the
  // call itself.
  using timed_call = unique_function<void(std::uint64_t number)>;
  std::uint64_t call_after(std::chrono::nanoseconds wait, timed_call f);
  bool cancel_call(std::uint64_t number) noexcept;
  bool is_timed(std::uint64_t number) const noexcept;  // called for, and not cancelled
  // From inside such a call: again, under the same number.
  void call_again(std::uint64_t number, std::chrono::nanoseconds wait, timed_call f);
  actor_end how_it_ended() const;
  // Stashed messages are first in line again.
  void unstash(envelope_list& those) noexcept;
  mode life() const noexcept { return mode_; }

  // ---- for those that rest and come back (keyed_life.hpp)

  // Messages that were counted in, ever (modulo 2^32). Any thread.
  std::uint32_t accepted() const noexcept;
  // In its own turn. True: it runs, no handler is in the middle of a message, and none waits.
  bool is_idle() const noexcept;
  // In its own turn. True: nothing waits, and from now on nothing is taken. False: something does,
  // and everything is as it was.
  bool close_if_empty() noexcept;
  // In its own turn: begins to stop; those who asked hear this reason, the rest are dead letters.
  void refuse_messages(const std::exception_ptr& why) noexcept;

 protected:
  cell(system_core& system, cell* parent, executor& on, const actor_options& o);
  virtual ~cell();

  // For whoever spawns it, before anybody else knows it: makes the state. If that throws, the actor
  // ends by itself.
  void begin_life();

  // Makes the state, in the actor's turn; may throw. Ends it.
  virtual void construct() = 0;
  virtual void destroy() noexcept = 0;
  virtual void tell_stopping() noexcept = 0;
  // Its ending has begun; its children are there still.
  virtual void ending_begins(stop_how) noexcept {}
  // All has ended but its state. False: not before a task (`task_began`) that this has started.
  virtual bool ready_to_end() noexcept { return true; }
  // Of one that `comes_back`, once it takes nothing any more: who takes its messages now. Any
  // thread. Empty: nobody, and never again.
  virtual cell_ptr successor();
  // The same where a new one may have to wait for room in memory; null limits: it does not. Empty:
  // `how` says why, or ok if there is nobody.
  virtual cell_ptr successor_within(const wait_limits* limits, status& how);
  // For the constructor: what is sent to one that has ended goes to its successor; and it may be
  // sent to before begin_life.
  void come_back() noexcept { comes_back_ = scheduled_ = true; }
  // Once, before begin_life: extra().name is its name.
  void set_named() noexcept { has_name_ = true; }

 private:
  friend class system_core;
  friend class intrusive_list<child_hook>;
  static cell& of(child_hook& h) noexcept { return static_cast<cell&>(h); }
  child_hook& sibling() noexcept { return *this; }
  friend class sluice::detail::room_wait;
  friend class sluice::detail::in_turn;
  static constexpr std::uint32_t fair_turn = 32;

  struct offered {
    status::code how;
    bool must_post;
    envelope* victim;  // dropped for it
  };

  // Under guard_. Reads the turn's counter only when there seems to be no room: that is in a cache
  // line that the turn writes with every message.
  bool has_room() noexcept {
    if (counted_ - begun_seen_ < capacity_) return true;
    begun_seen_ = begun_.load(acquire);  // acquire: pairs with the release in `begin`
    return counted_ - begun_seen_ < capacity_;
  }
  void lock_for_send() noexcept;
  void be_less_patient() noexcept;
  void tell_name(watch::party who) const noexcept;
  void tell_over() const noexcept;
  offered offer(envelope& e) noexcept;
  offered offer_when_full(envelope& e) noexcept;
  void note_sent(envelope& e) const noexcept;
  status sent_slowly(envelope& e, status::code how, envelope* victim, const wait_limits* limits);
  void append(envelope& e) noexcept;
  bool must_post() noexcept { return !std::exchange(scheduled_, true); }
  bool has_messages() const noexcept {
    return !lanes_[0].empty() || !lanes_[1].empty() || !lanes_[2].empty();
  }

  void run() noexcept override;
  void turn() noexcept;
  void take_turn() noexcept;
  bool has_something_to_tell() const noexcept {
    return mode_ == mode::failed || mode_ == mode::retired || mode_ == mode::renewed ||
           mode_ == mode::over;
  }
  bool grant_floor() noexcept;
  bool may_take() const noexcept { return mode_ == mode::running && !held_; }
  void attend(std::uint32_t& resumptions) noexcept;
  bool has_resumed() const noexcept;
  bool bring(intrusive_list<work>& to, work& item) noexcept;
  envelope* next() noexcept;
  void begin(envelope& e, in_turn& here) noexcept;
  void handle(envelope& e) noexcept;
  void let_in() noexcept;  // senders that wait for room, as many as there is room for
  void let_in(wake_batch& wakes) noexcept;
  void leave() noexcept;
  // A parent's, when a child's turn to speak has come.
  void hear(cell& child) noexcept;

  // Life, in cell_life.cpp.
  void follow_parent() noexcept;  // what the parent has set mode_ to
  void begin_renew() noexcept;
  void begin_retire() noexcept;
  void begin_stop(stop_how how) noexcept;
  void go_on_ending() noexcept;
  void stop_tasks() noexcept;
  void close_intake() noexcept;
  void finish_state() noexcept;
  void finish() noexcept;
  void keep_path();
  void lose_messages() noexcept;
  void leave_executor() noexcept;
  void tell_end(std::vector<watcher>& those) const noexcept;
  void order_stop(stop_how how) noexcept;
  bool is_told_by_parent() const noexcept;
  bool stop_last_child() noexcept;
  void child_failed(cell& child) noexcept;
  void decide(cell& child) noexcept;
  void decide_next() noexcept;
  static directive at_restart(const cell& child) noexcept;
  const supervision& supervises() const noexcept;
  bool may_restart() noexcept;
  std::chrono::nanoseconds backoff_of(cell& child) noexcept;
  void restart(cell& child) noexcept;
  void restart_step() noexcept;
  void take_down(cell& child) noexcept;
  void renew_after(cell& child, std::chrono::nanoseconds wait) noexcept;
  void renew_child(cell& child) noexcept;
  void child_retired(cell& child) noexcept;
  void child_settled(cell& child) noexcept;
  void child_over(cell& child) noexcept;
  void tell_parents_watches(cell& child) noexcept;
  void leave_round(cell& child) noexcept;
  void go_on_if_ending() noexcept;
  void let_children_go_on() noexcept;
  void set_going(cell& child, mode next) noexcept;

  // Senders' side: protected by guard_ unless it says otherwise.
  atomic<std::uint32_t> refs_{1};
  mutable spin_lock guard_;
  std::uint32_t counted_ = 0;     // messages that were counted in, ever (modulo 2^32)
  std::uint32_t begun_seen_ = 0;  // begun_, as it was once
  const std::uint32_t capacity_;
  const overflow overflow_;
  const child_kind kind_;
  bool scheduled_ = false;
  bool closed_ = false;  // takes no messages any more
  bool ends_ = false;    // nor what is not counted
  bool no_children_ = false;
  bool is_remade_ = false;         // from the end of one state until the next one is there
  atomic<bool> over_{false};       // written under guard_
  bool takes_all_ = true;          // constant: of what is in the normal lane, or one at a time
  atomic<std::uint8_t> crowd_{0};  // how long senders wait for one another, see lock_for_send
  const std::uint16_t per_turn_;   // constant
  envelope_list lanes_[3];
  wait_list room_;

  intrusive_list<work> control_;

  // The actor's side: its own turn alone touches them, but for the atomics.
  executor* on_;
  envelope_list taken_;
  // Counted messages that were begun. Written by the turn alone; senders read it when it looks
  // full.
  atomic<std::uint32_t> begun_{0};
  atomic<bool> poked_{false};        // control_, resumed or the urgent lane has something
  atomic<bool> wanted_room_{false};  // room_ has something
  mode mode_ = mode::running;
  bool held_ = false;     // a coroutine keeps the next message out
  bool behaves_ = false;  // become: extra_ has handlers
  bool drains_ = false;   // ends when the mailbox is empty
  bool has_state_ = false;
  stop_how how_ = stop_how::now;  // of its stopping
  bool has_name_ = false;         // constant: extra_ has it
  bool comes_back_ = false;       // constant: it has a successor
  mutable atomic<bool> has_told_name_{false};
  std::uint8_t ticks_ = 0;      // for the fairness between lanes
  std::uint32_t tasks_ = 0;     // coroutines of handlers that have not ended
  std::uint32_t restarts_ = 0;  // protected by guard_
  std::unique_ptr<cell_extra> extra_;

  system_core& system_;
  cell* const parent_;
  // Its child_hook is protected by the parent's guard_.
  bool is_with_parent_ = false;    // the parent's: it has heard of it and has not let it go on
  bool is_asked_ = false;          // the parent's: to stop
  bool is_cooling_ = false;        // the parent's: it is to be made anew later
  std::uint32_t child_count_ = 0;  // protected by guard_, as children_
  intrusive_list<child_hook> children_;
  const actor_id id_;
};

executor& executor_of(system_core& system) noexcept;

}  // namespace sluice::detail
