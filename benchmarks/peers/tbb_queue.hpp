#pragma once

// oneTBB's bounded blocking queue with the interface of the workloads.

#include <oneapi/tbb/concurrent_queue.h>
#include <cstddef>
#include <cstdint>

namespace sluice::bench {

class tbb_queue {
 public:
  explicit tbb_queue(std::size_t capacity) {
    queue_.set_capacity(static_cast<std::ptrdiff_t>(capacity));
  }

  void push(std::uint64_t item) { queue_.push(item); }

  std::uint64_t pop() {
    std::uint64_t item;
    queue_.pop(item);
    return item;
  }

  bool try_push(std::uint64_t item) { return queue_.try_push(item); }
  bool try_pop(std::uint64_t& item) { return queue_.try_pop(item); }

 private:
  tbb::concurrent_bounded_queue<std::uint64_t> queue_;
};

}  // namespace sluice::bench
