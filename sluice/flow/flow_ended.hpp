#pragma once

// Why a fan_out or fan_in came to its end.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class flow_ended : std::uint8_t {
  source_ended,  // every source is closed, and all its items were handed on
  no_consumer,   // every consumer has closed its line
  cancelled,     // it was asked to stop
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
