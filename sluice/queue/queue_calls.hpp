#pragma once

// The words of a queue in all their waiting forms, written once for every queue of the library.
//
// A queue derives from `queue_calls<itself, T>`, befriends it, and has, privately:
//
//   bool offer(T&, status&)     one try to put; false: would have to wait
//   bool poll(optional<T>&, status&)              one try to take; likewise
//   bool offer_some(span<T>, batch_result&)       tries to put the rest after `count`
//   void take_more(vector<T>&, max)               takes what is there, as far as it has room
//   push_op, pop_op             the waits (see wait.hpp), made from the queue and, to put, an item
//   void note_rejected()        counts one that was turned away
//
// and publicly `try_pop_some`. What all calls guarantee is said where the queue is.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/outcome.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

struct queue_stats {
  std::uint64_t pushed = 0;    // accepted
  std::uint64_t popped = 0;    // taken by consumers
  std::uint64_t dropped = 0;   // by a dropping policy, old ones and new ones
  std::uint64_t rejected = 0;  // turned away with `full` or, waiting for room, timed out
  std::uint64_t push_waits = 0;
  std::uint64_t pop_waits = 0;
  std::size_t high_water = 0;  // the most items ever inside at once
};

// How far a batch push came: the first `count` items were accepted or, by a dropping policy,
// dropped; the rest are the caller's.
struct [[nodiscard]] batch_result {
  std::size_t count = 0;
  sluice::status status = sluice::status::ok;  // ok exactly when all were accepted
};

// Takes item after item, for a range-for, until `take` returns none: closed and drained.
template <class From, class T, outcome<T> (*take)(From&, const call_site&)>
class taking_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  taking_iterator(From& from, const call_site& at) : from_(&from), at_(at) { ++*this; }
  T& operator*() { return *item_; }
  taking_iterator& operator++() {
    item_.reset();
    if (auto next = take(*from_, at_)) item_.emplace(std::move(*next));
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const noexcept { return !item_.has_value(); }

 private:
  From* from_;
  call_site at_;
  std::optional<T> item_;
};

template <class Queue, class T>
class queue_calls {
  static outcome<T> next(queue_calls& from, const call_site& at) { return from.pop(at); }

 public:
  using value_type = T;
  using iterator = taking_iterator<queue_calls, T, &queue_calls::next>;

  // Waits for room, as the policy says. ok, closed, full (reject, too heavy), dropped.
  status push(T&& item, call_site at = {}) {
    status done = status::ok;
    return self().offer(item, done) ? done : wait_push(item, at);
  }
  status push(const T& item, call_site at = {}) { return push(T(item), at); }
  status push(T&& item, std::stop_token stop, call_site at = {}) {
    return push_within(item, {std::move(stop), at});
  }
  status push(const T& item, std::stop_token stop, call_site at = {}) {
    return push(T(item), std::move(stop), at);
  }

  // The same with an item made from `args`, which is lost if the push fails.
  template <class... Args>
  status emplace(Args&&... args) {
    return push(make_item(std::forward<Args>(args)...));
  }
  template <class... Args>
  status try_emplace(Args&&... args) {
    return try_push(make_item(std::forward<Args>(args)...));
  }

  // Never waits: `full` also when the policy is block.
  status try_push(T&& item) {
    status done = status::ok;
    if (!self().offer(item, done)) self().note_rejected();
    return done;
  }
  status try_push(const T& item) { return try_push(T(item)); }

  template <class Rep, class Period>
  status try_push_for(T&& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}, call_site at = {}) {
    return push_within(item, {deadline::after(wait), std::move(stop), at});
  }
  template <class Rep, class Period>
  status try_push_for(const T& item, std::chrono::duration<Rep, Period> wait,
                      std::stop_token stop = {}, call_site at = {}) {
    return try_push_for(T(item), wait, std::move(stop), at);
  }
  template <class Clock, class Duration>
  status try_push_until(T&& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}, call_site at = {}) {
    return push_within(item, {deadline::at(when), std::move(stop), at});
  }
  template <class Clock, class Duration>
  status try_push_until(const T& item, std::chrono::time_point<Clock, Duration> when,
                        std::stop_token stop = {}, call_site at = {}) {
    return try_push_until(T(item), when, std::move(stop), at);
  }
  // The general form. Moves from `item` only when it returns ok or dropped.
  status push_within(T& item, const wait_limits& limits) {
    if (limits.stop.stop_requested()) return status::stopped;
    status done = status::ok;
    return self().offer(item, done) ? done : wait_push(item, limits);
  }
  // co_await gives a status. `item` must stay where it is until then; moved from only on success.
  auto async_push(T& item, wait_limits limits = {}) {
    return awaitable<typename Queue::push_op>(std::move(limits), self(), item);
  }
  // The same for a temporary, which is lost if the push fails.
  auto async_push(T&& item, wait_limits limits = {}) {
    return awaitable<owning_push_op<>>(std::move(limits), self(), std::move(item));
  }

  // Pushes all of them in order, many at a time, waiting for room as the policy says.
  batch_result push_all(std::span<T> items, const wait_limits& limits = {}) {
    batch_result result;
    if (limits.stop.stop_requested()) return {0, items.empty() ? status::ok : status::stopped};
    while (!self().offer_some(items, result)) {
      // Only a queue that blocks comes here: wait for the next one as a single push would.
      result.status = push_within(items[result.count], limits);
      if (!result.status) break;
      ++result.count;
    }
    return result;
  }
  // Pushes those for which there is room now.
  batch_result try_push_all(std::span<T> items) {
    batch_result result;
    if (!self().offer_some(items, result)) {
      result.status = status::full;
      self().note_rejected();
    }
    return result;
  }

  // Waits for an item. ok, or closed: closed and drained.
  outcome<T> pop(call_site at = {}) {
    std::optional<T> slot;
    status done = status::ok;
    return self().poll(slot, done) ? to_outcome(slot, done) : wait_pop(at);
  }
  outcome<T> pop(std::stop_token stop, call_site at = {}) {
    return pop_within({std::move(stop), at});
  }
  outcome<T> try_pop() {
    std::optional<T> slot;
    status done = status::ok;
    self().poll(slot, done);
    return to_outcome(slot, done);
  }
  template <class Rep, class Period>
  outcome<T> try_pop_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {},
                         call_site at = {}) {
    return pop_within({deadline::after(wait), std::move(stop), at});
  }
  template <class Clock, class Duration>
  outcome<T> try_pop_until(std::chrono::time_point<Clock, Duration> when,
                           std::stop_token stop = {}, call_site at = {}) {
    return pop_within({deadline::at(when), std::move(stop), at});
  }
  outcome<T> pop_within(const wait_limits& limits) {
    if (limits.stop.stop_requested()) return status::stopped;
    std::optional<T> slot;
    status done = status::ok;
    return self().poll(slot, done) ? to_outcome(slot, done) : wait_pop(limits);
  }
  // co_await gives an outcome<T>.
  auto async_pop(wait_limits limits = {}) {
    return awaitable<typename Queue::pop_op>(std::move(limits), self());
  }

  // Waits for one item, then takes what else is there, up to `max`.
  outcome<std::vector<T>> pop_some(std::size_t max, const wait_limits& limits = {}) {
    if (limits.stop.stop_requested()) return status::stopped;
    auto now = self().try_pop_some(max, limits.at);
    if (now || now.status() != status::empty) return now;
    return block_on(pop_some_op<>(self(), max), limits);
  }
  // co_await gives an outcome<std::vector<T>>.
  auto async_pop_some(std::size_t max, wait_limits limits = {}) {
    self().check_some(max, limits.at);
    return awaitable<pop_some_op<>>(std::move(limits), self(), max);
  }

  // for (auto& item : queue) ... until it is closed and drained.
  iterator begin(call_site at = {}) { return iterator(*this, at); }
  std::default_sentinel_t end() const noexcept { return {}; }

  static outcome<T> to_outcome(std::optional<T>& slot, status done) {
    if (slot.has_value()) return outcome<T>(std::move(*slot));
    return outcome<T>(done);
  }

 protected:
  queue_calls() = default;
  ~queue_calls() = default;

 private:
  // Templates, because the queue is not complete here.
  template <class Q = Queue>
  class owning_push_op : private std::optional<T>, public Q::push_op {
   public:
    owning_push_op(Q& queue, T&& item)
        : std::optional<T>(std::move(item)),
          Q::push_op(queue, **static_cast<std::optional<T>*>(this)) {}
  };

  // Waits as a pop does; takes what else is there when it has its first.
  template <class Q = Queue>
  class pop_some_op : public Q::pop_op {
   public:
    pop_some_op(Q& queue, std::size_t max) : Q::pop_op(queue), queue_(queue), max_(max) {
      taken_.reserve(std::min(max, room_at_first));  // before: once popped, nothing must fail
    }
    outcome<std::vector<T>> result(status ended) {
      auto first = Q::pop_op::result(ended);
      if (!first) return first.status();
      taken_.push_back(std::move(*first));
      queue_.take_more(taken_, max_);
      return std::move(taken_);
    }

   private:
    static constexpr std::size_t room_at_first = 64;
    Q& queue_;
    const std::size_t max_;
    std::vector<T> taken_;
  };

  Queue& self() noexcept { return static_cast<Queue&>(*this); }

  template <class... Args>
  static T make_item(Args&&... args) {
    if constexpr (std::is_constructible_v<T, Args...>) {
      return T(std::forward<Args>(args)...);
    } else {
      return T{std::forward<Args>(args)...};
    }
  }

  // Out of line: the calls around them are small enough to be inlined.
  [[gnu::noinline]] status wait_push(T& item, const wait_limits& limits) {
    typename Queue::push_op op(self(), item);
    return op.result(wait_blocking(op, limits));
  }
  [[gnu::noinline]] outcome<T> wait_pop(const wait_limits& limits) {
    typename Queue::pop_op op(self());
    return op.result(wait_blocking(op, limits));
  }
};

}  // namespace sluice
