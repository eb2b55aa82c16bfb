#pragma once

// Hands out the most urgent item first, holds at most so many, and lets no item starve.
//
// Use it when some work must overtake other work. Prefer `bounded_queue` when the order of arrival
// is right, and `delay_queue` when it is time that decides. With two or three fixed classes of
// work, one queue each and a consumer that knows its shares is simpler to reason about.
//
// Guarantees: any thread may call anything. A larger priority is more urgent; equals come out in
// order of arrival. With `ageing`, every such time that an item has waited makes it one level more
// urgent, so an item of priority 0 is overtaken by items of priority p for at most p times the
// ageing. Everything else (waiting, closing, cancel safety, exceptions, wake-ups) is as
// exchange.hpp says for all queues.
// When full, as `overflow` says: block, reject, drop_newest (the incoming one), latest (the one
// queued last), and drop_oldest: of all, the incoming one included, the one with the lowest
// priority goes, ageing aside, and among equals the oldest; the push says `dropped` if it was its
// own. Where room by weight takes several, they go in that order, until it fits or it is its turn.
// `PriorityOf` is called under the queue's lock, once or twice for every push: it must be quick and
// must not use the queue. If it throws, so does the push, and nothing has changed. It gives a
// number or an enumeration; not-a-number is the least urgent of all.
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
#include "sluice/queue/exchange.hpp"
#include "sluice/queue/priority_store.hpp"

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

  // How long an item waits to count as one priority more urgent; zero: priorities are absolute.
  std::chrono::nanoseconds ageing{0};
  sluice::clock* clock = nullptr;  // null: the real clock; outlives the queue

  // As queue_options::problem.
  const char* problem() const noexcept {
    if (ageing < std::chrono::nanoseconds::zero()) return "an ageing that is not negative";
    return detail::queue_problem(capacity, overflow, weight_max, static_cast<bool>(weigh));
  }
};

template <class T, class PriorityOf = default_priority>
class priority_queue : public exchange<T, priority_store<T, PriorityOf>> {
  using store = priority_store<T, PriorityOf>;
  using base = exchange<T, store>;

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
