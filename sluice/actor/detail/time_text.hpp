#pragma once

#include <chrono>
#include <string>

namespace sluice::detail {

// For people: "250 ms", "1.234 us".
std::string time_text(std::chrono::nanoseconds time);

}  // namespace sluice::detail
