#pragma once

// Everything of an actor but its state: mailbox, turn, position in the tree, life cycle.
//
// A cell is one piece of `work`. It is queued in its executor while it has something to do, and
// nowhere otherwise. `scheduled_` and `mode_` determine the queue:
//   scheduled_ false                      idle: the next producer posts it
//   scheduled_ true, mode_ running ...    in its executor's queue, or in its turn
//   scheduled_ true, mode_ failed, retired, recreated, terminated
//                                         in its parent's control list, to report (see `run`)
//   scheduled_ true, mode_ suspended      nowhere: the parent has the report and decides; it then
//                                         sets mode_ and posts the cell
// So one hook is enough, and no message about the life cycle is ever allocated.
//
// Work arrives in four lists, all protected by guard_: the lanes (messages), `control_` (orders
// about its life cycle: unbounded, never rejected), `extra_->resumed` (coroutines of its handlers
// that are ready), and `waiting_senders_`. A turn runs all of control_, at most as many resumptions
// as messages, so that a coroutine that yields in a loop does not keep the thread, and messages. It
// takes a whole lane at once; `begun_` counts the bounded messages that have begun, so the bound is
// exact although the lock is not taken for each message.
//
// Refs count the cell, not the actor: the state is destroyed when the actor ends, the cell with its
// last ref. A live actor counts as one ref.

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
class capacity_wait;
class cell;
class in_turn;
class place_queue;
struct watcher;
using cell_ptr = counted_ptr<cell>;

class cell : public work, private child_hook {
 public:
  enum class mode : std::uint8_t {
    running,
    failed,      // reports to its parent; handles nothing
    suspended,   // the parent has the report, and has not decided
    resuming,    // allowed to continue; resumes its children
    retiring,    // for a restart: ends its coroutines and children, then its state
    retired,     // reports to its parent that the state is destroyed
    cooling,     // without a state, until the parent orders a new one; can be stopped
    recreated,   // reports to its parent that it has a state again
    stopping,    // ends its coroutines and children, then its state, for good
    terminated,  // reports to its parent; afterwards only refs remain
  };

  // ---- any thread

  void add_ref() noexcept { refs_.fetch_add(1, relaxed); }  // from an existing ref
  void release() noexcept {
    // acq_rel: the last release sees everything that the other holders did before theirs.
    if (refs_.fetch_sub(1, acq_rel) == 1) delete this;
  }

  // Null limits: never waits. The cell owns the envelope if it returns ok or dropped.
  status send(envelope& e, const wait_limits* limits);
  // Accepts the message beyond the bound. Returns false if the actor has ended; the envelope is
  // then a dead letter.
  bool send_uncounted(envelope& e) noexcept;
  // Returns false, without effect, if the actor has terminated.
  bool post(work& item) noexcept;
  // Queues a ready coroutine of a handler; otherwise as `post`.
  bool resume(work& item) noexcept;
  bool call(unique_function<void()> f);
  // Stops the actor. A permanent actor fails instead unless its parent calls.
  void request_stop(stop_mode order) noexcept;

  // Reports and drops a message that will not be handled.
  void lose(envelope& e, loss why) noexcept;

  bool is_terminated() const noexcept { return terminated_.load(acquire); }
  actor_id id() const noexcept { return id_; }
  std::string name() const;
  // Returns the names of its ancestors and its own, as in "/lobby/garden/anna". If dead letters are
  // not reported, the ancestors of a terminated actor are left out.
  std::string path() const;
  // Its identity in wait reports (sluice::inspect). The first call registers its name.
  wait_report::party as_party() const noexcept;
  // Like as_party, but registers the name only in its own turn: another thread may hold a lock that
  // the registration needs.
  wait_report::party acting_party() const noexcept;
  virtual std::string_view type() const noexcept = 0;
  system_core& system() const noexcept { return system_; }
  cell* parent() const noexcept { return parent_; }
  executor& runs_on() const noexcept { return *on_; }
  // Bounded messages in the mailbox.
  std::size_t queued() const noexcept;
  // queued(), plus one while it is scheduled or in its turn.
  std::size_t load() const noexcept;
  // Bounded messages that have begun, ever (modulo 2^32). relaxed: compared with an older value
  // only.
  std::uint32_t begun() const noexcept { return begun_.load(relaxed); }
  std::size_t waiting() const noexcept;  // waiting senders
  // How long colliding senders pause, in steps from 0 (least). relaxed: informative.
  std::uint32_t contention_level() const noexcept { return contention_.load(relaxed); }
  actor_state state() const noexcept;
  std::uint32_t restarts() const noexcept;  // how often it has restarted

  // ---- in the actor's own turn

  // Returns the actor whose turn this thread runs, as the sender of messages to this cell; 0 if it
  // is of another system, or there is no turn.
  actor_id sender() const noexcept;
  // Returns the actor whose turn this thread runs, or null.
  static cell* current() noexcept;
  bool is_in_turn_here() const noexcept;  // this thread is in its turn, innermost or enclosing
  // The message that current() is handling on this thread; empty without an observer and in resumed
  // coroutines.
  static message_mark current_mark() noexcept;
  // An urgent message or an order is queued: for handlers that run long.
  bool has_urgent() const noexcept { return has_urgent_.load(relaxed); }

  void set_extra(std::unique_ptr<cell_extra> x) noexcept;  // before begin_life
  cell_extra& extra();
  cell_extra* extra_if_any() const noexcept { return extra_.get(); }
  void fail(std::exception_ptr why) noexcept;
  // For a failure from outside: an actor that is restarting fails once it has restarted.
  void fail_after_restart(std::exception_ptr why) noexcept;
  // Coroutines of handlers. The holder of the exclusive turn keeps the next message from beginning.
  void task_began() noexcept { ++tasks_; }
  void task_ended() noexcept;
  void acquire_exclusive() noexcept { is_exclusive_ = true; }
  void release_exclusive(const message_mark& message) noexcept;
  void report_resumed(const message_mark& message) noexcept;
  bool is_exclusive() const noexcept { return is_exclusive_; }
  void wait_for_exclusive(work& item);
  const std::stop_token& task_token();

  // Returns false if the actor is ending and accepts no children. Also called by other threads, for
  // the system's root.
  bool adopt(cell& child) noexcept;
  std::vector<cell*> children() const;  // with a reference each; any thread
  // Returns at most `limit` children, the eldest first. Any thread.
  std::vector<cell_ptr> eldest_children(std::size_t limit) const;
  std::size_t child_count() const noexcept;  // any thread
  // Called in the parent's turn for a terminated child. Returns false if the parent has already
  // unlinked it; otherwise keeps `w`, and notifies it after the unlink.
  bool notify_after_unlink(cell& child, watcher& w);
  bool has_behaviour() const noexcept { return has_behaviour_; }
  void set_has_behaviour(bool b) noexcept { has_behaviour_ = b; }
  // Returns whether a coroutine whose send returned `result` may wait for capacity. A handler may
  // not wait for its own actor, and a constructor not for an actor whose turn encloses it: they
  // could not free capacity.
  bool may_wait(status result) const noexcept;
  void report_lost(const envelope& e) const noexcept;
  // For a letter that was waiting for capacity when the actor ended: passes it to the successor,
  // beyond the bound. Without a successor it returns false, and the caller keeps the letter.
  bool pass_to_successor(envelope& e);
  // Returns the successor if this cell is closed. Empty if it is open or has no successor; `result`
  // is full if there is no place in memory for one.
  cell_ptr successor_if_closed(status& result);
  // The queue for a place in memory for the successor. Null: this actor has none.
  virtual place_queue* places() noexcept { return nullptr; }
  // Runs `f` in this actor's turn after `wait`, unless the actor ends, restarts or cancels it. `f`
  // gets the returned number, which stays valid until the call is cancelled, also by `f` itself.
  using timed_call = unique_function<void(std::uint64_t number)>;
  std::uint64_t call_after(std::chrono::nanoseconds wait, timed_call f);
  bool cancel_call(std::uint64_t number) noexcept;
  bool has_timer(std::uint64_t number) const noexcept;  // started, and not cancelled
  // Called by a timed call: runs `f` after `wait` under the same number.
  void call_again(std::uint64_t number, std::chrono::nanoseconds wait, timed_call f);
  actor_end end_info() const;
  // Puts stashed messages back in front of the mailbox.
  void unstash(envelope_list& stash) noexcept;
  mode current_mode() const noexcept { return mode_; }

  // ---- for passivation (keyed_life.hpp)

  // Bounded messages accepted, ever (modulo 2^32). Any thread.
  std::uint32_t accepted() const noexcept;
  // In its own turn. Returns whether it is running, no message is being handled and none is queued.
  bool is_idle() const noexcept;
  // In its own turn. Closes the mailbox and returns true if it is empty and no sender waits;
  // otherwise changes nothing and returns false.
  bool close_if_empty() noexcept;
  // In its own turn: starts to stop. Queued requests fail with `why`; other messages become dead
  // letters.
  void refuse_messages(const std::exception_ptr& why) noexcept;

 protected:
  cell(system_core& system, cell* parent, executor& on, const actor_options& o);
  virtual ~cell();

  // Called by the spawner before the cell is shared: constructs the state. If the constructor
  // throws, the actor ends itself.
  void begin_life();

  // Constructs the state in the actor's turn, and may throw; destroys it.
  virtual void construct() = 0;
  virtual void destroy() noexcept = 0;
  virtual void call_stopping() noexcept = 0;
  // Called when it begins to end; its children still exist.
  virtual void on_ending(stop_mode) noexcept {}
  // Called when everything but the state has ended. Returns false if it started a task
  // (`task_began`) that must end first.
  virtual bool ready_to_end() noexcept { return true; }
  // Returns the cell that takes the messages of a closed cell with `has_successor_`. Any thread.
  // Empty: it has no successor, now and later.
  virtual cell_ptr successor();
  // As successor(), but waits within `limits` for a place in memory; null limits: never waits.
  // Empty: `result` is the reason, or ok if there is no successor.
  virtual cell_ptr successor_within(const wait_limits* limits, status& result);
  // Called by the constructor: messages sent after its end go to its successor, and it accepts
  // messages before begin_life.
  void set_has_successor() noexcept { has_successor_ = scheduled_ = true; }
  // Called once, before begin_life: extra().name is its name.
  void set_named() noexcept { has_name_ = true; }

 private:
  friend class system_core;
  friend class intrusive_list<child_hook>;
  static cell& of(child_hook& h) noexcept { return static_cast<cell&>(h); }
  child_hook& sibling() noexcept { return *this; }
  friend class sluice::detail::capacity_wait;
  friend class sluice::detail::in_turn;
  static constexpr std::uint32_t fair_turn = 32;

  struct offered {
    status::code result;
    bool must_post;
    envelope* victim;  // the message dropped for it
  };

  // Must hold guard_. Reads the turn's counter only if the mailbox seems full: the turn writes that
  // cache line with every message.
  bool has_capacity() noexcept {
    if (counted_ - begun_seen_ < capacity_) return true;
    begun_seen_ = begun_.load(acquire);  // acquire: pairs with the release in `begin`
    return counted_ - begun_seen_ < capacity_;
  }
  void lock_for_send() noexcept;
  void decay_contention() noexcept;
  void report_name(wait_report::party self) const noexcept;
  void report_name_of_terminated() const noexcept;
  offered offer(envelope& e) noexcept;
  offered offer_when_full(envelope& e) noexcept;
  void note_sent(envelope& e) const noexcept;
  status send_slow(envelope& e, status::code result, envelope* victim, const wait_limits* limits);
  void append(envelope& e) noexcept;
  bool mark_scheduled() noexcept { return !std::exchange(scheduled_, true); }
  bool has_messages() const noexcept {
    return !lanes_[0].empty() || !lanes_[1].empty() || !lanes_[2].empty();
  }

  void run() noexcept override;
  void turn() noexcept;
  void take_turn() noexcept;
  bool has_report() const noexcept {
    return mode_ == mode::failed || mode_ == mode::retired || mode_ == mode::recreated ||
           mode_ == mode::terminated;
  }
  bool grant_exclusive() noexcept;
  bool can_take() const noexcept { return mode_ == mode::running && !is_exclusive_; }
  void run_control(std::uint32_t& resumptions) noexcept;
  bool has_resumed() const noexcept;
  bool enqueue(intrusive_list<work>& list, work& item) noexcept;
  envelope* next() noexcept;
  void begin(envelope& e, in_turn& here) noexcept;
  void handle(envelope& e) noexcept;
  void admit_senders() noexcept;  // admits as many waiting senders as fit
  void admit_senders(wake_batch& wakes) noexcept;
  void finish_turn() noexcept;
  // Called in the parent's turn with the report of a child.
  void handle_report(cell& child) noexcept;

  // Life cycle, in cell_life.cpp and cell_children.cpp.
  void apply_parent_order() noexcept;  // applies the mode_ that the parent has set
  void recreate_state() noexcept;
  void begin_retire() noexcept;
  void begin_stop(stop_mode order) noexcept;
  void continue_ending() noexcept;
  void stop_tasks() noexcept;
  void close_intake() noexcept;
  void finish_state() noexcept;
  void finish() noexcept;
  void keep_path();
  void lose_messages() noexcept;
  void release_executor() noexcept;
  void notify_watchers(std::vector<watcher>& watchers) const noexcept;
  void order_stop(stop_mode order) noexcept;
  bool is_ordered_by_parent() const noexcept;
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
  void retire_or_stop(cell& child) noexcept;
  void recreate_after(cell& child, std::chrono::nanoseconds wait) noexcept;
  void recreate_child(cell& child) noexcept;
  void child_retired(cell& child) noexcept;
  void child_done(cell& child) noexcept;
  void child_terminated(cell& child) noexcept;
  void notify_parents_watches(cell& child) noexcept;
  void remove_from_round(cell& child) noexcept;
  void continue_if_ending() noexcept;
  void resume_children() noexcept;
  void release_child(cell& child, mode next) noexcept;

  // Senders' side: protected by guard_ unless noted otherwise.
  atomic<std::uint32_t> refs_{1};
  mutable spin_lock guard_;
  std::uint32_t counted_ = 0;     // bounded messages accepted, ever (modulo 2^32)
  std::uint32_t begun_seen_ = 0;  // an earlier value of begun_
  const std::uint32_t capacity_;
  const overflow overflow_;
  const child_kind kind_;
  bool scheduled_ = false;
  bool closed_ = false;     // accepts no bounded messages
  bool is_ending_ = false;  // accepts no messages at all
  bool no_children_ = false;
  bool is_restarting_ = false;      // its state is destroyed, and not yet recreated
  atomic<bool> terminated_{false};  // written under guard_
  // Constant: takes the normal lane as a whole, else one message at a time
  bool takes_all_ = true;
  atomic<std::uint8_t> contention_{0};  // how long colliding senders pause, see lock_for_send
  const std::uint16_t per_turn_;        // constant
  envelope_list lanes_[3];
  wait_list waiting_senders_;

  intrusive_list<work> control_;

  // The actor's side: touched only in its own turn, except the atomics.
  executor* on_;
  envelope_list taken_;
  // Bounded messages that have begun. Written by the turn only; senders read it if the mailbox
  // seems full.
  atomic<std::uint32_t> begun_{0};
  atomic<bool> has_urgent_{false};           // control_, resumed or the urgent lane is not empty
  atomic<bool> has_waiting_senders_{false};  // waiting_senders_ is not empty
  mode mode_ = mode::running;
  bool is_exclusive_ = false;   // a coroutine has the exclusive turn
  bool has_behaviour_ = false;  // extra_ has handlers set by `become`
  bool is_draining_ = false;    // ends when the mailbox is empty
  bool has_state_ = false;
  stop_mode stop_mode_ = stop_mode::now;  // how it stops
  bool has_name_ = false;                 // constant: extra_ has its name
  bool has_successor_ = false;            // constant: it has a successor after its end
  mutable atomic<bool> has_reported_name_{false};
  std::uint8_t ticks_ = 0;      // messages taken, for fairness between the lanes
  std::uint32_t tasks_ = 0;     // coroutines of handlers that have not ended
  std::uint32_t restarts_ = 0;  // protected by guard_
  std::unique_ptr<cell_extra> extra_;

  system_core& system_;
  cell* const parent_;
  // Its child_hook is protected by the parent's guard_. The next three are the parent's.
  bool is_held_by_parent_ = false;  // the parent has its report, and has not released it
  bool is_stop_ordered_ = false;    // ordered to stop
  bool is_cooling_ = false;         // to be recreated later
  std::uint32_t child_count_ = 0;   // protected by guard_, like children_
  intrusive_list<child_hook> children_;
  const actor_id id_;
};

executor& executor_of(system_core& system) noexcept;

}  // namespace sluice::detail
