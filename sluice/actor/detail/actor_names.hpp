#pragma once

// The names of actors by their numbers, for what is printed; of those that have ended, the last so
// many.

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sluice/actor/detail/actor_table.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::detail {

// A type without the namespaces that it is in: "sluice::queue<a::b>" is "queue<a::b>".
std::string_view short_type(std::string_view type) noexcept;

class actor_names {
 public:
  explicit actor_names(std::size_t ended_max) noexcept : ended_max_(ended_max) {}

  void spawned(actor_id who, std::string_view name, std::string_view type);
  void ended(actor_id who);
  // 0 is "outside"; one that is not known is "actor-" and its number.
  std::string of(actor_id who) const;

 private:
  const std::size_t ended_max_;
  mutable actor_table<std::string> names_;
  guarded<std::deque<actor_id>> ended_;  // whose names are still there, the oldest first
};

}  // namespace sluice::detail
