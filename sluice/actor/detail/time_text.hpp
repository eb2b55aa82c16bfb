#pragma once

// Durations as text, for reports.

#include <chrono>
#include <string>

namespace sluice::detail {

// Returns the duration in a readable unit: "250 ms", "1.234 us".
std::string time_text(std::chrono::nanoseconds time);

}  // namespace sluice::detail
