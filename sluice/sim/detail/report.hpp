#pragma once

// A schedule as people read it: a line a step, a column a thread.

#include <source_location>
#include <string>
#include <vector>

#include "sluice/sim/detail/scheduler.hpp"

namespace sluice::sim::detail {

// The file, without the folders that depend on where it was built, and the line; empty: unknown.
std::string place(const std::source_location& where);

std::string in_columns(const written_steps& steps, const std::vector<std::string>& names);

}  // namespace sluice::sim::detail
