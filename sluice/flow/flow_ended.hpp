#pragma once

// The reason for the end of a fan_out or fan_in.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class flow_ended : std::uint8_t {
  source_ended,  // every source is closed, and all its items were passed on
  no_consumer,   // every consumer has closed its end
  cancelled,     // a stop was requested
};

constexpr std::string_view to_string(flow_ended why) noexcept {
  switch (why) {
    case flow_ended::source_ended: return "source ended";
    case flow_ended::no_consumer: return "no consumer";
    case flow_ended::cancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace sluice
