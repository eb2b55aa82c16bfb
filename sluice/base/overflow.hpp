#pragma once

// Says what a bounded thing does when it is full. The same words everywhere; the last is for
// executors alone, because only there an item can be dealt with by whoever brought it.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class overflow : std::uint8_t {
  block,        // the producer waits for room (a try_ call answers `full` instead)
  reject,       // the producer hears `full` at once and keeps the item
  drop_newest,  // the incoming item is dropped; the producer hears `dropped`
  drop_oldest,  // the item that waited longest is dropped to make room
  latest,       // the most recently queued item is replaced: the last value is never lost
  caller_runs,  // the thread that submits runs it itself, and so submits more slowly
};

constexpr std::string_view to_string(overflow policy) noexcept {
  switch (policy) {
    case overflow::block: return "block";
    case overflow::reject: return "reject";
    case overflow::drop_newest: return "drop_newest";
    case overflow::drop_oldest: return "drop_oldest";
    case overflow::latest: return "latest";
    case overflow::caller_runs: return "caller_runs";
  }
  return "unknown";
}

}  // namespace sluice
