#pragma once

// Finds actors by name: who starts first need not be handed to who starts last.
//
// Use it for the few actors that a whole program knows: "log", "accounts". Hand refs around where
// that is easy; use keyed actors for entities of which there is one for each key.
//
// Guarantees: any thread may call anything. A name belongs to one actor at a time, an actor may
// have several names. `register_as` refuses a name that is taken, and an actor that has ended. An
// entry vanishes when its actor has ended; a restart leaves it. `find<A>` gives an empty ref when
// there is no such name, or when it is not that of an A. `wait_for<A>` waits until the name is that
// of an A: ok with the ref, timed_out, stopped. Those who wait for a name all get it, in the order
// in which they came; what they got may have ended since. Where you resume: a coroutine on its
// executor, else on the thread that registers. A registry may go before its actors; nobody may wait
// in it then. Cost: a lock and a lookup; an entry is three allocations, and one watcher at each
// actor. It keeps some memory of an actor (as a ref does), not its state.
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
    name_taken,   // by another actor, or by this one
    actor_ended,  // it has no use for a name
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
  explicit actor_registry(named as) : actor_registry() { watch::set_name(names_.get(), as.name()); }
  actor_registry(const actor_registry&) = delete;
  actor_registry& operator=(const actor_registry&) = delete;
  ~actor_registry() {
    check(waiting() == 0, "sluice::actor_registry", "nobody who waits for a name at its end");
  }

  template <class A>
  registration register_as(std::string name, const ref<A>& who) {
    if (who.is_over()) return registration::actor_ended;
    return names_->add(std::move(name), detail::cell_ptr(&who.cell_of()), detail::mark_of<A>())
               ? registration::done
               : registration::name_taken;
  }
  // False: it is not the name of this actor.
  template <class A>
  bool unregister(std::string_view name, const ref<A>& who) {
    return names_->remove(name, who.cell_of());
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

  // In alphabetical order.
  std::vector<std::string> names() const { return names_->names(); }
  std::size_t size() const noexcept { return names_->size(); }
  // How many wait for names right now.
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
