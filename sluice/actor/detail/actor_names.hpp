#pragma once

// Names of actors by id, for reports and traces. Of ended actors only the last `ended_max` names
// are kept, so that memory stays bounded.

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sluice/actor/detail/actor_table.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::detail {

// Returns the type without its enclosing namespaces: "queue<a::b>" for "sluice::queue<a::b>".
std::string_view short_type(std::string_view type) noexcept;

class actor_names {
 public:
  explicit actor_names(std::size_t ended_max) noexcept : ended_max_(ended_max) {}

  void spawned(actor_id id, std::string_view name, std::string_view type);
  void ended(actor_id id);
  // Returns the name of the actor, "outside" for id 0, "actor-" and the id if it is unknown.
  std::string of(actor_id id) const;

 private:
  const std::size_t ended_max_;
  mutable actor_table<std::string> names_;
  guarded<std::deque<actor_id>> ended_;  // ended actors with a name in names_, oldest first
};

}  // namespace sluice::detail
