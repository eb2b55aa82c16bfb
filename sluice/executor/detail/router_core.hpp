#pragma once

// The type-erased core of router.hpp: which worker gets an item, which callers wait, which workers
// join and leave. Items are cells that move between intrusive lists, so nothing here copies, moves
// or allocates a user's item, and every operation is atomic under one short lock.
//
// For routing by key, all queued items of a key are in the inbox of the one member that owns it, in
// order; when a member joins or leaves, they are moved together. An item that has begun cannot be
// moved: until it is finished, its key is held, and no other member begins an item of that key.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/executor/routing.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"
#include "sluice/sync/detail/wait_calls.hpp"

namespace sluice::detail {

struct routed : list_hook {
  struct more_urgent {
    bool operator()(const routed* a, const routed* b) const noexcept {
      return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
    }
  };
  using by_urgency = std::set<routed*, more_urgent>;

  virtual ~routed() = default;

  std::uint64_t key = 0;
  std::int64_t priority = 0;
  std::uint64_t arrival = 0;
  by_urgency::node_type node;  // by priority: allocated with the cell, not under the lock
};
using routed_ptr = std::unique_ptr<routed>;

class router_core {
 public:
  struct options {
    sluice::routing rule;
    std::size_t capacity;
    sluice::overflow overflow;
    std::string name;
    std::size_t per_turn;
    std::function<void(routed&)> on_drop;
    std::function<void(std::exception_ptr)> on_error;
  };
  class member;
  class push_op;
  class next_op;

  explicit router_core(options o);
  router_core(const router_core&) = delete;
  router_core& operator=(const router_core&) = delete;
  ~router_core();

  // Without an executor the member has its own loop.
  std::unique_ptr<member> join(executor* on, std::function<void(routed&)> handler);
  void leave(member& m);  // waits for its handler

  bool close();
  bool is_closed() const noexcept { return closed_.load(acquire); }
  std::vector<routed_ptr> stop();
  status wait_end(const wait_limits& limits) { return ended_.wait(limits); }
  auto async_wait_end(wait_limits limits) { return ended_.async_wait(std::move(limits)); }
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  void check_outside() const noexcept;  // checks that this thread runs no handler of this router

  std::uint64_t owner_of(std::uint64_t key) const;
  router_stats stats() const;
  router_worker_stats stats_of(const member& m) const;
  std::vector<router_worker_stats> worker_stats() const;
  std::size_t waiting_to_push() const noexcept;
  const std::string& name() const noexcept { return name_; }

 private:
  class end_gate : public detail::wait_calls<end_gate> {
   public:
    explicit end_gate(const router_core& core) noexcept : core_(core) {}

   private:
    friend class router_core;
    friend class detail::wait_calls<end_gate>;
    static constexpr const char* type_name = "sluice::router";
    bool is_open() const noexcept;
    const router_core& core_;
  };
  struct member_link : list_hook {
    explicit member_link(member& m) noexcept : owner(m) {}
    member& owner;
  };
  struct push_node : wait_node {
    routed_ptr* item = nullptr;
    status result = status::ok;
  };
  struct next_node : wait_node {
    routed_ptr item;
    status result = status::ok;
  };
  // Work to do after the lock is released; declare it before the lock guard. The order of the
  // members matters: waking may cause the destruction of the router, so it comes last, and
  // coroutines that resume on this thread run after everything else.
  struct aftermath {
    explicit aftermath(router_core& c) noexcept : core(c) {}
    aftermath(const aftermath&) = delete;
    aftermath& operator=(const aftermath&) = delete;
    ~aftermath();
    run_scope resumed_last;
    wake_batch wakes;
    router_core& core;
    intrusive_list<member> turns;  // to be posted
    bool may_have_ended = false;
  };
  using cells = intrusive_list<routed>;
  using links = intrusive_list<member_link>;

  // Must hold guard_ for all below.
  bool offer(routed_ptr& item, status& result, aftermath& after, cells& dropped);
  bool find_capacity(const routed& item, member*& target) noexcept;  // null target: shared inbox
  member* any_member(const routed& item) noexcept;  // ignores capacity; null if there are none
  member* owner(std::uint64_t key) const noexcept;
  template <class Suits>
  member* next_in_turn(Suits&& suits) noexcept;
  template <class Suits>
  member* least_loaded(Suits&& suits) noexcept;
  void accept(routed_ptr& item, member* target, aftermath& after) noexcept;
  void deliver(routed& item, member* target, aftermath& after) noexcept;
  bool drop_queued(const routed& item, member*& target, cells& dropped, aftermath& after) noexcept;
  bool has_work_for(const member& m) const noexcept;
  routed* pick(member& m) noexcept;  // removes an item that `m` may begin, or returns null
  routed& take_from(member& m, routed& item) noexcept;
  routed* first_free(member& m) const noexcept;
  bool is_held(std::uint64_t key, const member& by) const noexcept;
  void hold_key(member& m) noexcept;
  bool begin(member& m, routed_ptr& item, aftermath& after) noexcept;
  void finish(member& m, aftermath& after) noexcept;
  bool kick(member& m, aftermath& after) noexcept;  // returns true if `m` begins an item
  void kick_all(aftermath& after) noexcept;
  void serve_producers(aftermath& after) noexcept;
  void close_loops_if_drained(aftermath& after) noexcept;
  void take_keys(member& newcomer) noexcept;
  void subtract_queued(std::size_t count, aftermath& after) noexcept;
  router_worker_stats stats_locked(const member& m) const noexcept;

  void run_turn(member& m) noexcept;
  void handle(member& m, routed& item) noexcept;
  void report(cells& dropped);

  // Constant after construction.
  const std::string name_;
  const sluice::routing rule_;
  const std::size_t capacity_;
  const sluice::overflow overflow_;
  const std::size_t per_turn_;
  const std::function<void(routed&)> on_drop_;
  const std::function<void(std::exception_ptr)> on_error_;

  std::stop_source stop_;
  spin_budget push_spin_;
  spin_budget next_spin_;
  mutable spin_lock guard_;

  // Protected by guard_; the atomics are read without it as guesses.
  atomic<bool> closed_{false};
  atomic<std::size_t> queued_{0};      // accepted and not begun
  atomic<std::size_t> unfinished_{0};  // accepted and not finished
  atomic<std::size_t> members_count_{0};
  links members_;                      // members that are given items
  links held_;                         // members whose begun item's key now belongs to another
  cells unassigned_;                   // accepted while there were no members
  routed::by_urgency shared_;          // by priority: all queued items
  wait_list producers_;
  std::size_t present_ = 0;            // handles that exist
  bool serving_ = false;
  bool serve_again_ = false;
  std::uint64_t served_ = 0;           // items assigned in turn
  std::uint64_t joined_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t dropped_ = 0;

  end_gate ended_;  // last member: its destructor waits for a thread that is still opening it
};

class router_core::member final : private work {
 public:
  member(router_core& core, executor* on, std::function<void(routed&)> handler)
      : core_(core),
        on_(on),
        use_(on, executor_user::router_worker),
        handler_(std::move(handler)),
        idle_(*this) {}
  ~member();

  router_core& core() const noexcept { return core_; }
  bool has_handler() const noexcept { return on_ != nullptr; }

 private:
  friend class router_core;
  friend class intrusive_list<member>;
  // Open while none of its turns is running or queued in the executor.
  class turn_gate : public detail::wait_calls<turn_gate> {
   public:
    explicit turn_gate(const member& m) noexcept : member_(m) {}

   private:
    friend class router_core;
    friend class detail::wait_calls<turn_gate>;
    static constexpr const char* type_name = "sluice::router";
    bool is_open() const noexcept { return member_.turns_.load(acquire) == 0; }
    const member& member_;
  };

  void run() noexcept override { core_.run_turn(*this); }

  router_core& core_;
  executor* const on_;
  const executor_use use_;
  const std::function<void(routed&)> handler_;
  atomic<std::uint32_t> turns_{0};  // incremented under the core's guard_, decremented under idle_

  // Protected by the core's guard_.
  std::uint64_t id_ = 0;
  member_link place_{*this};  // in members_
  member_link hold_{*this};   // in held_
  cells inbox_;
  std::size_t count_ = 0;     // in the inbox
  std::uint64_t served_ = 0;  // the router's served_ when it was last assigned an item in turn
  wait_list waiting_;         // its loop
  bool scheduled_ = false;    // its handler has a turn running or queued in the executor
  bool busy_ = false;
  std::uint64_t key_ = 0;     // of the item it has begun
  router_worker_stats counts_;

  turn_gate idle_;  // last member, as ended_
};

// A wait for capacity. An item that is not accepted stays in `item`.
class router_core::push_op {
 public:
  push_op(router_core& core, routed_ptr& item) noexcept : core_(core) { node_.item = &item; }
  bool ready() const noexcept {
    return core_.queued_.load(relaxed) < core_.capacity_ * core_.members_count_.load(relaxed) ||
           core_.closed_.load(relaxed);
  }
  bool attempt();
  enlisted enlist(waiter& waiting);
  bool woken() const noexcept { return true; }  // the waking thread has accepted the item
  void retract() noexcept;
  spin_budget& spin() noexcept { return core_.push_spin_; }
  status result(status ended) noexcept;
  status give_up() noexcept;  // the result of a call that does not wait
  wait_report::subject wait_subject() const noexcept {
    return {.object = &core_,
            .type = "sluice::router",
            .wants = "push",
            .by = wait_report::served_by::consumers,
            .capacity = core_.capacity_};
  }

 private:
  router_core& core_;
  push_node node_;
};

// A member's wait for its next item. Finishes the previous item first.
class router_core::next_op {
 public:
  explicit next_op(member& m) noexcept : member_(m) {}
  bool ready() const noexcept {
    return member_.core_.queued_.load(relaxed) > 0 || member_.core_.closed_.load(relaxed);
  }
  bool attempt() noexcept;
  enlisted enlist(waiter& waiting) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return member_.core_.next_spin_; }
  outcome<routed_ptr> result(status ended) noexcept;
  wait_report::subject wait_subject() const noexcept {
    return {&member_.core_, "sluice::router", "next"};
  }

 private:
  bool take(aftermath& after) noexcept;
  member& member_;
  next_node node_;
};

}  // namespace sluice::detail
