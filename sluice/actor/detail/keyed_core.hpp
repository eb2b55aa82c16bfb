#pragma once

// All actors of one type that are kept by key: which are in memory, and which of them goes next.
//
// One lock around a map and a list in the order of use. A cell is in the map from before it begins
// until it is over or has a successor, so that a key never has two that load. The lock is held for
// a lookup or a few links, never while something of the user's or of the store's runs.
//
// They are children of one cell of their own, which ends with the system or with the keyed_actors,
// and in whose turn the idle ones are looked for.

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

  // Once, when there is a shared_ptr to it: makes the parent.
  void open();
  void close() noexcept;
  cell& parent() const noexcept { return *parent_; }

  // Any thread. Finds it or makes it; that counts as its use. Where there is no room for one more
  // it waits; null limits: it does not. Empty: `how` says why.
  cell_ptr find(std::string_view key, const wait_limits* limits, status& how);
  // The same for coroutines. `key` and `how` must outlive it.
  task<cell_ptr> find_async(std::string_view key, wait_limits limits, status& how);
  // Whatever room there is: for who must not wait.
  cell_ptr find(std::string_view key);
  // As it is in memory; empty: it is not.
  cell_ptr live(std::string_view key) const;
  cell_ptr successor(keyed_life& of);
  cell_ptr successor(keyed_life& of, const wait_limits* limits, status& how);
  // For coroutines with a plain ref: a place is kept for one that has waited (place_line.hpp).
  enlisted wait_for_place(std::string_view key, wait_node& at, waiter& who) noexcept;
  void leave_line(wait_node& at) noexcept;
  void give_place_back() noexcept;
  // One of these actors, that takes up a place itself: if all of them waited, none would ever rest.
  bool has_no_room_for_sender() const noexcept;
  future<void> forget(std::string_view key);
  // Of another one than this, which takes nothing any more.
  void forget(std::string_view key, keyed_life* not_this, promise<void> done);
  keyed_stats stats() const;

  // ---- for its lives

  const keyed_options& options() const noexcept { return options_; }
  actor_store* store() const noexcept { return options_.store; }
  void failed(const keyed_life& who, keyed_step what, const std::exception_ptr& why) noexcept;
  void count_load() noexcept { loads_.fetch_add(1, relaxed); }
  void count_save() noexcept { saves_.fetch_add(1, relaxed); }
  void count_rest() noexcept { rests_.fetch_add(1, relaxed); }
  // It was told to rest, and stays. The other: because it could not be saved.
  void stayed(keyed_life& who) { stayed(who, crowded_wait); }
  void stayed_unsaved(keyed_life& who) { stayed(who, failed_wait); }
  // It is over.
  void ended(keyed_life& who) noexcept;
  // In the parent's turn: tells those to rest that were idle too long.
  void sweep();

 protected:
  virtual keyed_life& make(std::string key, cell_ptr before) = 0;
  system_core& system_;

 private:
  class parent_cell;

  // Those that are told to rest, with what keeps them there.
  struct leaver {
    cell_ptr held;
    keyed_life* life;
  };

  static constexpr std::chrono::milliseconds crowded_wait{10};
  static constexpr std::chrono::milliseconds failed_wait{1000};
  static constexpr int candidates_max = 32;

  // Under lock_.
  bool may_enter(std::string_view key) const;
  bool has_place() const noexcept;
  void entered(std::string_view key) noexcept;
  bool enter(std::unique_lock<mutex>& hold, std::string_view key, const wait_limits* limits,
             status& how, bool& waited);
  // Without it: places that are free go to those in line.
  void grant_places() noexcept;
  cell_ptr find_within(std::string_view key, keyed_life* not_this, const wait_limits* limits,
                       status& how);
  cell_ptr unless_last(cell_ptr found) const;
  // Unlocks it. Made, it has the promise; else that is untouched.
  cell_ptr find_or_make(std::unique_lock<mutex> hold, std::string_view key, keyed_life* not_this,
                        promise<void>* forgets);
  // Under lock_.
  keyed_life& put(std::string key, cell_ptr before);
  cell_ptr take_out(keyed_life& who) noexcept;
  void touch(keyed_life& who) noexcept;
  static bool was_used_since(const keyed_life& who) noexcept;
  leaver take_leave(keyed_life& who);
  std::size_t too_many() const noexcept;

  void start(keyed_life& made);
  void stayed(keyed_life& who, std::chrono::nanoseconds look_again);
  void trim();
  static void send_to_rest(std::vector<leaver> those);
  // Any thread: `what` in the parent's turn, after so long.
  void later(std::chrono::nanoseconds wait, void (keyed_core::*what)());
  void look_at_crowd();

  // Constant once it is open.
  const keyed_options options_;
  const std::size_t live_limit_;
  cell_ptr parent_;

  mutable mutex lock_;
  // Protected by lock_. The keys are those of the lives; each has a reference to its cell.
  std::unordered_map<std::string_view, keyed_life*> lives_;
  condition room_;                     // there are fewer than live_limit_
  wait_list places_;                   // those that have a place kept for them when there is one
  std::size_t kept_ = 0;               // places, that have not been taken
  bool line_is_next_ = false;          // of the two, when both wait
  intrusive_list<keyed_life> by_use_;  // the one that was used longest ago first; none that leaves
  std::size_t leaving_ = 0;
  bool sweeps_ = false;   // a sweep is to come
  bool crowded_ = false;  // look_at_crowd is to come

  atomic<std::uint64_t> loads_{0};
  atomic<std::uint64_t> saves_{0};
  atomic<std::uint64_t> rests_{0};
  atomic<std::uint64_t> failures_{0};
};

}  // namespace sluice::detail
