#include "sluice/actor/detail/live_cells.hpp"

namespace sluice::detail {

std::vector<cell_ptr> live_cells(const cell& root) {
  std::vector<cell_ptr> all;
  std::vector<cell_ptr> to_visit;
  const auto visit_children = [&](const cell& parent) {
    const std::vector<cell*> children = parent.children();
    // The stack's last entry is visited first, so the eldest child is pushed last.
    for (auto at = children.rbegin(); at != children.rend(); ++at) {
      to_visit.push_back(cell_ptr::adopt(*at));
    }
  };
  visit_children(root);
  while (!to_visit.empty()) {
    all.push_back(std::move(to_visit.back()));
    to_visit.pop_back();
    visit_children(*all.back());
  }
  return all;
}

}  // namespace sluice::detail
