#pragma once

// Entities by key: an application names the room, account or device, and need not know whether that
// is in memory.
//
// `of(key)` returns the address of the actor for a key. A message to it activates the actor:
// `A(key, arguments...)` or `A(arguments...)` is constructed and loads its saved state. The actor
// is passivated, saved and removed from memory, when it got no message for `idle`, or, the least
// recently used first, when there are more than `live_max`. Its state is defined by
//   std::string save() const        bytes in a format of its own, with a version if it may change
//   void load(std::string_view)     called after the constructor, before any message
//   bool may_passivate() const      optional: false keeps it in memory for now
//
// Guarantees: any thread may call anything. There are never two actors of one key, not even during
// a save. An accepted (ok) message is not lost to passivation: during the save it keeps the actor
// in memory, later it activates it again; order between a sender and a key is kept. A ref or
// `self()` stays valid (its messages count as use only when use is checked). No thread waits for
// the store: messages gather in the mailbox, up to its bound, during a load or save. An actor is
// also saved when it is stopped, closed, or ended with the system. Changes since the last save are
// lost in a crash, and in a failure: a restart loads the last saved state. If that is too little:
// save_now (keyed_actor.hpp). If a load fails (the store, the constructor, load()), askers get that
// exception, other messages become dead letters, and the next message tries again. If a save fails,
// the actor stays in memory, and the save is retried. Both are reported to `on_failure`.
// Limits: live_max is a target: actors with messages or without a saved state stay. At `live_limit`
// a key that is not in memory behaves like a full mailbox: senders wait or get full; keyed actors
// always get full. Timers, death watches, and senders that already waited for capacity in
// the mailbox of an actor that was then passivated activate it even at live_limit. Passivation ends
// timers, children and open replies: prevent it with may_passivate. A death watch by or on a
// passivated actor ends as if it had terminated. The destructor closes: the actors are saved and
// end; it does not wait. The store must outlive the system.
// Cost: a live actor about 2 KB beside its state; a passivated one nothing.
//
//     keyed_actors<room> rooms(system, {.store = &store, .type = "room", .idle = 1min});
//     (void)rooms.of("lobby").send(say{"hello"});
//     system.of<room>("lobby")                    // the same

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/detail/keyed_cell.hpp"
#include "sluice/actor/keyed_options.hpp"
#include "sluice/actor/keyed_ref.hpp"

namespace sluice {

template <class A>
class keyed_actors {
 public:
  using options = keyed_options;

  // Every actor is constructed from copies of the arguments. A system has one keyed_actors for each
  // type; the next one may be constructed when this one has `ended`.
  template <class... Args>
  explicit keyed_actors(actor_system& system, options o = {}, Args... args)
      : system_(system.core()) {
    if (o.type.empty()) o.type = detail::type_name<A>();
    core_ = std::make_shared<detail::typed_keyed_core<A>>(
        system.core(), std::move(o), [args...](void* at, const std::string& key) {
          if constexpr (std::is_constructible_v<A, const std::string&, const Args&...>) {
            ::new (at) A(key, args...);
          } else {
            ::new (at) A(args...);
          }
        });
    system_.set_part(&detail::keyed_kind<A>, core_);
    core_->open();
  }
  keyed_actors(const keyed_actors&) = delete;
  keyed_actors& operator=(const keyed_actors&) = delete;
  ~keyed_actors() {
    core_->close();
    system_.set_part(&detail::keyed_kind<A>, {});
  }

  keyed_ref<A> of(std::string_view key) const { return keyed_ref<A>(core_, std::string(key)); }

  // Ends the actor after its queued messages, and removes its state, also a state that cannot be
  // loaded. The future is ready when that is done; later messages start from an empty state.
  future<void> forget(std::string_view key) { return core_->forget(key); }

  // Closes all actors: each handles its queued messages, is saved, and ends. No message is accepted
  // after that.
  void close() noexcept { core_->close(); }
  // Returns a future that is ready when all actors have ended, after close or with the system.
  future<actor_end> ended() const { return ref<A>(detail::cell_ptr(&core_->parent())).ended(); }

  keyed_stats stats() const { return core_->stats(); }

 private:
  detail::system_core& system_;
  std::shared_ptr<detail::keyed_core> core_;
};

namespace detail {

template <class A>
keyed_ref<A> keyed_ref_in(system_core& system, std::string_view key) {
  std::shared_ptr<void> found = system.part(&keyed_kind<A>);
  check(found != nullptr, "sluice::actor_system::of", "a keyed_actors of this type in the system");
  return keyed_ref<A>(std::static_pointer_cast<keyed_core>(std::move(found)), std::string(key));
}

}  // namespace detail

}  // namespace sluice
