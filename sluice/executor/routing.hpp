#pragma once

// To whom a router hands an item, and what it counts.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

enum class routing : std::uint8_t {
  round_robin,    // each worker in its turn, passing over those whose inbox is full
  least_loaded,   // the one with the least queued and begun
  by_key,         // the worker that owns the item's key; few keys move when workers come and go
  by_priority,    // the most urgent that is queued, to whoever is free
  work_stealing,  // idle workers first, then in turn; who runs dry takes from the longest inbox
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
  std::size_t unfinished = 0;  // accepted and not finished, the queued included
  std::uint64_t pushed = 0;    // accepted
  std::uint64_t rejected = 0;  // turned away with `full` or, waiting for room, timed out
  std::uint64_t dropped = 0;   // by a dropping policy, old ones and new ones
};

struct router_worker_stats {
  std::uint64_t id = 0;        // from 1, in the order of joining
  std::size_t queued = 0;      // in its inbox (by priority there is one for all: 0)
  bool busy = false;           // it has begun something and not finished it
  std::uint64_t handled = 0;   // finished
  std::uint64_t failed = 0;    // its handler threw
  std::uint64_t stolen = 0;    // taken from another's inbox
  std::uint64_t moved_in = 0;  // came from another's inbox when workers joined or left
};

}  // namespace sluice
