#pragma once

#include <vector>

#include "sluice/actor/detail/cell.hpp"

namespace sluice::detail {

// Every actor below this one that lives, or did a moment ago: parents before their children, those
// in the order of their making. Any thread.
std::vector<cell_ptr> live_cells(const cell& root);

}  // namespace sluice::detail
