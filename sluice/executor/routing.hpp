#pragma once

// The routing rules of a router, and its counters.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

enum class routing : std::uint8_t {
  round_robin,    // workers in turn; skips full inboxes
  least_loaded,   // the worker with the fewest queued and begun items
  by_key,         // the worker that owns the item's key; few keys move on a join or leave
  by_priority,    // the most urgent queued item, to any free worker
  work_stealing,  // idle workers first, then in turn; an idle worker takes from the longest inbox
};

constexpr std::string_view to_string(routing rule) noexcept {
  switch (rule) {
    case routing::round_robin: return "round_robin";
    case routing::least_loaded: return "least_loaded";
    case routing::by_key: return "by_key";
    case routing::by_priority: return "by_priority";
    case routing::work_stealing: return "work_stealing";
  }
  return "unknown";
}

struct router_stats {
  std::size_t workers = 0;
  std::size_t queued = 0;      // accepted and not begun
  std::size_t unfinished = 0;  // accepted and not finished, including the queued
  std::uint64_t pushed = 0;    // accepted
  std::uint64_t rejected = 0;  // refused as full, or timed out while waiting for capacity
  std::uint64_t dropped = 0;   // by a dropping policy
};

struct router_worker_stats {
  std::uint64_t id = 0;        // from 1, in the order of joining
  std::size_t queued = 0;      // in its inbox (0 by priority: one inbox is shared)
  bool busy = false;           // it has an item that is begun and not finished
  std::uint64_t handled = 0;   // finished
  std::uint64_t failed = 0;    // its handler threw
  std::uint64_t stolen = 0;    // taken from another worker's inbox
  std::uint64_t moved_in = 0;  // moved from another inbox when workers joined or left
};

}  // namespace sluice
