#pragma once

// Sluice's queues with the interface of the workloads.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"

namespace sluice::bench {

template <class Queue>
class adapted_sluice_queue {
 public:
  explicit adapted_sluice_queue(std::size_t capacity) : queue_(capacity) {}

  void push(std::uint64_t item) {
    if (!queue_.push(item)) {
      std::abort();  // closed, which never happens
    }
  }

  std::uint64_t pop() { return *queue_.pop(); }

  bool try_push(std::uint64_t item) { return static_cast<bool>(queue_.try_push(item)); }

  bool try_pop(std::uint64_t& item) {
    auto taken = queue_.try_pop();
    if (!taken) {
      return false;
    }
    item = *taken;
    return true;
  }

 private:
  Queue queue_;
};

using sluice_queue = adapted_sluice_queue<bounded_queue<std::uint64_t>>;
using sluice_ring = adapted_sluice_queue<spsc_ring<std::uint64_t>>;

}  // namespace sluice::bench
