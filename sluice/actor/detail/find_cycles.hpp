#pragma once

// Circles in a graph of who waits for whom.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::detail {

struct wait_arrow {
  std::uint64_t from;
  std::uint64_t to;
};

// Each cycle as the places of its arrows in `arrows`, beginning at its smallest number. Every node
// that is in a cycle is in one that is found: a shortest one of its own, or that of another node.
// The same arrows in the same order give the same cycles.
std::vector<std::vector<std::size_t>> find_cycles(const std::vector<wait_arrow>& arrows);

}  // namespace sluice::detail
