#pragma once

// Every form of push and pop, written once for all queues.
//
// A queue derives from `queue_calls<Queue, T>`, befriends it, and has `try_pop_some` and,
// privately:
//
//   bool offer(T&, status&)                  one attempt to push; false: the caller has to wait
//   bool poll(optional<T>&, status&)         one attempt to pop; likewise
//   bool offer_some(span<T>, batch_result&)  attempts to push the items after `count`; likewise
//   void take_more(vector<T>&, max)          takes available items up to the reserved size
//   push_op, pop_op                          wait operations (wait.hpp)
//   void note_rejected()                     counts a rejected push

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/outcome.hpp"
#include "sluice/queue/batch_result.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// An input iterator that takes items until `take` fails: the queue is closed and drained.
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

  // Pushes the item; under `block`, waits until there is capacity. Returns ok, closed, full (under
  // `reject`, or an item heavier than the queue) or dropped. Moves from `item` only on ok and
  // dropped: after any other result the caller still has it.
  status push(T&& item, call_site at = {}) {
    status done = status::ok;
    return self().offer(item, done) ? done : wait_push(item, at);
  }
  status push(const T& item, call_site at = {}) { return push(T(item), at); }
  // Within the limits; then also timed_out and stopped. Example: push(item, 50ms).
  status push(T&& item, const wait_limits& limits) {
    if (limits.stop.stop_requested()) return status::stopped;
    status done = status::ok;
    return self().offer(item, done) ? done : wait_push(item, limits);
  }
  status push(const T& item, const wait_limits& limits) { return push(T(item), limits); }

  // Constructs an item from `args` and pushes it. The item is destroyed if the push fails.
  template <class... Args>
  status emplace(Args&&... args) {
    return push(make_item(std::forward<Args>(args)...));
  }
  template <class... Args>
  status try_emplace(Args&&... args) {
    return try_push(make_item(std::forward<Args>(args)...));
  }

  // Never waits: returns `full` also under `block`.
  status try_push(T&& item) {
    status done = status::ok;
    if (!self().offer(item, done)) self().note_rejected();
    return done;
  }
  status try_push(const T& item) { return try_push(T(item)); }

  // co_await returns a status. `item` must stay valid until then; moved from only on success.
  auto async_push(T& item, wait_limits limits = {}) {
    return awaitable<typename Queue::push_op>(std::move(limits), self(), item);
  }
  // Keeps the item in the coroutine's frame; it is destroyed if the push fails.
  auto async_push(T&& item, wait_limits limits = {}) {
    return awaitable<owning_push_op<>>(std::move(limits), self(), std::move(item));
  }

  // Pushes all items in order, many in one critical section; under `block`, waits for capacity.
  batch_result push_all(std::span<T> items, const wait_limits& limits = {}) {
    batch_result result;
    if (limits.stop.stop_requested()) return {0, items.empty() ? status::ok : status::stopped};
    while (!self().offer_some(items, result)) {
      // Only under `block`: waits for the next item as a single push does.
      result.status = push(std::move(items[result.count]), limits);
      if (!result.status) break;
      ++result.count;
    }
    return result;
  }
  // Pushes the items for which there is capacity now.
  batch_result try_push_all(std::span<T> items) {
    batch_result result;
    if (!self().offer_some(items, result)) {
      result.status = status::full;
      self().note_rejected();
    }
    return result;
  }

  // Takes an item; waits while the queue is empty. Returns `closed` once it is closed and drained.
  outcome<T> pop(call_site at = {}) {
    std::optional<T> slot;
    status done = status::ok;
    return self().poll(slot, done) ? to_outcome(slot, done) : wait_pop(at);
  }
  // Within the limits; then also timed_out and stopped. Example: pop({50ms, stop}).
  outcome<T> pop(const wait_limits& limits) {
    if (limits.stop.stop_requested()) return status::stopped;
    std::optional<T> slot;
    status done = status::ok;
    return self().poll(slot, done) ? to_outcome(slot, done) : wait_pop(limits);
  }
  // Never waits: `empty` if there is no item.
  outcome<T> try_pop() {
    std::optional<T> slot;
    status done = status::ok;
    self().poll(slot, done);
    return to_outcome(slot, done);
  }
  // co_await returns an outcome<T>.
  auto async_pop(wait_limits limits = {}) {
    return awaitable<typename Queue::pop_op>(std::move(limits), self());
  }

  // Waits for one item, then takes further available items, `max` in all.
  outcome<std::vector<T>> pop_some(std::size_t max, const wait_limits& limits = {}) {
    if (limits.stop.stop_requested()) return status::stopped;
    auto now = self().try_pop_some(max, limits.at);
    if (now || now.status() != status::empty) return now;
    return block_on(pop_some_op<>(self(), max), limits);
  }
  // co_await returns an outcome<std::vector<T>>.
  auto async_pop_some(std::size_t max, wait_limits limits = {}) {
    self().check_some(max, limits.at);
    return awaitable<pop_some_op<>>(std::move(limits), self(), max);
  }

  // for (auto& item : queue) takes items until the queue is closed and drained.
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
  // Templates, because Queue is incomplete here.
  template <class Q = Queue>
  class owning_push_op : private std::optional<T>, public Q::push_op {
   public:
    owning_push_op(Q& queue, T&& item)
        : std::optional<T>(std::move(item)),
          Q::push_op(queue, **static_cast<std::optional<T>*>(this)) {}
  };

  // Waits as a pop does, then takes further available items.
  template <class Q = Queue>
  class pop_some_op : public Q::pop_op {
   public:
    pop_some_op(Q& queue, std::size_t max) : Q::pop_op(queue), queue_(queue), max_(max) {
      taken_.reserve(std::min(max, reserved_max));  // now: after a pop, nothing may fail
    }
    outcome<std::vector<T>> result(status ended) {
      auto first = Q::pop_op::result(ended);
      if (!first) return first.status();
      taken_.push_back(std::move(*first));
      queue_.take_more(taken_, max_);
      return std::move(taken_);
    }

   private:
    static constexpr std::size_t reserved_max = 64;
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

  // Not inlined, so that the calls above stay small enough to be.
  [[gnu::noinline]] status wait_push(T& item, const wait_limits& limits) {
    typename Queue::push_op op(self(), item);
    return op.result(wait_blocking(op, limits));
  }
  [[gnu::noinline]] outcome<T> wait_pop(const wait_limits& limits) {
    typename Queue::pop_op op(self());
    return op.result(wait_blocking(op, limits));
  }
};

}  // namespace sluice::detail
