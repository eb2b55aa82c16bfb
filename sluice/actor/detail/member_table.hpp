#pragma once

// Who the members of a group of like actors are right now, and to which of them a message goes.
//
// Senders read the list as a snapshot, without a lock; the keeper (member_keeper.hpp) replaces it
// as a whole. A sender that finds nobody waits until the list that it has seen is replaced.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/detail/cell.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/executor/routing.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/snapshot.hpp"

namespace sluice::detail {

struct group_options {
  routing rule = routing::round_robin;
  std::string name{};
  actor_options member{};
  supervision supervise{};
  std::size_t members_min = 1;
  std::size_t members_max = 1;
  std::uint32_t grow_at = 0;  // 0: it does not grow or shrink by itself
  std::chrono::nanoseconds grow_pause{0};
  std::chrono::nanoseconds idle_for{0};
  // Makes one, as a child of `parent`.
  std::function<cell_ptr(cell& parent, const actor_options& o)> spawn{};
};

// One that takes the place of another has its slot, and so its keys.
struct member {
  cell_ptr who;
  std::uint64_t slot = 0;  // from 1
};

struct member_list {
  std::vector<member> all{};
  bool may_grow = false;
  bool is_over = false;  // there will be no others
  std::shared_ptr<event> replaced = std::make_shared<event>();
};

// What to do about a message that waits for a place among the keys; none for one without a key.
using key_if_any = const std::uint64_t*;

class member_table {
 public:
  using view = snapshot<member_list>::view;

  explicit member_table(group_options o);
  const group_options& options() const noexcept { return options_; }

  // ---- any thread

  view now() const noexcept { return list_.load(); }
  // Null limits: without waiting. The envelope is somebody's if it says ok or dropped. `keeper` is
  // who has lost it when all is over, and hears when the queues are long.
  // `by`, if given: who has it then.
  status hand_in(const cell_ptr& keeper, envelope& e, key_if_any key, const wait_limits* limits,
                 cell_ptr* by = nullptr);
  // The same for coroutines. All that is referred to must outlive it.
  task<status> hand_in_async(const cell_ptr& keeper, envelope& e, key_if_any key,
                             wait_limits limits, cell_ptr* by = nullptr);
  // Empty: nobody is there.
  cell_ptr owner_of(std::uint64_t key) const;
  // Nobody is there any more, and never will be.
  void end();

  // ---- the keeper

  void publish(std::vector<member> all, std::size_t draining);

  // True from the moment at which a sender has called the keeper until that has looked.
  atomic<bool> growth_asked{false};
  std::size_t resized_to = 0;  // the keeper's own; 0: never. Outlives its restarts
  // Written by the keeper.
  atomic<std::uint64_t> replaced{0};
  atomic<std::uint64_t> grown{0};
  atomic<std::uint64_t> drained{0};
  atomic<std::size_t> draining{0};
  // Written by senders.
  counter handed;
  counter refused;

 private:
  struct tried {
    status::code how;    // ok, dropped; full: all are; closed: nobody is there
    std::size_t at = 0;  // whom it went to, or who is to be waited for
  };

  tried try_each(const member_list& those, envelope& e, key_if_any key);
  tried try_in_turn(const member_list& those, envelope& e, std::size_t first);
  static tried try_by_key(const member_list& those, envelope& e, std::uint64_t key);
  status offer(cell& to, envelope& e) const;
  status took(const cell_ptr& keeper, const member_list& those, const cell& who, status how);
  status refuse(status how);
  void replace(member_list next);

  const group_options options_;
  const bool drops_;  // a mailbox that is full drops something
  atomic<std::uint32_t> turn_{0};
  mutex replacing_;
  bool is_over_ = false;  // protected by replacing_
  snapshot<member_list> list_;
};

}  // namespace sluice::detail
