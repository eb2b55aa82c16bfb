#pragma once

// A list of the live actors of a system, for counters and reports.

#include <vector>

#include "sluice/actor/detail/cell.hpp"

namespace sluice::detail {

// Returns every live actor below `root`: a parent before its children, and those in the order of
// their spawning. Some may have terminated meanwhile. Any thread.
std::vector<cell_ptr> live_cells(const cell& root);

}  // namespace sluice::detail
