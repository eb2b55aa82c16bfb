#pragma once

// Several actors of one kind behind one address: who sends does not know which of them takes it.
//
// Use it when one actor is not fast enough for what it is sent, or when several hold a part of the
// state each. Prefer `actor_pool` when their number is to follow the load, a `router` (executor/)
// when the work needs no actor's life, `event_bus` when receivers are of many kinds.
//
// A router spawns its members, and is their address: cheap to copy, with the calls of a ref.
// `rule` says to whom a message goes:
//   round_robin    each in its turn, passing over those whose mailbox is full
//   least_loaded   the one with the least queued and begun; of equals the one with the lowest slot
//   by_key         the one that owns `m.key()`: an integer, an enumerator or whatever std::hash
//                  takes; a message type without key() goes to each in turn. Of k members, one that
//                  joins takes about every (k+1)th key, one that leaves gives away only its own
// `broadcast` gives a copy to each, `ask_first` asks all and takes the first answer.
// Guarantees: any thread may call anything. Messages from one sender to the same member are begun
// in their order; by key that holds for a key while members do not change. The sender hears what a
// ref says. Full is when the mailboxes of all are (by key: the owner's); then `send` waits at the
// one whose turn it was. A mailbox that drops does so only when all are full.
// A member that ended is passed over, and replaced by one of the same slot, which has the same
// keys; no more often than `supervise` allows restarts, and a bit later beyond that. Meanwhile its
// keys go to others. With nobody there `send` waits, `try_send` says full. What was in the mailbox
// of one that ended is lost as it is with any actor. One that fails is dealt with as `supervise`
// says, and keeps its mailbox if that restarts it.
// `stop` and `close` end all; so does the end of its parent. Dropping the router ends nobody.
// If the constructor of a member throws when the router is made, that throws; later, the group
// fails, and its parent decides.
// Cost: a send is that of a ref and two atomic adds; least_loaded and by_key look at every member.
//
//     actor_router<resizer> desk(system, {.rule = routing::least_loaded, .members = 4}, "/tmp");
//     (void)desk.send(resize{picture, 640});
//     auto quote = desk.ask_first(price{item}, deadline::after(50ms)).get();

#include <cstddef>
#include <string>
#include <utility>

#include "sluice/actor/detail/routed_calls.hpp"

namespace sluice {

struct actor_router_options {
  routing rule = routing::round_robin;
  std::size_t members = 4;
  std::string name = "router";
  actor_options member{};   // of each; its name is followed by its slot
  supervision supervise{};  // what becomes of a member that fails
};

template <class A>
class actor_router : public detail::routed_calls<A> {
 public:
  using options = actor_router_options;

  // Members are made from copies of the arguments. At the top of the tree; or, in a handler or
  // constructor of `parent` and nowhere else, as a part of that.
  template <class... Args>
  explicit actor_router(actor_system& system, options o, Args&&... args)
      : detail::routed_calls<A>(system.root(), group(std::move(o)), std::forward<Args>(args)...) {}
  template <class P, class... Args>
  explicit actor_router(const ref<P>& parent, options o, Args&&... args)
      : detail::routed_calls<A>(detail::routed_calls<A>::own_turn_of(parent), group(std::move(o)),
                                std::forward<Args>(args)...) {}

  // Soon after there are so many. Those that are too many finish their mailbox and end.
  void resize(std::size_t members) const {
    check(members > 0, "sluice::actor_router", "one member at least");
    detail::member_keeper::tell_resize(this->keeper(), members);
  }

 private:
  static detail::group_options group(options o) {
    detail::group_options g;
    g.rule = o.rule;
    g.name = std::move(o.name);
    g.member = std::move(o.member);
    g.supervise = std::move(o.supervise);
    g.members_min = g.members_max = o.members;
    return g;
  }
};

}  // namespace sluice
