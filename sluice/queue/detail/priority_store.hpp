#pragma once

// The store of priority_queue (queue_store in queue_core.hpp): the most urgent item first.
// Not thread-safe: the queue core guards it.
//
// Ageing is linear and equal for all items, so it never changes the order of two items inside: the
// urgency of an item with priority p that arrived at time t is p + (now - t) / ageing, and `now` is
// the same for all. Each item therefore has a constant key, and is never sorted again.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/queue/detail/slot_heap.hpp"

namespace sluice::detail {

template <class T, class PriorityOf>
class priority_store {
 public:
  struct order {
    std::chrono::nanoseconds ageing;  // zero: none
    clock* time;
    bool evicts_least;                // under drop_oldest: also keeps the order of eviction
  };

  priority_store(std::size_t capacity, PriorityOf priority_of, order o)
      : priority_of_(std::move(priority_of)),
        order_(o),
        start_(o.time->now()),
        pool_(capacity),
        most_urgent_(capacity, more_urgent{&pool_}),
        least_(o.evicts_least ? capacity : 0, matters_less{&pool_}) {}

  bool empty() const noexcept { return pool_.empty(); }
  bool ready() const noexcept { return !pool_.empty(); }
  bool settle(bool) const noexcept { return false; }

  void put(T& item, std::size_t weight) {
    const auto priority = priority_of(item);
    const auto slot = pool_.add(item, key{urgency(priority), priority, ++arrivals_}, weight);
    most_urgent_.add(slot);
    if (order_.evicts_least) least_.add(slot);
  }

  template <class Sink>
  std::size_t take(Sink&& sink) {
    check(!pool_.empty(), "sluice::priority_store", "an item to take");
    return give(most_urgent_.top(), sink);
  }
  template <class Sink>
  std::size_t evict_oldest(Sink&& sink) {
    check(!least_.empty(), "sluice::priority_store", "an item to evict");
    return give(least_.top(), sink);
  }
  template <class Sink>
  std::size_t evict_newest(Sink&& sink) {
    check(!pool_.empty(), "sluice::priority_store", "an item to evict");
    return give(pool_.newest(), sink);
  }

  // Under drop_oldest: returns true if no item inside ranks below this one, which is then dropped.
  bool matters_least(const T& item) const {
    return !least_.empty() && priority_of(item) < pool_.key(least_.top()).priority;
  }

 private:
  // Wide enough for every 64-bit integer and every double.
  using number = long double;

  struct key {
    number urgency = 0;
    number priority = 0;
    std::uint64_t arrival = 0;
  };
  using pool = slot_pool<T, key>;

  struct more_urgent {
    const pool* items;
    bool operator()(slot_number a, slot_number b) const noexcept {
      const key& x = items->key(a);
      const key& y = items->key(b);
      return x.urgency != y.urgency ? x.urgency > y.urgency : x.arrival < y.arrival;
    }
  };
  struct matters_less {
    const pool* items;
    bool operator()(slot_number a, slot_number b) const noexcept {
      const key& x = items->key(a);
      const key& y = items->key(b);
      return x.priority != y.priority ? x.priority < y.priority : x.arrival < y.arrival;
    }
  };

  number priority_of(const T& item) const {
    const auto given = static_cast<number>(priority_of_(item));
    return std::isnan(given) ? -std::numeric_limits<number>::infinity() : given;
  }
  number urgency(number priority) const noexcept {
    if (order_.ageing == std::chrono::nanoseconds::zero()) return priority;
    const std::chrono::duration<number, std::nano> late = order_.time->now() - start_;
    return priority * static_cast<number>(order_.ageing.count()) - late.count();
  }
  template <class Sink>
  std::size_t give(slot_number slot, Sink& sink) {
    sink(std::move(pool_.item(slot)));  // if it throws, nothing has changed
    const auto weight = pool_.weight(slot);
    most_urgent_.remove(slot);
    if (order_.evicts_least) least_.remove(slot);
    pool_.remove(slot);
    return weight;
  }

  const PriorityOf priority_of_;
  const order order_;
  const time_point start_;
  std::uint64_t arrivals_ = 0;
  pool pool_;
  slot_heap<more_urgent> most_urgent_;
  slot_heap<matters_less> least_;  // kept only under drop_oldest
};

}  // namespace sluice::detail
