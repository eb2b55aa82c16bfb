#pragma once

// Draws the measurements: items in flight and resident memory over time, one line for each run.

#include <string>
#include <vector>

#include "examples/pipeline_memory/measure.hpp"

namespace pipeline_memory {

// A number that is easy to read on an axis, and not below `value`: 1, 2 or 5 times a power of ten.
double round_up(double value);

std::string to_svg(const settings& s, const measured& bounded, const measured& unbounded);

}  // namespace pipeline_memory
