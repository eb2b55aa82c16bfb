#pragma once

// Several actors of one kind whose number follows the load: more when messages queue up, fewer when
// members are idle.
//
// Use it for actors that wait for slow operations (a database, a process, another service) and hold
// an expensive resource (a connection): idle members release it. Prefer `actor_router` for a fixed
// number. actor_router.hpp applies here too; in addition:
//
// A pool starts with `members_min` members. It grows by one when a member that has `grow_at` or
// more messages queued accepts another one, and the average over all members is at least that; then
// not again before `grow_pause`, and up to `members_max` (draining members included). It removes
// each member that has begun nothing for `idle_for` and has nothing to do (checked up to a quarter
// of `idle_for` later), but none within `idle_for` of the last growth. So a load that changes
// faster than that does not change the pool. A removed member gets no new messages, finishes its
// mailbox, and ends. By default messages go to the least loaded member; of equals, to the oldest,
// so that the youngest become idle when there is little load. With round_robin a small load keeps
// all members busy, and the pool shrinks only when almost no messages arrive. With by_key, some
// keys move at each change of size.
// Guarantees: those of a router. Time is the system's. At `members_min` and without load the pool
// has no timer.
//
//     actor_pool<connection> db(system, {.members_min = 1, .members_max = 16}, "dbname=shop");
//     auto rows = db.ask(query{"select 1"}, deadline::after(2s)).get();
//     log(db.stats().members, db.stats().grown, db.stats().drained);

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "sluice/actor/detail/routed_calls.hpp"

namespace sluice {

struct actor_pool_options {
  routing rule = routing::least_loaded;
  std::size_t members_min = 1;
  std::size_t members_max = 8;
  std::uint32_t grow_at = 4;
  std::chrono::nanoseconds grow_pause = std::chrono::milliseconds(10);
  std::chrono::nanoseconds idle_for = std::chrono::seconds(5);
  std::string name = "pool";
  actor_options member{};   // of each member; the slot is appended to the name
  supervision supervise{};  // decides about members that fail
};

template <class A>
class actor_pool : public detail::routed_calls<A> {
 public:
  using options = actor_pool_options;

  // Members are constructed from copies of the arguments. The pool is at the top of the tree, or,
  // only in a handler or constructor of `parent`, below `parent`.
  template <class... Args>
  explicit actor_pool(actor_system& system, options o, Args&&... args)
      : detail::routed_calls<A>(system.root(), group(std::move(o)), std::forward<Args>(args)...) {}
  template <class P, class... Args>
  explicit actor_pool(const ref<P>& parent, options o, Args&&... args)
      : detail::routed_calls<A>(detail::routed_calls<A>::own_turn_of(parent), group(std::move(o)),
                                std::forward<Args>(args)...) {}

 private:
  static detail::group_options group(options o) {
    check(o.grow_at > 0 && o.grow_pause.count() > 0 && o.idle_for.count() > 0, "sluice::actor_pool",
          "grow_at, grow_pause and idle_for > 0");
    detail::group_options g;
    g.rule = o.rule;
    g.name = std::move(o.name);
    g.member = std::move(o.member);
    g.supervise = std::move(o.supervise);
    g.members_min = o.members_min;
    g.members_max = o.members_max;
    g.grow_at = o.grow_at;
    g.grow_pause = o.grow_pause;
    g.idle_for = o.idle_for;
    return g;
  }
};

}  // namespace sluice
