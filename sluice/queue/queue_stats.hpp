#pragma once

// Counters of a queue or channel since its construction, as returned by `stats()`.

#include <cstddef>
#include <cstdint>

namespace sluice {

struct queue_stats {
  std::uint64_t pushed = 0;      // items accepted
  std::uint64_t popped = 0;      // items taken by consumers
  std::uint64_t dropped = 0;     // items dropped by the overflow policy, old and new
  std::uint64_t rejected = 0;    // pushes that returned `full`, or timed out while waiting
  std::uint64_t push_waits = 0;  // pushes that waited for capacity
  std::uint64_t pop_waits = 0;   // pops that waited for an item
  std::size_t high_water = 0;    // the most items ever inside at once
};

}  // namespace sluice
