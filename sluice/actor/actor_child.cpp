#include "sluice/actor/actor_child.hpp"

#include <utility>

#include "sluice/actor/detail/cell.hpp"

namespace sluice {

std::vector<actor_child> detail::children_of(const cell& parent, std::size_t limit) {
  std::vector<actor_child> all;
  for (cell_ptr& each : parent.eldest_children(limit)) {
    actor_child& child = all.emplace_back();
    child.id = each->id();
    child.name = each->name();
    child.type = each->type();
    child.state = each->state();
    child.restarts = each->restarts();
    child.children = each->child_count();
    child.actor = any_ref(std::move(each));
  }
  return all;
}

std::vector<actor_child> detail::address::children(std::size_t limit) const {
  return children_of(cell_of(), limit);
}

}  // namespace sluice
