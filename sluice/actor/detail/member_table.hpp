#pragma once

// The current members of a group of like actors, and the choice of the member for a message.
//
// Senders read the list as a snapshot, without a lock; the keeper (member_keeper.hpp) replaces it
// as a whole. A sender that finds no open member waits until the list it has seen is replaced.

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
  std::uint32_t grow_at = 0;  // 0: its size is fixed
  std::chrono::nanoseconds grow_pause{0};
  std::chrono::nanoseconds idle_for{0};
  // Spawns a member as a child of `parent`.
  std::function<cell_ptr(cell& parent, const actor_options& o)> spawn{};
};

// A replacement has the slot of its predecessor, and so its keys.
struct member {
  cell_ptr target;
  std::uint64_t slot = 0;  // from 1
};

struct member_list {
  std::vector<member> all{};
  bool may_grow = false;
  bool is_terminated = false;  // there will be no other members
  std::shared_ptr<event> replaced = std::make_shared<event>();
};

// The key of a message; null: it has none.
using key_if_any = const std::uint64_t*;

class member_table {
 public:
  using view = snapshot<member_list>::view;

  explicit member_table(group_options o);
  const group_options& options() const noexcept { return options_; }

  // ---- any thread

  view now() const noexcept { return list_.load(); }
  // Null limits: never waits. The envelope is taken if it returns ok or dropped. `keeper` loses the
  // message if the group has ended, and gets a report if mailboxes are long. `chosen`, if not null,
  // is set to the last member tried.
  status submit(const cell_ptr& keeper, envelope& e, key_if_any key, const wait_limits* limits,
                cell_ptr* chosen = nullptr);
  // submit for coroutines. The arguments referred to must outlive the task.
  task<status> submit_async(const cell_ptr& keeper, envelope& e, key_if_any key, wait_limits limits,
                            cell_ptr* chosen = nullptr);
  // Empty: there is no member.
  cell_ptr owner_of(std::uint64_t key) const;
  // Ends the group: there are no members, and there will be none.
  void end();

  // ---- the keeper

  void publish(std::vector<member> all, std::size_t draining);

  // True from a sender's report until the keeper has checked the load.
  atomic<bool> is_growth_reported{false};
  std::size_t resized_to = 0;  // set by the keeper, kept over its restarts; 0: never resized
  // Written by the keeper.
  atomic<std::uint64_t> replaced{0};
  atomic<std::uint64_t> grown{0};
  atomic<std::uint64_t> drained{0};
  atomic<std::size_t> draining{0};
  // Written by senders.
  counter handed;
  counter refused;

 private:
  struct try_result {
    status::code result;    // ok, dropped; full: all members are full; closed: no member is open
    std::size_t index = 0;  // the member that took it, or the one to wait for
  };

  try_result try_each(const member_list& list, envelope& e, key_if_any key);
  try_result try_in_turn(const member_list& list, envelope& e, std::size_t first);
  static try_result try_by_key(const member_list& list, envelope& e, std::uint64_t key);
  status offer(cell& target, envelope& e) const;
  status note_accepted(const cell_ptr& keeper, const member_list& list, const cell& target,
                       status result);
  status note_refused(status result);
  void replace(member_list next);

  const group_options options_;
  const bool drops_;  // a full mailbox drops messages
  atomic<std::uint32_t> turn_{0};
  mutex replacing_;
  bool is_terminated_ = false;  // protected by replacing_
  snapshot<member_list> list_;
};

}  // namespace sluice::detail
