#pragma once

// Entities by key: an application says which room, account or device it means, and never whether
// that is in memory.
//
// `of(key)` gives the address of the one actor for a key. A message to it brings the actor into
// memory: it is made, `A(key, arguments...)` or `A(arguments...)`, and given what was saved. It
// goes when nobody has sent to it for `idle`, or when there are more than `live_max`, the one that
// was used longest ago first; its state is saved before. An actor says its state by
//   std::string save() const       bytes of its own making, with a version if that may change
//   void load(std::string_view)    called after the constructor, before any message
//   bool may_rest() const          optional: false keeps it in memory for now
//
// Guarantees: any thread may call anything. Never two actors of one key at a time, also while one
// is saved. A message that was accepted (ok) is not lost to resting: one that comes while it is
// saved keeps it, one that comes later brings it back; order between a sender and a key is kept.
// A ref or `self()` of such an actor works on after it has rested (it does not count as use at
// once, but when it is looked at). No thread waits for the store: messages gather in the mailbox,
// by its bound, while it is loaded or saved. It is saved as well when it is stopped, closed, or the
// system ends. What was changed since it was last saved is lost in a crash, and when it fails: made
// anew, it has what was saved last. Where that is too little: save_now (keyed_actor.hpp).
// A load that fails (the store, the constructor, load()): those who asked hear that exception, what
// was sent is a dead letter, and the next message tries again. A save that fails keeps it in memory
// and is tried again. Both are told to `on_failure`.
// Limits: live_max is what it aims at: those with messages or without a saved state stay. At
// `live_limit` who sends to a key that is not in memory waits for room, or hears `full`, as if that
// one's mailbox were full; one of these actors itself always hears `full` then. Only what is sent
// without a bound (timers, ends that are watched), and what had waited for room in the mailbox of
// one that then rested, brings it back all the same. Timers,
// children and answers that it owes end when it rests; say so in may_rest. What it watches and who
// watches it hear of each rest as of an end.
// Its destructor closes it: they are saved and end; it does not wait. The store must outlive the
// system.
// Cost: a live one about 2 KB beside its state; one at rest nothing.
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

  // The arguments are copied, and given to every one. One for each type in a system: before another
  // is made, this one must have `ended`.
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

  // Ends the actor after the messages that it has, and removes its state. Ready when that is done;
  // what is sent to the key after that begins anew. Also of a state that cannot be loaded.
  future<void> forget(std::string_view key) { return core_->forget(key); }

  // Every one handles the messages that it has, is saved, and ends; then nothing is taken any more.
  void close() noexcept { core_->close(); }
  // Ready when all of them have ended after close, or with the system.
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
