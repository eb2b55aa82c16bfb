#pragma once

// A bounded queue whose items become available at their own times: retries, reminders, expiries.
//
// Use it when time decides which item is next. Prefer `priority_queue` for importance, and a
// deadline of the wait (`pop(50ms)`) if only the consumer's own wait is limited.
//
// Guarantees: thread-safe. No item comes out before its time; items come out in order of their
// times, equal times in order of arrival. A waiting consumer is woken for an earlier item as soon
// as it is pushed. `try_pop` returns `empty` if no item is due. After `close` the items inside
// still come out, each at its time; then consumers get `closed`. `close_and_drop` drops them
// instead. Every item inside counts against the capacity, due or not. A pop returns an
// item that is due by its deadline, even if both are noticed late. A deadline before the item's
// time, or on another clock than the queue's, ends the pop with timed_out. Waiting,
// cancel safety, exceptions and wake-ups: detail/queue_core.hpp, the same for all queues.
// When full, by `overflow`: block, reject, drop_newest (the incoming item), drop_oldest (the item
// pushed first, independent of its time), latest (the item pushed last).
// Destroying it while a call waits inside is a broken contract; a coroutine that its own timer
// resumed may destroy it.
// Cost: push and pop O(log n); one timer, armed while a consumer waits; memory for `capacity`
// items is allocated at construction. A coroutine without an executor resumes on the clock's
// thread.
// Limits: capacity from 1 to 2^32 - 2; T must be movable.
//
//     sluice::delay_queue<mail> later(1000);
//     (void)later.push({letter, std::chrono::steady_clock::now() + 5min});
//     while (auto m = later.pop()) send(m->item);

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/queue/delayed.hpp"
#include "sluice/queue/detail/delay_store.hpp"
#include "sluice/queue/detail/queue_core.hpp"

namespace sluice {

// The fields of queue_options, and:
template <class T>
struct delay_queue_options {
  std::size_t capacity = 0;
  sluice::overflow overflow = sluice::overflow::block;
  std::string name{};
  std::size_t weight_max = 0;
  std::function<std::size_t(const delayed<T>&)> weigh{};
  std::function<void(delayed<T>&&)> on_drop{};

  sluice::clock* clock = nullptr;  // null: the real clock; must outlive the queue

  // As queue_options::problem.
  const char* problem() const noexcept {
    return detail::queue_problem(capacity, overflow, weight_max, static_cast<bool>(weigh));
  }
};

template <class T>
class delay_queue : public detail::queue_core<delayed<T>, detail::delay_store<T>> {
  using base = detail::queue_core<delayed<T>, detail::delay_store<T>>;

 public:
  using options = delay_queue_options<T>;

  explicit delay_queue(std::size_t capacity) : delay_queue(options{.capacity = capacity}) {}

  explicit delay_queue(options o)
      : base("sluice::delay_queue",
             queue_options<delayed<T>>{.capacity = o.capacity,
                                       .overflow = o.overflow,
                                       .name = std::move(o.name),
                                       .weight_max = o.weight_max,
                                       .weigh = std::move(o.weigh),
                                       .on_drop = std::move(o.on_drop)},
             base::zero_capacity::refused, o.capacity,
             o.clock != nullptr ? *o.clock : real_clock(),
             [this](wake_batch& wakes) { this->reconsider(wakes); }) {}

  // A timer that fires now uses the whole queue core: it is disarmed before any part is destroyed.
  ~delay_queue() { this->store_.quiet(); }
};

}  // namespace sluice
