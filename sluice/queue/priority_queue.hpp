#pragma once

// A bounded queue that returns the most urgent item first and can prevent starvation by ageing.
//
// Use it when some work must overtake other work. Prefer `bounded_queue` for the order of arrival,
// `delay_queue` for an order by time. With two or three fixed classes of work, one queue for each
// and a consumer with fixed shares is simpler.
//
// Guarantees: thread-safe. A larger priority is more urgent; equal priorities come out in order of
// arrival. With `ageing`, an item becomes one level more urgent for each such time it has waited,
// so items of priority p overtake one of priority 0 for at most p times the ageing. Waiting,
// closing, cancel safety, exceptions and wake-ups: detail/queue_core.hpp, the same for all queues.
// When full, by `overflow`: block, reject, drop_newest (the incoming item), latest (the item pushed
// last), and drop_oldest: of all items, the incoming one included, the one with the lowest priority
// (without ageing) is dropped, among equals the oldest; the push returns `dropped` if that is its
// own item. If a weight needs several evictions, they follow that order.
// `PriorityOf` returns a number or an enumeration; not-a-number is the least urgent. It runs under
// the queue's lock, once or twice for each push: it must be quick and must not use the queue. If it
// throws, so does the push, without effect.
// Cost: push and pop O(log n); memory for `capacity` items is allocated at construction.
// Limits: capacity from 1 to 2^32 - 2; T must be movable; ageing must not be negative.
//
//     struct mail { int priority; std::string text; };
//     sluice::priority_queue<mail> outbox({.capacity = 1000, .ageing = 10s});
//     (void)outbox.push({.priority = 9, .text = "your code is 1234"});
//     while (auto m = outbox.pop()) send(*m);

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/queue/default_priority.hpp"
#include "sluice/queue/detail/priority_store.hpp"
#include "sluice/queue/detail/queue_core.hpp"

namespace sluice {

// The fields of queue_options, and:
template <class T>
struct priority_queue_options {
  std::size_t capacity = 0;
  sluice::overflow overflow = sluice::overflow::block;
  std::string name{};
  std::size_t weight_max = 0;
  std::function<std::size_t(const T&)> weigh{};
  std::function<void(T&&)> on_drop{};

  // The waiting time that makes an item one level more urgent; zero: priorities are absolute.
  std::chrono::nanoseconds ageing{0};
  sluice::clock* clock = nullptr;  // null: the real clock; must outlive the queue

  // As queue_options::problem.
  const char* problem() const noexcept {
    if (ageing < std::chrono::nanoseconds::zero()) return "an ageing that is not negative";
    return detail::queue_problem(capacity, overflow, weight_max, static_cast<bool>(weigh));
  }
};

template <class T, class PriorityOf = default_priority>
class priority_queue : public detail::queue_core<T, detail::priority_store<T, PriorityOf>> {
  using store = detail::priority_store<T, PriorityOf>;
  using base = detail::queue_core<T, store>;

 public:
  using options = priority_queue_options<T>;

  explicit priority_queue(std::size_t capacity) : priority_queue(options{.capacity = capacity}) {}

  explicit priority_queue(options o, PriorityOf priority_of = {})
      : priority_queue(order_of(o), o.capacity, std::move(o), std::move(priority_of)) {}

 private:
  static typename store::order order_of(const options& o) {
    check_named(o.ageing >= std::chrono::nanoseconds::zero(), "sluice::priority_queue",
                o.name.c_str(), "an ageing that is not negative");
    return {.ageing = o.ageing,
            .time = o.clock != nullptr ? o.clock : &real_clock(),
            .evicts_least = o.overflow == overflow::drop_oldest};
  }

  priority_queue(typename store::order order, std::size_t capacity, options&& o,
                 PriorityOf&& priority_of)
      : base("sluice::priority_queue",
             queue_options<T>{.capacity = capacity,
                              .overflow = o.overflow,
                              .name = std::move(o.name),
                              .weight_max = o.weight_max,
                              .weigh = std::move(o.weigh),
                              .on_drop = std::move(o.on_drop)},
             base::zero_capacity::refused, capacity, std::move(priority_of), order) {}
};

}  // namespace sluice
