#pragma once

// The one waiter of the library. Every lock, queue, channel and future links a `waiter` into its
// list; deadline, stop, waking, and coroutine or thread are handled here.
//
// A waiter is one wait of one party: a parked thread, a suspended coroutine, or a callback. It is
// linked into one list through one `wait_node`, or, for a select, into several. One
// compare-and-swap decides which of these ends it: a notifier (`try_claim`), the deadline, or the
// stop token (`end`). So a wait that timed out or was stopped was not served, and a wait that was
// served did not time out.
//
// Rules for a primitive:
// - it guards its list by its own spin_lock, and links, commits and claims under it;
// - the claimer unlinks the node, fills in the result while it holds the lock, and adds the waiter
//   to a `wake_batch`, which wakes it after the lock is released: when the woken party runs, the
//   notifier no longer accesses the primitive, so the primitive may be destroyed;
// - after a timeout or stop, the waiter unlinks its own node, under the lock.
//
// Cost: no allocation; a waiter lives on the stack or in the coroutine's frame. Waking a thread
// that still spins costs no system call.

#include <cstdint>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/wait_limits.hpp"

namespace sluice {

class waiter;

// A waiter's place in one list.
class wait_node : public list_hook {
 public:
  waiter* waiting = nullptr;
};

using wait_list = intrusive_list<wait_node>;

class waiter {
 public:
  // arming    being set up; may be ended, is never woken
  // waiting   in its lists; the party that ends it must wake it
  // claimed   a notifier has won, and wakes it once the result is filled in
  // timed_out the deadline has won
  // stopped   the stop_token has won
  enum class state : std::uint32_t { arming, waiting, claimed, timed_out, stopped };

  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  // A thread may be woken only to try again, so that a running thread can overtake it. Coroutines
  // and callbacks are always handed the result.
  bool is_thread() const noexcept { return is_thread_; }

  // Called by the owner, under the lock, after linking. Returns false if the wait was ended while
  // arming: the owner must unlink it again.
  bool commit() noexcept { return move(state::arming, state::waiting); }

  // Called by a notifier, under the lock. If it returns true, this notifier alone must serve and
  // wake the waiter.
  bool try_claim(wait_node& through) noexcept {
    if (!move(state::waiting, state::claimed)) return false;
    winner_ = &through;
    return true;
  }

  // Called by the deadline and the stop callback. If it returns true, the caller has ended the wait
  // and must wake it.
  bool end(state why) noexcept {
    for (auto seen = state_.load(relaxed);;) {
      if (seen != state::waiting && seen != state::arming) return false;
      const bool was_waiting = seen == state::waiting;
      // The owner may have committed in between: check the state again.
      if (state_.compare_exchange_weak(seen, why, acq_rel, relaxed)) return was_waiting;
    }
  }

  void wake() noexcept { wake_(*this); }

  // For the owner, once woken.
  state ended_by() const noexcept { return state_.load(acquire); }
  wait_node* winner() const noexcept { return winner_; }
  void rearm() noexcept {
    winner_ = nullptr;
    state_.store(state::arming, relaxed);  // only the owner accesses it: it is in no list
  }

 protected:
  using wake_function = void (*)(waiter&) noexcept;
  waiter(wake_function function, bool is_thread) noexcept
      : wake_(function), is_thread_(is_thread) {}
  ~waiter() = default;

 private:
  friend class wake_batch;

  bool move(state expected, state desired) noexcept {
    // acq_rel: the owner sees in ended_by what the winner wrote before, and the winner sees what
    // the owner wrote before commit.
    return state_.compare_exchange_strong(expected, desired, acq_rel, acquire);
  }

  atomic<state> state_{state::arming};
  const wake_function wake_;
  const bool is_thread_;
  wait_node* winner_ = nullptr;      // written by the claimer, read by the owner once woken
  waiter* next_to_wake_ = nullptr;   // owned by the batch of the claimer
};

// Claimed waiters, woken by the destructor. Declare it before the lock guard, so that it is
// destroyed after the lock is released. A coroutine that resumes on this thread runs after all
// other waiters are woken, because it may run for long, or wait for one of them.
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

// The result of an attempt to join a list.
enum class enlisted : std::uint8_t {
  waiting,   // linked and committed: wait to be woken
  finished,  // no wait is needed
  ended,     // a limit ended the wait before it was committed; it is in no list
};

// Links a waiter at the back of the list (at the front to keep an earlier place) and commits it.
// Called by the owner, under the lock.
enum class list_end : std::uint8_t { back, front };
inline enlisted link_waiter(wait_list& list, wait_node& node, waiter& waiting,
                            list_end where = list_end::back) noexcept {
  node.waiting = &waiting;
  if (where == list_end::back) {
    list.push_back(node);
  } else {
    list.push_front(node);
  }
  if (waiting.commit()) return enlisted::waiting;
  node.unlink();
  return enlisted::ended;
}

// Unlinks waiters from the front of a list until one can be claimed, and returns it; null if none
// can. Waiters that their deadline or stop has ended are only unlinked.
template <class Node = wait_node>
Node* claim_front(wait_list& list) noexcept {
  while (!list.empty()) {
    auto& node = static_cast<Node&>(list.pop_front());
    if (node.waiting->try_claim(node)) return &node;
  }
  return nullptr;
}

// Called when its thread is about to sleep in a wait of the library, and when it has been woken. So
// a pool detects that one of its threads is blocked, in any kind of wait, and can start another
// one in its place. The observer must not wait. A thread that only spins is not asleep.
class sleep_observer {
 public:
  virtual void falls_asleep() noexcept = 0;
  virtual void woke_up() noexcept = 0;
  // Called before the thread does other work instead of sleeping until its wait ends.
  virtual void helps_out() noexcept {}
  // Returns the party that the thread works for, as reported to wait observers; none: for itself.
  // Any thread may call it while this one sleeps.
  virtual wait_report::party acts_for() const noexcept { return {}; }
  // Returns the observer that this one replaced.
  virtual const sleep_observer* around() const noexcept { return nullptr; }

 protected:
  ~sleep_observer() = default;
};
// Sets the calling thread's observer (null: none) and returns the previous one.
sleep_observer* observe_sleep(sleep_observer* observer) noexcept;
const sleep_observer* this_sleep_observer() noexcept;  // null: none
void report_helping() noexcept;  // calls helps_out of the calling thread's observer, if any

// A waiting thread. The primitive links it (see wait.hpp for the loop around it).
//
// Several of them may exist on one thread: a wait that has joined its list may run a coroutine
// before it sleeps, and the coroutine may block as well. They share the thread's parker, so each
// also has a flag of its own, and a parker token only means that the flag must be checked again.
class thread_waiter final : public waiter {
 public:
  thread_waiter() noexcept : waiter(&unpark, true), parker_(seam::this_parker()) {}

  void rearm() noexcept {
    waiter::rearm();
    woken_.store(false, relaxed);  // only the owner accesses it: it is in no list
  }

  // Call once committed. Checks up to `times` times, with a pause after each; returns true if the
  // waiter was woken.
  bool spin(std::uint32_t times) noexcept;
  // Call once committed. Sleeps until claimed, or until a limit ends the wait.
  state park(const wait_limits& limits) noexcept;

 private:
  static void unpark(waiter& self) noexcept {
    auto& me = static_cast<thread_waiter&>(self);
    seam::parker& sleeper = me.parker_;
    // release: pairs with the acquire in is_woken. From here on `me` may be destroyed; the parker
    // stays.
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
