#pragma once

// One of the actors that another has spawned, as `children` of a ref, of an actor or of the system
// lists them.
//
// Guarantees: any thread may ask for the list, also while the actor is stuck in a handler. Each
// child is seen at one moment of its own, in the order in which they were spawned; one that ends
// meanwhile is `over`. A parent that watches its child hears of its end when it is in the list no
// more. The list has no more than `limit` of them, the eldest; `child_count` says how
// many there are.
// Cost: `child_count` a short lock; the list a short lock for each that is in it, and the lock of
// the parent while they are counted: who sends to the parent waits for that.
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
  any_ref who{};
  actor_id id = 0;
  std::string name{};
  std::string_view type{};
  actor_state state = actor_state::running;
  std::uint32_t restarts = 0;  // how often it has been made anew
  std::size_t children = 0;    // of its own
};

namespace detail {

std::vector<actor_child> children_of(const cell& parent, std::size_t limit);

}  // namespace detail
}  // namespace sluice
