#pragma once

// Says what a bounded thing does when it is full. The same five words everywhere.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class overflow : std::uint8_t {
  block,        // the producer waits for room (a try_ call answers `full` instead)
  reject,       // the producer hears `full` at once and keeps the item
  drop_newest,  // the incoming item is dropped; the producer hears `dropped`
  drop_oldest,  // the item that waited longest is dropped to make room
  latest,       // the most recently queued item is replaced: the last value is never lost
};

constexpr std::string_view to_string(overflow policy) noexcept {
  switch (policy) {
    case overflow::block: return "block";
    case overflow::reject: return "reject";
    case overflow::drop_newest: return "drop_newest";
    case overflow::drop_oldest: return "drop_oldest";
    case overflow::latest: return "latest";
  }
  return "unknown";
}

}  // namespace sluice
