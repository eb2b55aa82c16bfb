#pragma once

// Several actors of one kind, as many as the load asks for: more when messages queue up, fewer when
// some have nothing to do.
//
// Use it for actors that wait for something slow (a database, a process, another service) and hold
// something dear (a connection): idle ones give it back. Prefer `actor_router` for a fixed number.
// All that actor_router.hpp says holds here; beyond that:
//
// It begins with `members_min`. It grows by one when a message is accepted by a member that has
// `grow_at` queued or more, and the queues of all have that on average; then not before
// `grow_pause`, and so on while it is so, up to `members_max` (those that drain included).
// It shrinks by each member that has begun nothing for `idle_for`, and does nothing (up to a
// quarter of that later, when it looks); never within `idle_for` of the last growth. So a load that
// goes up and down faster than that leaves the number as it is.
// A member that is let go takes no new messages, finishes what is in its mailbox, and ends.
// By default messages go to the least loaded, of equals the oldest, so that the last ones run dry
// when there is little to do. In turn (round_robin) all are kept busy by a trickle, and the pool
// shrinks only when almost nothing comes. By key, some keys move whenever it grows or shrinks.
// Guarantees: those of a router. Time is the system's. At `members_min` and without load there is
// no timer.
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
  actor_options member{};   // of each; its name is followed by its slot
  supervision supervise{};  // what becomes of a member that fails
};

template <class A>
class actor_pool : public detail::routed_calls<A> {
 public:
  using options = actor_pool_options;

  // Members are made from copies of the arguments. At the top of the tree; or, in a handler or
  // constructor of `parent` and nowhere else, as a part of that.
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
          "a queue to grow at, a pause and an idle time that are longer than nothing");
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
