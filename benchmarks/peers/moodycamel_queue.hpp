#pragma once

// moodycamel's queues with the interface of the workloads.

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <concurrentqueue/lightweightsemaphore.h>
#include <readerwriterqueue/readerwritercircularbuffer.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace sluice::bench {

// For many producers and consumers. BlockingConcurrentQueue blocks when empty but is unbounded; its
// author's semaphore, which counts free slots, makes it bounded.
class moodycamel_queue {
 public:
  explicit moodycamel_queue(std::size_t capacity)
      : items_(capacity), free_places_(static_cast<ssize_t>(capacity)) {}

  void push(std::uint64_t item) {
    free_places_.wait();
    if (!items_.enqueue(item)) {
      std::abort();  // out of memory
    }
  }

  std::uint64_t pop() {
    std::uint64_t item;
    items_.wait_dequeue(item);
    free_places_.signal();
    return item;
  }

  bool try_push(std::uint64_t item) { return free_places_.tryWait() && items_.enqueue(item); }

  bool try_pop(std::uint64_t& item) {
    if (!items_.try_dequeue(item)) {
      return false;
    }
    free_places_.signal();
    return true;
  }

 private:
  moodycamel::BlockingConcurrentQueue<std::uint64_t> items_;
  moodycamel::LightweightSemaphore free_places_;
};

// For one producer and one consumer: bounded and blocking by itself.
class moodycamel_ring {
 public:
  explicit moodycamel_ring(std::size_t capacity) : items_(capacity) {}

  void push(std::uint64_t item) { items_.wait_enqueue(item); }

  std::uint64_t pop() {
    std::uint64_t item;
    items_.wait_dequeue(item);
    return item;
  }

  bool try_pop(std::uint64_t& item) { return items_.try_dequeue(item); }

 private:
  moodycamel::BlockingReaderWriterCircularBuffer<std::uint64_t> items_;
};

}  // namespace sluice::bench
