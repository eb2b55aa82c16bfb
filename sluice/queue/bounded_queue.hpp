#pragma once

// Hands items from many producers to many consumers, holds at most so many in between, and says
// what happens when it is full.
//
// Use it as the default between threads or coroutines. Prefer `spsc_ring` for exactly one producer
// and one consumer, `priority_queue` or `delay_queue` for another order, `channel` when you need a
// rendezvous or select.
//
// Guarantees: any thread may call anything. First in, first out; linearizable. Everything else
// (waiting, closing, cancel safety, exceptions, wake-ups) is as exchange.hpp says for all queues.
// When full, as `overflow` says: block, reject, drop_newest, drop_oldest, latest.
// Cost: one block of memory for `capacity` items, allocated at construction; uncontended push and
// pop are a few nanoseconds each (./bench sync), 8 producers and 8 consumers: ./bench queue.
// Limits: capacity at least 1; T must be movable.
//
//     sluice::bounded_queue<job> jobs(1024);
//     std::jthread worker([&] { while (auto j = jobs.pop()) run(*j); });
//     if (auto s = jobs.try_push_for(std::move(j), 50ms); !s) reply(503);
//     jobs.close();                       // the worker drains what is inside and ends
//
//     sluice::bounded_queue<frame> frames({.capacity = 8, .overflow = overflow::drop_oldest});

#include <cstddef>
#include <utility>

#include "sluice/queue/exchange.hpp"
#include "sluice/queue/ring_store.hpp"

namespace sluice {

template <class T>
class bounded_queue : public exchange<T, ring_store<T>> {
  using base = exchange<T, ring_store<T>>;
  using store = ring_store<T>;

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
