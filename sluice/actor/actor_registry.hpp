#pragma once

// Looks actors up by name, so that refs need not be passed around in start-up order.
//
// Use it for the few actors that a whole program knows: "log", "accounts". Pass refs where that is
// easy; use keyed actors for entities of which there is one for each key.
//
// Guarantees: any thread may call anything. A name belongs to one actor at a time; an actor may
// have several names. `register_as` refuses a name that is taken, and an actor that has ended. The
// end of an actor removes its entries; a restart does not. `find<A>` returns an empty ref if the
// name does not exist or belongs to an actor of another type. `wait_for<A>` blocks until the name
// belongs to an A and returns the ref, or timed_out or stopped. All waiters for a name get the ref,
// in the order of their calls; the actor may have ended since. Where you resume: a coroutine on its
// executor; without one, on the registering thread. A registry may be destroyed before its actors,
// but not while it has waiters.
// Cost: a lock and a lookup; an entry is three allocations, and one watcher at the actor. An entry
// keeps some memory of the actor (as a ref does), not its state.
//
//     actor_registry names;
//     if (names.register_as("log", log) != registration::done) complain();
//     if (auto log = names.find<logger>("log")) (void)log.send(line{"started"});
//     auto db = names.wait_for<database>("db", {deadline::after(5s), stop});
//     auto other = co_await names.async_wait_for<database>("db");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/actor/detail/named_cells.hpp"
#include "sluice/actor/ref.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

enum class [[nodiscard]] registration : std::uint8_t{
    done,
    name_taken,  // by another actor or by the same one
    actor_ended,
};

constexpr std::string_view to_string(registration r) noexcept {
  switch (r) {
    case registration::done:
      return "done";
    case registration::name_taken:
      return "the name is taken";
    case registration::actor_ended:
      return "the actor has ended";
  }
  return "unknown";
}

class actor_registry {
  template <class A>
  class wait_op;

 public:
  actor_registry() : names_(std::make_shared<detail::named_cells>()) {}
  explicit actor_registry(named as) : actor_registry() {
    wait_report::set_name(names_.get(), as.name());
  }
  actor_registry(const actor_registry&) = delete;
  actor_registry& operator=(const actor_registry&) = delete;
  ~actor_registry() {
    check(waiting() == 0, "sluice::actor_registry", "no waiters at its destruction");
  }

  template <class A>
  registration register_as(std::string name, const ref<A>& actor) {
    if (actor.is_terminated()) return registration::actor_ended;
    return names_->add(std::move(name), detail::cell_ptr(&actor.cell_of()), detail::mark_of<A>())
               ? registration::done
               : registration::name_taken;
  }
  // Returns false if the name does not belong to this actor.
  template <class A>
  bool unregister(std::string_view name, const ref<A>& actor) {
    return names_->remove(name, actor.cell_of());
  }

  template <class A>
  [[nodiscard]] ref<A> find(std::string_view name) const {
    return ref<A>(names_->find(name, detail::mark_of<A>()));
  }
  template <class A>
  outcome<ref<A>> wait_for(std::string name, const wait_limits& limits = {}) {
    return block_on(wait_op<A>(*names_, std::move(name)), limits);
  }
  // co_await gives an outcome<ref<A>>.
  template <class A>
  auto async_wait_for(std::string name, wait_limits limits = {}) {
    return awaitable<wait_op<A>>(std::move(limits), *names_, std::move(name));
  }

  // Returns the names in alphabetical order.
  std::vector<std::string> names() const { return names_->names(); }
  std::size_t size() const noexcept { return names_->size(); }
  // Returns the number of waiters.
  std::size_t waiting() const noexcept { return names_->waiting(); }

 private:
  template <class A>
  class wait_op : public detail::name_wait {
   public:
    wait_op(detail::named_cells& in, std::string name)
        : name_wait(in, std::move(name), detail::mark_of<A>()) {}
    outcome<ref<A>> result(status ended) {
      if (!ended) return ended;
      return ref<A>(take_found());
    }
  };

  const std::shared_ptr<detail::named_cells> names_;
};

}  // namespace sluice
