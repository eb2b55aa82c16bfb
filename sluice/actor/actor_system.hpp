#pragma once

// The actors of a program, or of a part of it: spawns the first actors, runs all of them on one
// executor, and ends them in order.
//
// Guarantees: any thread may call anything, but its own actors must not wait for its end. The
// actors that the system spawns are the top of the tree. If such an actor fails, `options::top`
// decides; escalate stops it. There are three ways to shut down. `close`: every actor ends when its
// mailbox is empty, children before parents, youngest first. `stop`: each ends after its current
// message, in the same order; messages left in mailboxes become dead letters. `shutdown`:
// closes, and stops at the limit (for one actor and those below it: ref.hpp). Later calls of
// `spawn` return refs to terminated actors. The destructor stops, and waits for the end; a handler
// that never ends blocks it for ever. The executor must outlive the system, which its destructor
// checks, and must still be running.
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

  // Constructs the actor from copies of the arguments, also at each restart. Throws the exception
  // of its constructor.
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
  // Constructs the actor by `make`, which is called again for each restart.
  template <class A, class Make>
  ref<A> spawn_from(const actor_options& o, Make make) {
    return ref<A>(detail::spawn_cell<A>(core_.root(), o, std::move(make)));
  }

  // Returns the address of the actor for this key, whether it is in memory or not. Requires a
  // keyed_actors<A> in this system (keyed_actors.hpp, which must be included).
  template <class A>
  keyed_ref<A> of(std::string_view key) {
    return detail::keyed_ref_in<A>(core_, key);
  }

  void close() noexcept;
  void stop() noexcept;
  // Returns ok if all actors ended in time, each with an empty mailbox. Otherwise requests a stop
  // and returns timed_out or stopped without waiting for the end: an actor that is stuck in its
  // handler blocks `join` and the destructor.
  status shutdown(const wait_limits& limits);
  // Blocks until every actor has ended. Returns ok, timed_out or stopped.
  status join(const wait_limits& limits = {});
  auto async_join(wait_limits limits = {}) { return core_.ended().async_wait(std::move(limits)); }

  // Returns the live actors that the system has spawned, the eldest first, at most `limit`
  // (actor_child.hpp). Members of routers and pools, and keyed actors, are below internal actors.
  std::vector<actor_child> children(std::size_t limit = 1000) const {
    return detail::children_of(core_.root(), limit);
  }
  std::size_t child_count() const noexcept { return core_.root().child_count(); }

  stats_type stats() const noexcept { return core_.stats(); }
  clock& time() const noexcept { return core_.clock(); }
  executor& runs_on() const noexcept { return core_.on(); }
  // For the library: the root of the tree, and the state that all actors share.
  detail::cell& root() const noexcept { return core_.root(); }
  detail::system_core& core() noexcept { return core_; }
  const detail::system_core& core() const noexcept { return core_; }

 private:
  const executor_use use_;
  detail::system_core& core_;  // may be kept longer by refs of its actors
};

}  // namespace sluice
