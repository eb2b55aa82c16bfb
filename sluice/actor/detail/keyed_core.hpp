#pragma once

// All actors of one type that are kept by key: which are in memory, and which is passivated next.
//
// One lock protects a map and a list in the order of use. A cell is in the map from before it
// begins until it has terminated or has a successor, so no two cells load the same key at a time.
// The lock is held for a lookup or a few links, never while code of the user or of the store runs.
//
// The actors are children of one cell of their own, which ends with the system or with the
// keyed_actors. Idle actors are searched for in its turn.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/keyed_life.hpp"
#include "sluice/actor/keyed_options.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::detail {

class keyed_core : public std::enable_shared_from_this<keyed_core> {
 public:
  keyed_core(system_core& system, keyed_options o);
  keyed_core(const keyed_core&) = delete;
  keyed_core& operator=(const keyed_core&) = delete;
  virtual ~keyed_core();

  // Creates the parent. Called once, when a shared_ptr owns this object.
  void open();
  void close() noexcept;
  cell& parent() const noexcept { return *parent_; }

  // Any thread. Finds or creates the actor, and counts as a use of it. Waits within `limits` if
  // live_limit actors are in memory; null limits: never waits. Empty: `result` is the reason.
  cell_ptr find(std::string_view key, const wait_limits* limits, status& result);
  // find for coroutines. `key` and `result` must outlive the task.
  task<cell_ptr> find_async(std::string_view key, wait_limits limits, status& result);
  // Finds or creates the actor beyond the limit: for callers that must not wait.
  cell_ptr find(std::string_view key);
  // Returns the actor if it is in memory, else empty.
  cell_ptr live(std::string_view key) const;
  cell_ptr successor(keyed_life& closed);
  cell_ptr successor(keyed_life& closed, const wait_limits* limits, status& result);
  // For coroutines with a plain ref: a place is reserved for a waiter that was woken
  // (place_queue.hpp).
  enlisted wait_for_place(std::string_view key, wait_node& node, waiter& waiting) noexcept;
  void cancel_place_wait(wait_node& node) noexcept;
  void release_place() noexcept;
  // The calling actor is one of these and occupies a place itself: if all of them waited, none
  // would ever be passivated.
  bool is_called_by_member() const noexcept;
  future<void> forget(std::string_view key);
  // Removes the state by a cell other than `excluded`, which is closed.
  void forget(std::string_view key, keyed_life* excluded, promise<void> done);
  keyed_stats stats() const;

  // ---- for keyed_life

  const keyed_options& options() const noexcept { return options_; }
  actor_store* store() const noexcept { return options_.store; }
  void failed(const keyed_life& life, keyed_step step, const std::exception_ptr& error) noexcept;
  void count_load() noexcept { loads_.fetch_add(1, relaxed); }
  void count_save() noexcept { saves_.fetch_add(1, relaxed); }
  void count_passivation() noexcept { passivations_.fetch_add(1, relaxed); }
  // Called for an actor that was ordered to passivate and stays live; the second if its save
  // failed.
  void stays_live(keyed_life& life) { stays_live(life, excess_wait); }
  void stays_live_unsaved(keyed_life& life) { stays_live(life, failed_wait); }
  // Called when it has terminated.
  void ended(keyed_life& life) noexcept;
  // In the parent's turn: passivates the actors that were idle too long.
  void sweep();

 protected:
  virtual keyed_life& make(std::string key, cell_ptr predecessor) = 0;
  system_core& system_;

 private:
  class parent_cell;

  // An actor ordered to passivate, with a reference that keeps it.
  struct passivation {
    cell_ptr held;
    keyed_life* life;
  };

  static constexpr std::chrono::milliseconds excess_wait{10};
  static constexpr std::chrono::milliseconds failed_wait{1000};
  static constexpr int candidates_max = 32;

  // Must hold lock_.
  bool can_enter(std::string_view key) const;
  bool has_place() const noexcept;
  void entered(std::string_view key) noexcept;
  bool enter(std::unique_lock<mutex>& hold, std::string_view key, const wait_limits* limits,
             status& result, bool& waited);
  // Must not hold lock_. Reserves free places for the queued waiters.
  void grant_places() noexcept;
  cell_ptr find_within(std::string_view key, keyed_life* excluded, const wait_limits* limits,
                       status& result);
  cell_ptr successor_or_none(cell_ptr found) const;
  // Unlocks `hold`. A created actor takes over the promise; otherwise it is untouched.
  cell_ptr find_or_make(std::unique_lock<mutex> hold, std::string_view key, keyed_life* excluded,
                        promise<void>* forgets);
  // Must hold lock_.
  keyed_life& put(std::string key, cell_ptr predecessor);
  cell_ptr take_out(keyed_life& life) noexcept;
  void touch(keyed_life& life) noexcept;
  static bool was_used_since(const keyed_life& life) noexcept;
  passivation begin_passivation(keyed_life& life);
  std::size_t excess() const noexcept;

  void start(keyed_life& created);
  void stays_live(keyed_life& life, std::chrono::nanoseconds retry_after);
  void trim();
  static void passivate_all(std::vector<passivation> idle);
  // Runs `step` in the parent's turn after `wait`. Any thread.
  void later(std::chrono::nanoseconds wait, void (keyed_core::*step)());
  void trim_again();

  // Constant after open().
  const keyed_options options_;
  const std::size_t live_limit_;
  cell_ptr parent_;

  mutable mutex lock_;
  // Protected by lock_. A key is the string of its keyed_life. Each entry owns a reference to its
  // cell.
  std::unordered_map<std::string_view, keyed_life*> actors_;
  condition place_freed_;              // notified when fewer than live_limit_ are live
  wait_list places_;                   // waiters that get a place reserved
  std::size_t reserved_ = 0;           // places that are not taken yet
  bool places_are_next_ = false;       // whether places_ is served next, if both have waiters
  intrusive_list<keyed_life> by_use_;  // least recently used first; without passivating actors
  std::size_t passivating_ = 0;
  bool has_sweep_timer_ = false;  // a sweep is scheduled
  bool has_trim_timer_ = false;   // a trim_again is scheduled

  atomic<std::uint64_t> loads_{0};
  atomic<std::uint64_t> saves_{0};
  atomic<std::uint64_t> passivations_{0};
  atomic<std::uint64_t> failures_{0};
};

}  // namespace sluice::detail
