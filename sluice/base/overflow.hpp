#pragma once

// The policy of a bounded queue, channel or executor for an item that arrives when it is full.
// `caller_runs` is for executors only: the items of a queue cannot be run.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class overflow : std::uint8_t {
  block,        // the producer waits for capacity (a try_ call returns `full` instead)
  reject,       // the push returns `full` at once and the producer keeps the item
  drop_newest,  // the incoming item is dropped; the push returns `dropped`
  drop_oldest,  // the item that waited longest (with priorities: the least urgent) is dropped
  latest,       // the most recently queued item is replaced: the last value is never lost
  caller_runs,  // the submitting thread runs the function itself, which slows its submissions
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
