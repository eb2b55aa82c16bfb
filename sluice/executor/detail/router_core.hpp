#pragma once

// The inside of router.hpp, for items of any type: who gets an item, who waits, who joins and
// leaves. Items are cells that are linked from list to list, so nothing here copies, moves or
// allocates a user's item, and everything happens at one moment, under one short lock.
//
// For routing by key, all that is queued for a key stands in the inbox of the one member that owns
// it, in order; when a member joins or leaves, they are moved together. What was begun before
// cannot be moved: until it is finished, its key is held, and nobody begins another of that key.

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
#include "sluice/sync/wait_calls.hpp"

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
  by_urgency::node_type node;  // by priority: allocated with the cell, so never under the lock
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

  // Without an executor the member has a loop of its own.
  std::unique_ptr<member> join(executor* on, std::function<void(routed&)> handler);
  void leave(member& m);  // waits for its handler

  bool close();
  bool is_closed() const noexcept { return closed_.load(acquire); }
  std::vector<routed_ptr> stop();
  status wait_end(const wait_limits& limits) { return ended_.wait_within(limits); }
  auto async_wait_end(wait_limits limits) { return ended_.async_wait(std::move(limits)); }
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  void check_outside() const noexcept;  // not in a handler of this router

  std::uint64_t owner_of(std::uint64_t key) const;
  router_stats stats() const;
  router_worker_stats stats_of(const member& m) const;
  std::vector<router_worker_stats> worker_stats() const;
  std::size_t waiting_to_push() const noexcept;
  const std::string& name() const noexcept { return name_; }

 private:
  class end_gate : public wait_calls<end_gate> {
   public:
    explicit end_gate(const router_core& core) noexcept : core_(core) {}

   private:
    friend class router_core;
    friend class wait_calls<end_gate>;
    static constexpr const char* type_name = "sluice::router";
    bool is_open() const noexcept;
    const router_core& core_;
  };
  struct member_link : list_hook {
    explicit member_link(member& m) noexcept : who(m) {}
    member& who;
  };
  struct push_node : wait_node {
    routed_ptr* item = nullptr;
    status result = status::ok;
  };
  struct next_node : wait_node {
    routed_ptr item;
    status result = status::ok;
  };
  // What is done when the lock has been released; declared before it. Who is woken may be the end
  // of the router, so that comes last, and what is resumed right here after all else.
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

  // All below: guard_ held.
  bool offer(routed_ptr& item, status& done, aftermath& after, cells& dropped);
  bool find_room(const routed& item, member*& to) noexcept;  // null: the shared one
  member* anyone(const routed& item) noexcept;               // whatever its inbox; null: nobody
  member* owner(std::uint64_t key) const noexcept;
  template <class Suits>
  member* next_in_turn(Suits&& suits) noexcept;
  template <class Suits>
  member* least_loaded(Suits&& suits) noexcept;
  void accept(routed_ptr& item, member* to, aftermath& after) noexcept;
  void deliver(routed& item, member* to, aftermath& after) noexcept;
  bool make_room(const routed& item, member*& to, cells& dropped, aftermath& after) noexcept;
  bool has_work_for(const member& m) const noexcept;
  routed* pick(member& m) noexcept;  // takes it out; null: nothing that it may begin
  routed& take_from(member& m, routed& item) noexcept;
  routed* first_free(member& m) const noexcept;
  bool is_held(std::uint64_t key, const member& by) const noexcept;
  void hold_key(member& m) noexcept;
  bool begin(member& m, routed_ptr& item, aftermath& after) noexcept;
  void finish(member& m, aftermath& after) noexcept;
  bool kick(member& m, aftermath& after) noexcept;  // true: it begins something
  void kick_all(aftermath& after) noexcept;
  void serve_producers(aftermath& after) noexcept;
  void dismiss_if_drained(aftermath& after) noexcept;
  void take_keys(member& newcomer) noexcept;
  void forget_queued(std::size_t count, aftermath& after) noexcept;
  router_worker_stats look_at(const member& m) const noexcept;

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
  links members_;                      // those that are given items
  links held_;                         // those whose item's key belongs to another by now
  cells homeless_;                     // nobody was there to take them
  routed::by_urgency shared_;          // by priority: all that is queued
  wait_list producers_;
  std::size_t present_ = 0;            // handles that exist
  bool serving_ = false;
  bool serve_again_ = false;
  std::uint64_t served_ = 0;           // items given to a member in turn
  std::uint64_t joined_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t dropped_ = 0;

  end_gate ended_;  // the last: its destructor waits for whoever is about to let go of it
};

class router_core::member final : private work {
 public:
  member(router_core& core, executor* on, std::function<void(routed&)> handler)
      : core_(core),
        on_(on),
        use_(on, executor_user::router_worker),
        handler_(std::move(handler)),
        over_(*this) {}
  ~member();

  router_core& core() const noexcept { return core_; }
  bool has_handler() const noexcept { return on_ != nullptr; }

 private:
  friend class router_core;
  friend class intrusive_list<member>;
  // Open while none of its turns is under way or in the executor's line.
  class turn_gate : public wait_calls<turn_gate> {
   public:
    explicit turn_gate(const member& m) noexcept : member_(m) {}

   private:
    friend class router_core;
    friend class wait_calls<turn_gate>;
    static constexpr const char* type_name = "sluice::router";
    bool is_open() const noexcept { return member_.turns_.load(acquire) == 0; }
    const member& member_;
  };

  void run() noexcept override { core_.run_turn(*this); }

  router_core& core_;
  executor* const on_;
  const executor_use use_;
  const std::function<void(routed&)> handler_;
  atomic<std::uint32_t> turns_{0};  // grows under the core's guard_, becomes less under over_'s

  // Protected by the core's guard_.
  std::uint64_t id_ = 0;
  member_link place_{*this};  // in members_
  member_link hold_{*this};   // in held_
  cells inbox_;
  std::size_t count_ = 0;     // in the inbox
  std::uint64_t served_ = 0;  // when it last had its turn
  wait_list waiting_;         // its loop
  bool scheduled_ = false;    // its handler: a turn is under way or in the executor's line
  bool busy_ = false;
  std::uint64_t key_ = 0;     // of what it has begun
  router_worker_stats counts_;

  turn_gate over_;  // the last, as ended_
};

// A wait for room. What was not accepted stays in `item`.
class router_core::push_op {
 public:
  push_op(router_core& core, routed_ptr& item) noexcept : core_(core) { node_.item = &item; }
  bool ready() const noexcept {
    return core_.queued_.load(relaxed) < core_.capacity_ * core_.members_count_.load(relaxed) ||
           core_.closed_.load(relaxed);
  }
  bool attempt();
  enlisted enlist(waiter& who);
  bool woken() const noexcept { return true; }  // it was handed on
  void retract() noexcept;
  spin_budget& spin() noexcept { return core_.push_spin_; }
  status result(status ended) noexcept;
  status give_up() noexcept;  // a call that does not wait
  watch::subject about() const noexcept {
    return {.object = &core_,
            .type = "sluice::router",
            .wants = "push",
            .by = watch::served_by::takers,
            .capacity = core_.capacity_};
  }

 private:
  router_core& core_;
  push_node node_;
};

// A member's wait for its next item; what it had before is finished by asking.
class router_core::next_op {
 public:
  explicit next_op(member& m) noexcept : member_(m) {}
  bool ready() const noexcept {
    return member_.core_.queued_.load(relaxed) > 0 || member_.core_.closed_.load(relaxed);
  }
  bool attempt() noexcept;
  enlisted enlist(waiter& who) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return member_.core_.next_spin_; }
  outcome<routed_ptr> result(status ended) noexcept;
  watch::subject about() const noexcept { return {&member_.core_, "sluice::router", "next"}; }

 private:
  bool take(aftermath& after) noexcept;
  member& member_;
  next_node node_;
};

}  // namespace sluice::detail
