#pragma once

// A child of an actor, as listed by `children` of a ref, of an actor or of the system.
//
// Guarantees: any thread may get the list, also while the actor is stuck in a handler. Each entry
// is a snapshot of one child, taken at its own moment, in the order of spawning; a child that ends
// meanwhile is `terminated`. A parent that watches its child is notified of the end after the child
// has left the list. The list has at most `limit` children, the eldest; `child_count` gives the
// number of all.
// Cost: `child_count` takes a short lock; the list takes one for each entry, and the lock of the
// parent while it collects them, which delays senders to the parent.
//
//     for (const actor_child& c : system.children())
//       if (c.restarts > 3) std::printf("%s: %u restarts\n", c.name.c_str(), c.restarts);

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/actor_state.hpp"
#include "sluice/actor/any_ref.hpp"

namespace sluice {

struct actor_child {
  any_ref actor{};
  actor_id id = 0;
  std::string name{};
  std::string_view type{};
  actor_state state = actor_state::running;
  std::uint32_t restarts = 0;
  std::size_t children = 0;  // of this child
};

namespace detail {

std::vector<actor_child> children_of(const cell& parent, std::size_t limit);

}  // namespace detail
}  // namespace sluice
