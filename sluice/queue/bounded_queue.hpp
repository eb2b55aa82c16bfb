#pragma once

// Moves items from many producers to many consumers through a buffer of bounded capacity, with a
// named policy for when it is full.
//
// Use it as the default between threads or coroutines. Prefer `spsc_ring` for exactly one producer
// and one consumer, `priority_queue` or `delay_queue` for another order, `channel` when you need a
// rendezvous or select.
//
// Guarantees: thread-safe; first in, first out; linearizable. Waiting, closing, cancel safety,
// exceptions and wake-ups: detail/queue_core.hpp, the same for all queues.
// When full, by `overflow`: block, reject, drop_newest, drop_oldest, latest.
// Cost: one block of memory for `capacity` items, allocated at construction; uncontended push and
// pop are a few nanoseconds each (./bench sync), 8 producers and 8 consumers: ./bench queue.
// Limits: capacity at least 1; T must be movable.
//
//     sluice::bounded_queue<job> jobs(1024);
//     std::jthread worker([&] { while (auto j = jobs.pop()) run(*j); });
//     if (auto s = jobs.push(std::move(j), 50ms); !s) reply(503);
//     jobs.close();                       // the worker drains the queue and ends
//
//     sluice::bounded_queue<frame> frames({.capacity = 8, .overflow = overflow::drop_oldest});

#include <cstddef>
#include <utility>

#include "sluice/queue/detail/queue_core.hpp"
#include "sluice/queue/detail/ring_store.hpp"

namespace sluice {

template <class T>
class bounded_queue : public detail::queue_core<T, detail::ring_store<T>> {
  using base = detail::queue_core<T, detail::ring_store<T>>;
  using store = detail::ring_store<T>;

 public:
  using options = queue_options<T>;

  explicit bounded_queue(std::size_t capacity) : bounded_queue(options{.capacity = capacity}) {}

  explicit bounded_queue(options o) : bounded_queue(std::move(o), o.capacity, o.weight_max) {}

 private:
  bounded_queue(options&& o, std::size_t capacity, std::size_t weight_max)
      : base("sluice::bounded_queue", std::move(o), base::zero_capacity::refused, capacity,
             weight_max != 0 ? store::weights::kept : store::weights::none) {}
};

}  // namespace sluice
