#pragma once

// Several actors of one kind behind one address: the sender does not know which of them takes the
// message.
//
// Use it if one actor is too slow, or if each of several actors has a part of the state. Prefer
// `actor_pool` if the number must follow the load, a `router` (executor/) if the work needs no
// actors, `event_bus` if the receivers are of many kinds.
//
// A router spawns its members, and is their address: cheap to copy, with the calls of a ref.
// `rule` selects the receiver of a message:
//   round_robin    each in its turn, skipping members whose mailbox is full
//   least_loaded   the member with the fewest queued and begun messages; on a tie the lowest slot
//   by_key         the owner of `m.key()`: an integer, an enumerator or any type with std::hash; a
//                  message type without key() goes round robin. Of k members, a new one takes about
//                  every (k+1)th key, and one that leaves gives away only its own keys
// `broadcast` sends a copy to each, `ask_first` asks all and takes the first reply.
// Guarantees: any thread may call anything. Messages from one sender to the same member are begun
// in their order; by key, that holds for a key while the members do not change. The sender gets the
// same status as from a ref. Full means that all mailboxes are full (by key: the owner's); `send`
// then waits at the member whose turn it was. A mailbox that drops does so only if all are full. A
// member that ended is skipped, and replaced by one with the same slot and keys, as often as
// `supervise` allows restarts; beyond that, later. Until then its keys go to other members. Without
// members `send` waits and `try_send` returns full. The mailbox of an ended member is lost, as with
// any actor. For a member that fails, `supervise` decides; a restart keeps the mailbox. `stop` and
// `close` end all members, as does the end of the parent. Dropping the router ends none. If a
// member's constructor throws while the router is constructed, that throws; later, the group fails,
// and its parent decides.
// Cost: a send is that of a ref and two atomic adds; least_loaded and by_key read every member.
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
  actor_options member{};   // of each member; the slot is appended to the name
  supervision supervise{};  // decides about members that fail
};

template <class A>
class actor_router : public detail::routed_calls<A> {
 public:
  using options = actor_router_options;

  // Members are constructed from copies of the arguments. The router is at the top of the tree, or,
  // only in a handler or constructor of `parent`, below `parent`.
  template <class... Args>
  explicit actor_router(actor_system& system, options o, Args&&... args)
      : detail::routed_calls<A>(system.root(), group(std::move(o)), std::forward<Args>(args)...) {}
  template <class P, class... Args>
  explicit actor_router(const ref<P>& parent, options o, Args&&... args)
      : detail::routed_calls<A>(detail::routed_calls<A>::own_turn_of(parent), group(std::move(o)),
                                std::forward<Args>(args)...) {}

  // Changes the number of members, soon after the call. Surplus members finish their mailbox and
  // end.
  void resize(std::size_t members) const {
    check(members > 0, "sluice::actor_router", "at least one member");
    detail::member_keeper::request_resize(this->keeper(), members);
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
