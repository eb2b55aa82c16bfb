#pragma once

// Holds items until their time has come: retries, reminders, expiries.
//
// Use it when time decides what is next. Prefer `priority_queue` when it is importance, and a
// plain deadline (`try_pop_for`) when it is only you who waits.
//
// Guarantees: any thread may call anything. No item comes out before its time; items come out in
// order of their times, and in order of arrival when those are equal. A consumer that waits for one
// is woken at once when an earlier one is pushed. `try_pop` says `empty` while there are items but
// none is due. After `close` what is inside still appears, each at its time; then consumers hear
// `closed`. `close_and_drop` drops what is inside instead. Capacity counts what is inside, due or
// not. Everything else (waiting, cancel safety, exceptions, wake-ups) is as in exchange.hpp, for
// all queues. An item that is due by a wait's deadline wins over it, even if both are noticed late;
// a deadline before the item's time ends the wait with timed_out, and so does one on another clock
// than the queue's.
// When full, as `overflow` says: block, reject, drop_newest (the incoming one), drop_oldest (the
// one queued first, whatever its time), latest (the one queued last).
// Destroying it while anybody waits inside is a broken contract; otherwise it may be destroyed by
// anyone at any time, also by a coroutine that its own timer resumed.
// Cost: push and pop O(log n); one timer, armed when somebody waits; memory for `capacity`
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
#include "sluice/queue/delay_store.hpp"
#include "sluice/queue/exchange.hpp"

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

  sluice::clock* clock = nullptr;  // null: the real clock; outlives the queue

  // As queue_options::problem.
  const char* problem() const noexcept {
    return detail::queue_problem(capacity, overflow, weight_max, static_cast<bool>(weigh));
  }
};

template <class T>
class delay_queue : public exchange<delayed<T>, delay_store<T>> {
  using base = exchange<delayed<T>, delay_store<T>>;

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

  // A timer that fires now uses the whole exchange: it is stopped before any of it goes.
  ~delay_queue() { this->store_.quiet(); }
};

}  // namespace sluice
