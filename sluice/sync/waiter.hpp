#pragma once

// The one thing that waits. Every lock, queue, channel and future of the library puts a `waiter`
// into its list and leaves the rest (deadline, stop, waking, coroutine or thread) to this header.
//
// A waiter is one wait of one party: a parked thread, a suspended coroutine, or a callback. It
// stands in one list through one `wait_node`, or, for a select, in several. Exactly one of these
// ends it, decided by one compare-and-swap: a notifier (`try_claim`), the deadline, or the stop
// token (`end`). So a wait that timed out or was stopped was not served, and a wait that was
// served did not time out.
//
// Rules for a primitive:
// - it guards its list by its own spin_lock, and links, commits and claims under it;
// - whoever claims takes the node out of the list, fills in what the waiter waited for while the
//   lock is held, and adds it to a `wake_batch`, which wakes after the lock is released: when the
//   woken party runs, the notifier no longer touches the primitive, so it may be destroyed;
// - the waiter itself takes its node out after it timed out or was stopped, under the lock.
//
// Cost: no allocation; a waiter lives on the stack or in the coroutine's frame. Waking a thread
// that still spins costs no system call.

#include <cstdint>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice {

// When a wait gives up: never, at a deadline, when asked to stop, or at whichever comes first.
// Written as `deadline::after(1s)`, `token`, or `{deadline::after(1s), token}`. It has constructors
// because g++ 12 destroys an aggregate temporary twice when it stands in a co_await expression.
// They also know where they were written, so that a wait can be shown with its place.
struct wait_limits {
  wait_limits(call_site where = {}) noexcept : at(where) {}
  wait_limits(sluice::deadline until, std::stop_token asked = {}, call_site where = {}) noexcept
      : deadline(until), stop(std::move(asked)), at(where) {}
  wait_limits(std::stop_token asked, call_site where = {}) noexcept
      : stop(std::move(asked)), at(where) {}

  sluice::deadline deadline{};
  std::stop_token stop{};
  call_site at;
};

class waiter;

// A waiter's place in one list.
class wait_node : public list_hook {
 public:
  waiter* who = nullptr;
};

using wait_list = intrusive_list<wait_node>;

class waiter {
 public:
  // arming    being set up; may be ended, is never woken
  // waiting   in its lists; whoever ends it must wake it
  // claimed   a notifier has won, and wakes it when all is filled in
  // timed_out the deadline has won
  // stopped   the stop_token has won
  enum class state : std::uint32_t { arming, waiting, claimed, timed_out, stopped };

  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  // Threads may be woken to try again, which lets a running thread go first; the others are
  // always handed what they wait for.
  bool is_thread() const noexcept { return is_thread_; }

  // Owner, under the lock, after linking. False: it was ended while arming; unlink it again.
  bool commit() noexcept { return move(state::arming, state::waiting); }

  // Notifier, under the lock. True: this notifier alone must now serve and wake it.
  bool try_claim(wait_node& through) noexcept {
    if (!move(state::waiting, state::claimed)) return false;
    winner_ = &through;
    return true;
  }

  // Deadline and stop. True: the caller has ended the wait and must wake it.
  bool end(state why) noexcept {
    for (auto seen = state_.load(relaxed);;) {
      if (seen != state::waiting && seen != state::arming) return false;
      const bool was_waiting = seen == state::waiting;
      // The owner may commit in between: then it is looked at again.
      if (state_.compare_exchange_weak(seen, why, acq_rel, relaxed)) return was_waiting;
    }
  }

  void wake() noexcept { wake_(*this); }

  // Owner, once woken.
  state ended_by() const noexcept { return state_.load(acquire); }
  wait_node* winner() const noexcept { return winner_; }
  void rearm() noexcept {
    winner_ = nullptr;
    state_.store(state::arming, relaxed);  // the owner alone sees it: it is in no list
  }

 protected:
  using wake_function = void (*)(waiter&) noexcept;
  waiter(wake_function how, bool is_thread) noexcept : wake_(how), is_thread_(is_thread) {}
  ~waiter() = default;

 private:
  friend class wake_batch;

  bool move(state from, state to) noexcept {
    // acq_rel: what the winner wrote before is seen by the owner in ended_by, and the other way.
    return state_.compare_exchange_strong(from, to, acq_rel, acquire);
  }

  atomic<state> state_{state::arming};
  const wake_function wake_;
  const bool is_thread_;
  wait_node* winner_ = nullptr;      // written by the claimer, read by the owner once woken
  waiter* next_to_wake_ = nullptr;   // owned by the batch of the claimer
};

// Claimed waiters that are woken when this goes out of scope. Declare it before the lock guard: it
// is then destroyed after the lock is released. A coroutine that is to be resumed right here runs
// when all the others are woken, because it may take long, or wait for one of them.
class wake_batch {
 public:
  wake_batch() = default;
  wake_batch(const wake_batch&) = delete;
  wake_batch& operator=(const wake_batch&) = delete;
  ~wake_batch() {
    if (first_ != nullptr) [[unlikely]] wake_all();
  }

  void add(waiter& claimed) noexcept {
    claimed.next_to_wake_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_to_wake_) = &claimed;
    last_ = &claimed;
  }

 private:
  void wake_all() noexcept;

  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

// What became of an attempt to join a list.
enum class enlisted : std::uint8_t {
  waiting,   // linked and committed: wait to be woken
  finished,  // there was no need to wait
  ended,     // a limit ended it before it was committed; it is in no list
};

// Owner, under the lock: joins the list at the back (or, to keep an earlier place, the front).
enum class list_end : std::uint8_t { back, front };
inline enlisted join(wait_list& list, wait_node& node, waiter& who,
                     list_end where = list_end::back) noexcept {
  node.who = &who;
  if (where == list_end::back) {
    list.push_back(node);
  } else {
    list.push_front(node);
  }
  if (who.commit()) return enlisted::waiting;
  node.unlink();
  return enlisted::ended;
}

// Takes waiters off the front of a list until one can be claimed. Null: there is none.
// Those that were ended by their deadline or stop in the meantime are merely unlinked.
template <class Node = wait_node>
Node* claim_front(wait_list& list) noexcept {
  while (!list.empty()) {
    auto& node = static_cast<Node&>(list.pop_front());
    if (node.who->try_claim(node)) return &node;
  }
  return nullptr;
}

// Told when its thread is about to sleep in a wait of the library, and when it has been woken. So
// a pool learns that one of its threads is held up, whatever it waits for, and can put another one
// in its place. It must not wait itself. A thread that only spins is not asleep.
class sleep_observer {
 public:
  virtual void falls_asleep() noexcept = 0;
  virtual void woke_up() noexcept = 0;
  // It is about to wait in another way: it does other work until what it waits for is there.
  virtual void helps_out() noexcept {}
  // For whom the thread works meanwhile, as whoever watches knows it; nobody: for itself. And the
  // observer in whose place this one is. Any thread asks, while this one sleeps.
  virtual watch::party acts_for() const noexcept { return {}; }
  virtual const sleep_observer* around() const noexcept { return nullptr; }

 protected:
  ~sleep_observer() = default;
};
// Sets the calling thread's observer (null: none) and returns the one before.
sleep_observer* observe_sleep(sleep_observer* observer) noexcept;
const sleep_observer* this_sleep_observer() noexcept;  // null: none
void tell_of_helping() noexcept;  // the calling thread's, if there is one

// A thread that waits. The primitive links it (see wait.hpp for the loop around it).
//
// Several of them may exist on one thread: a wait that has joined its list may run a coroutine
// before it sleeps, and that one may wait in turn. They share the thread's parker, so each also has
// a flag of its own, and a token says no more than "look again".
class thread_waiter final : public waiter {
 public:
  thread_waiter() noexcept : waiter(&unpark, true), parker_(seam::this_parker()) {}

  void rearm() noexcept {
    waiter::rearm();
    woken_.store(false, relaxed);  // the owner alone sees it: it is in no list
  }

  // Call once committed. Looks so many times, with a pause after each; true: it was woken.
  bool spin(std::uint32_t times) noexcept;
  // Call once committed. Sleeps until claimed, or until a limit ends the wait.
  state park(const wait_limits& limits) noexcept;

 private:
  static void unpark(waiter& self) noexcept {
    auto& me = static_cast<thread_waiter&>(self);
    seam::parker& sleeper = me.parker_;
    // release: pairs with the acquire in is_woken. From here on `me` may be gone; the parker stays.
    me.woken_.store(true, release);
    sleeper.unpark();
  }
  bool is_woken() const noexcept { return woken_.load(acquire); }
  void sleep(const deadline& until) noexcept;
  void sleep_until_woken() noexcept {
    while (!is_woken()) parker_.park();
  }

  seam::parker& parker_;
  atomic<bool> woken_{false};
};

}  // namespace sluice
