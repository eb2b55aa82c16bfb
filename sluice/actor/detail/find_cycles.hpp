#pragma once

// Cycles in a graph of waits.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::detail {

struct wait_arrow {
  std::uint64_t from;
  std::uint64_t target;
};

// Returns each cycle as indices into `arrows`, starting at its smallest node. Every node in a cycle
// is in one of the results: a shortest cycle of its own, or one of another node. The result depends
// only on the arrows and their order.
std::vector<std::vector<std::size_t>> find_cycles(const std::vector<wait_arrow>& arrows);

}  // namespace sluice::detail
