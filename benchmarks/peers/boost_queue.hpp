#pragma once

// Boost.Thread's bounded blocking queue with the interface of the workloads.

#include <boost/thread/concurrent_queues/sync_bounded_queue.hpp>
#include <cstddef>
#include <cstdint>

namespace sluice::bench {

class boost_queue {
 public:
  explicit boost_queue(std::size_t capacity) : queue_(capacity) {}

  void push(std::uint64_t item) { queue_.push_back(item); }

  std::uint64_t pop() {
    std::uint64_t item;
    queue_.pull_front(item);
    return item;
  }

  bool try_push(std::uint64_t item) {
    return queue_.try_push_back(item) == boost::concurrent::queue_op_status::success;
  }

  bool try_pop(std::uint64_t& item) {
    return queue_.try_pull_front(item) == boost::concurrent::queue_op_status::success;
  }

 private:
  boost::concurrent::sync_bounded_queue<std::uint64_t> queue_;
};

}  // namespace sluice::bench
