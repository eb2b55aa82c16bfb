#pragma once

// Formats a schedule: one line per step, one column per thread.

#include <source_location>
#include <string>
#include <vector>

#include "sluice/sim/detail/scheduler.hpp"

namespace sluice::sim::detail {

// Returns the file without its folders (they depend on the build) and the line; "" if unknown.
std::string place(const std::source_location& where);

std::string in_columns(const written_steps& steps, const std::vector<std::string>& names);

}  // namespace sluice::sim::detail
