#pragma once

// Writes what actor_trace has recorded as text.

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/actor/actor_trace.hpp"

namespace sluice::detail {

std::string mermaid_of(const std::vector<trace_event>& events, const actor_names& names,
                       const mermaid_options& o, std::uint64_t lost);
std::string chrome_json_of(const std::vector<trace_event>& events, const actor_names& names,
                           std::uint64_t lost);

}  // namespace sluice::detail
