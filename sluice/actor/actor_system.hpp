#pragma once

// The actors of a program, or of a part of it: spawns the first of them, runs them all on one
// executor, and ends them in order.
//
// Guarantees: any thread may call anything, but its own actors must not wait for its end.
// The actors that it spawns itself are the top of the tree: `options::top` says what becomes of
// those that fail, and one for which that says escalate is stopped.
// Three ways to shut down. `close`: every actor ends when its mailbox is empty, children before
// parents, the youngest first. `stop`: each ends after the message that it is on, in the same
// order; what is left in mailboxes becomes dead letters. `shutdown_within`: closes, and stops at
// the limit (of one actor and those below it: ref.hpp). After that `spawn` gives refs to actors
// that are over. The destructor stops, and waits; an actor that does not come to the end of its
// handler makes it wait for ever. The executor must outlive the system, which its destructor
// checks, and must still be run.
//
//     work_stealing_pool pool;
//     actor_system system(pool);
//     auto c = system.spawn<counter>();
//     (void)c.send(add{2});
//     std::printf("%d\n", c.ask(total{}).get());

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_child.hpp"
#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/actor_system_options.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/actor/ref.hpp"
#include "sluice/executor/executor.hpp"

namespace sluice {

template <class A>
class keyed_ref;

namespace detail {
template <class A>
keyed_ref<A> keyed_ref_in(system_core& system, std::string_view key);  // keyed_actors.hpp
}

class actor_system {
 public:
  using options = actor_system_options;
  using stats_type = actor_system_stats;

  explicit actor_system(executor& on, options o = {});
  actor_system(const actor_system&) = delete;
  actor_system& operator=(const actor_system&) = delete;
  ~actor_system();

  // Made from copies of the arguments, also when it is made anew. Throws what its constructor does.
  template <class A, class... Args>
  ref<A> spawn(Args&&... args) {
    return ref<A>(
        detail::spawn_cell<A>(core_.root(), detail::from_arguments<A, std::decay_t<Args>...>(
                                                std::in_place, std::forward<Args>(args)...)));
  }
  template <class A, class... Args>
  ref<A> spawn_with(const actor_options& o, Args&&... args) {
    return ref<A>(detail::spawn_cell<A>(core_.root(), o,
                                        detail::from_arguments<A, std::decay_t<Args>...>(
                                            std::in_place, std::forward<Args>(args)...)));
  }
  // Made by a function that returns one, called anew for each restart.
  template <class A, class Make>
  ref<A> spawn_from(const actor_options& o, Make make) {
    return ref<A>(detail::spawn_cell<A>(core_.root(), o, std::move(make)));
  }

  // The one actor of its type for this key, whether it is in memory or not: where there is a
  // keyed_actors<A> for this system (keyed_actors.hpp, which must be included).
  template <class A>
  keyed_ref<A> of(std::string_view key) {
    return detail::keyed_ref_in<A>(core_, key);
  }

  void close() noexcept;
  void stop() noexcept;
  // ok: all ended in time, each with an empty mailbox. timed_out, stopped: they were told to stop
  // then. It does not wait for that: one that is stuck in its handler holds up `join`, and the
  // destructor.
  status shutdown_within(const wait_limits& limits);
  // Waits until every actor has ended. ok, timed_out, stopped.
  status join(const wait_limits& limits = {});
  auto async_join(wait_limits limits = {}) { return core_.ended().async_wait(std::move(limits)); }

  // The actors that it has spawned itself and that live, the eldest first, no more than `limit`
  // (actor_child.hpp). Those of routers, pools and keyed actors are below actors of their own.
  std::vector<actor_child> children(std::size_t limit = 1000) const {
    return detail::children_of(core_.root(), limit);
  }
  std::size_t child_count() const noexcept { return core_.root().child_count(); }

  stats_type stats() const noexcept { return core_.stats(); }
  clock& time() const noexcept { return core_.clock(); }
  executor& runs_on() const noexcept { return core_.on(); }
  // For the library: the parent of those that it spawns itself, and what all of them share.
  detail::cell& root() const noexcept { return core_.root(); }
  detail::system_core& core() noexcept { return core_; }
  const detail::system_core& core() const noexcept { return core_; }

 private:
  const executor_use use_;
  detail::system_core& core_;  // refs of its actors may keep it for longer
};

}  // namespace sluice
