#pragma once

// Bodies of queue_core: the lists of waiters, put and take under the lock, one attempt. Nothing
// here waits.

#include "sluice/queue/detail/queue_core.hpp"

namespace sluice::detail {

// One more thread is woken for each this many items (or free slots): a wake takes tens of
// microseconds, in which a running thread handles hundreds of items.
inline constexpr std::size_t items_per_extra_wake = 128;

template <class T, class Store>
template <class... StoreArgs>
queue_core<T, Store>::queue_core(const char* type, options o, zero_capacity zero,
                                 StoreArgs&&... store)
    : type_(type),
      name_(std::move(o.name)),
      capacity_(o.capacity),
      weight_max_(o.weight_max),
      overflow_(o.overflow),
      weigh_(std::move(o.weigh)),
      on_drop_(std::move(o.on_drop)),
      store_(std::forward<StoreArgs>(store)...) {
  static_assert(queue_store<Store, T>);
  const bool allows_zero = zero == zero_capacity::rendezvous;
  const char* const expected =
      queue_problem(allows_zero ? std::max<std::size_t>(capacity_, 1) : capacity_, overflow_,
                    weight_max_, static_cast<bool>(weigh_));
  check_named(expected == nullptr, type_, name_.c_str(), expected);
  check_named(capacity_ > 0 || !drops(), type_, name_.c_str(),
              "a capacity of at least 1 for a policy that drops");
  if (!name_.empty()) wait_report::set_name(this, name_);
}

template <class T, class Store>
queue_core<T, Store>::~queue_core() {
  const std::lock_guard hold(lock_);  // an ended call may still have to release it
  check_named(consumers_.empty() && consumers_.wakes_pending == 0, type_, name_.c_str(),
              "no consumers waiting inside at its destruction");
  check_named(producers_.empty() && producers_.wakes_pending == 0, type_, name_.c_str(),
              "no producers waiting inside at its destruction");
  wait_report::destroyed(this);
}

// ---- the lists of waiters

template <class T, class Store>
enlisted queue_core<T, Store>::waiting_list::add(node& n, waiter& waiting,
                                                 list_end where) noexcept {
  const auto joined = link_waiter(nodes, n, waiting, where);
  if (joined == enlisted::waiting) length.store(length.load(relaxed) + 1, relaxed);
  return joined;
}

template <class T, class Store>
void queue_core<T, Store>::waiting_list::link(node& n, waiter& waiting) noexcept {
  n.waiting = &waiting;
  nodes.push_back(n);
  length.store(length.load(relaxed) + 1, relaxed);
}

template <class T, class Store>
void queue_core<T, Store>::waiting_list::remove(node& n) noexcept {
  n.unlink();
  length.store(length.load(relaxed) - 1, relaxed);
}

template <class T, class Store>
bool queue_core<T, Store>::serve_consumers(wake_batch& wakes, std::uint32_t cascade) {
  bool moved = false;
  while (!consumers_.empty() && store_.ready()) {
    node& next = consumers_.front();
    const auto inside = available();
    if (next.retries) {
      const auto allowed = std::min(inside, 1 + cascade + inside / items_per_extra_wake);
      if (consumers_.wakes_pending + searching_threads() >= allowed) break;
    }
    consumers_.remove(next);
    if (!next.waiting->try_claim(next)) continue;  // timed out or stopped
    wait_report::used(this, wait_report::side::producer);
    if (next.retries) {
      mark_wake_pending(next, consumers_);
    } else {
      try {
        release_one([&](T&& item) { next.slot->emplace(std::move(item)); });
        ++stats_.popped;
        next.result = status::ok;
      } catch (...) {
        next.error = std::current_exception();
      }
      moved = true;
    }
    wakes.add(*next.waiting);
  }
  return moved;
}

template <class T, class Store>
bool queue_core<T, Store>::serve_producers(wake_batch& wakes, std::uint32_t cascade) {
  bool moved = false;
  while (!producers_.empty() && !closed_.load(relaxed) && fits(producers_.front().weight)) {
    node& next = producers_.front();
    // With weights, no producer overtakes a woken producer that has not tried yet.
    if (weight_max_ != 0 && producers_.wakes_pending > 0) break;
    if (next.retries) {
      const auto free = capacity_ - size_.load(relaxed);
      const auto allowed = std::min(free, 1 + cascade + free / items_per_extra_wake);
      if (producers_.wakes_pending >= allowed) break;
    }
    producers_.remove(next);
    if (!next.waiting->try_claim(next)) continue;
    wait_report::used(this, wait_report::side::consumer);
    if (next.retries) {
      mark_wake_pending(next, producers_);
    } else {
      try {
        accept(*next.item, next.weight);
        next.result = status::ok;
      } catch (...) {
        next.error = std::current_exception();
      }
      moved = true;
    }
    wakes.add(*next.waiting);
  }
  return moved;
}

template <class T, class Store>
void queue_core<T, Store>::dismiss(waiting_list& list, wake_batch& wakes) {
  while (!list.empty()) {
    node& next = list.front();
    list.remove(next);
    if (!next.waiting->try_claim(next)) continue;
    next.result = status::closed;
    wakes.add(*next.waiting);
  }
}

template <class T, class Store>
void queue_core<T, Store>::serve_waiting(wake_batch& wakes, std::uint32_t cascade) {
  bool again = true;
  while (again) {
    again = serve_consumers(wakes, cascade);
    again = serve_producers(wakes, cascade) || again;
    if (closed_.load(relaxed)) {
      dismiss(producers_, wakes);
      if (store_.empty()) dismiss(consumers_, wakes);
    }
    again = again || store_.settle(!consumers_.empty());
  }
}

template <class T, class Store>
void queue_core<T, Store>::mark_wake_pending(node& n, waiting_list& list) noexcept {
  n.wake_pending = true;
  ++list.wakes_pending;
}

template <class T, class Store>
void queue_core<T, Store>::clear_wake_pending(node& n, waiting_list& list) noexcept {
  if (!n.wake_pending) return;
  n.wake_pending = false;
  --list.wakes_pending;
}

// ---- in and out, under the lock

template <class T, class Store>
bool queue_core<T, Store>::fits(std::size_t weight) const noexcept {
  return size_.load(relaxed) < capacity_ &&
         (weight_max_ == 0 || (weight <= weight_max_ && weight_ <= weight_max_ - weight));
}

template <class T, class Store>
bool queue_core<T, Store>::would_overtake() const noexcept {
  return weight_max_ != 0 && (!producers_.empty() || producers_.wakes_pending != 0);
}

template <class T, class Store>
void queue_core<T, Store>::accept(T& item, std::size_t weight) {
  store_.put(item, weight);  // may throw, so it is first
  weight_ += weight;
  const auto inside = size_.load(relaxed) + 1;
  set_size(inside);
  ++stats_.pushed;
  if (inside > stats_.high_water) stats_.high_water = inside;
}

template <class T, class Store>
template <class Sink>
void queue_core<T, Store>::release_one(Sink&& sink) {
  const auto uncounted_before = uncounted();
  weight_ -= store_.take(std::forward<Sink>(sink));
  if (uncounted() == uncounted_before) set_size(size_.load(relaxed) - 1);
}

// Returns true if the policy evicts the oldest item, false if it evicts the newest. Without a
// default, so that a new policy is a warning here.
constexpr bool evicts_oldest(overflow policy) noexcept {
  switch (policy) {
    case overflow::drop_oldest: return true;
    case overflow::latest: return false;
    case overflow::block:  // these four evict nothing: offer_slow or the constructor excludes them
    case overflow::reject:
    case overflow::drop_newest:
    case overflow::caller_runs: break;
  }
  return false;
}

// Evicts items until `item` fits. Returns false if the items that remain rank above it.
template <class T, class Store>
bool queue_core<T, Store>::evict_for(const T& item, std::size_t weight, dropped_items& dropped) {
  const auto sink = [&](T&& evicted) { dropped.add(std::move(evicted)); };
  while (!fits(weight)) {
    if (matters_least(item)) return false;
    weight_ -= evicts_oldest(overflow_) ? store_.evict_oldest(sink) : store_.evict_newest(sink);
    set_size(size_.load(relaxed) - 1);
    ++stats_.dropped;
  }
  return true;
}

template <class T, class Store>
void queue_core<T, Store>::dropped_items::add(T&& item) {
  if (!first.has_value()) {
    first.emplace(std::move(item));
  } else {
    more.push_back(std::move(item));
  }
}

// Capacity 0: moves the item into a waiting consumer's slot.
template <class T, class Store>
bool queue_core<T, Store>::hand_to_consumer(T& item, wake_batch& wakes) {
  wait_report::used(this, wait_report::side::producer);
  while (!consumers_.empty()) {
    node& next = consumers_.front();
    consumers_.remove(next);
    if (!next.waiting->try_claim(next)) continue;
    wakes.add(*next.waiting);
    try {
      next.slot->emplace(std::move(item));
    } catch (...) {
      next.error = std::current_exception();  // a claimed waiter must get a result
      continue;
    }
    next.result = status::ok;
    ++stats_.pushed;
    ++stats_.popped;
    return true;
  }
  return false;
}

template <class T, class Store>
bool queue_core<T, Store>::take_from_producer(std::optional<T>& slot, wake_batch& wakes) {
  wait_report::used(this, wait_report::side::consumer);
  while (!producers_.empty()) {
    node& next = producers_.front();
    producers_.remove(next);
    if (!next.waiting->try_claim(next)) continue;
    wakes.add(*next.waiting);
    try {
      slot.emplace(std::move(*next.item));
    } catch (...) {
      next.error = std::current_exception();
      continue;
    }
    next.result = status::ok;
    ++stats_.pushed;
    ++stats_.popped;
    return true;
  }
  return false;
}

// The fast path: small, and inlined into the caller.
template <class T, class Store>
[[gnu::always_inline]] inline bool queue_core<T, Store>::offer_locked(
    T& item, std::size_t weight, status& done, wake_batch& wakes, dropped_items* dropped,
    caller by) {
  if (closed_.load(relaxed) || !fits(weight) || (by == caller::arriving && would_overtake()))
      [[unlikely]] {
    return offer_slow(item, weight, done, wakes, dropped);
  }
  try {
    accept(item, weight);
  } catch (...) {
    serve(wakes, 1);  // capacity is still free, and this thread may have been woken for it
    throw;
  }
  report_some(wait_report::side::producer, stats_.pushed);
  serve(wakes, by == caller::woken ? 1 : 0);
  done = status::ok;
  return true;
}

template <class T, class Store>
bool queue_core<T, Store>::offer_slow(T& item, std::size_t weight, status& done,
                                      wake_batch& wakes, dropped_items* dropped) {
  if (closed_.load(relaxed)) {
    done = status::closed;
    return true;
  }
  const bool too_heavy = weight_max_ != 0 && weight > weight_max_;
  if (capacity_ == 0 && !too_heavy && hand_to_consumer(item, wakes)) {
    done = status::ok;
    return true;
  }
  done = status::full;
  if (too_heavy || overflow_ == overflow::reject) {
    ++stats_.rejected;
    return true;
  }
  if (overflow_ == overflow::block) return false;
  if (overflow_ == overflow::drop_newest || !evict_for(item, weight, *dropped)) {
    dropped->add(std::move(item));
    ++stats_.dropped;
    done = status::dropped;
    serve(wakes);  // evictions may have freed capacity
    return true;
  }
  accept(item, weight);
  serve(wakes);
  done = status::ok;
  return true;
}

template <class T, class Store>
[[gnu::always_inline]] inline bool queue_core<T, Store>::poll_locked(std::optional<T>& slot,
                                                                     status& done,
                                                                     wake_batch& wakes,
                                                                     caller by) {
  if (!store_.ready()) [[unlikely]] return poll_slow(slot, done, wakes);
  try {
    release_one([&](T&& item) { slot.emplace(std::move(item)); });
  } catch (...) {
    serve(wakes, 1);  // the item is still inside, and this thread may have been woken for it
    throw;
  }
  ++stats_.popped;
  report_some(wait_report::side::consumer, stats_.popped);
  serve(wakes, by == caller::woken ? 1 : 0);
  done = status::ok;
  return true;
}

// No item is ready: takes one directly from a producer (capacity 0), or sets the reason.
template <class T, class Store>
bool queue_core<T, Store>::poll_slow(std::optional<T>& slot, status& done, wake_batch& wakes) {
  if (capacity_ == 0 && take_from_producer(slot, wakes)) {
    done = status::ok;
    return true;
  }
  const bool drained = closed_.load(relaxed) && store_.empty();
  done = drained ? status::closed : status::empty;
  return drained;
}

// ---- one attempt

template <class T, class Store>
bool queue_core<T, Store>::offer(T& item, status& done) {
  const auto weight = weigh(item);  // user code: before the lock
  if (drops()) [[unlikely]] return offer_dropping(item, weight, done);
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  return offer_locked(item, weight, done, wakes, nullptr, caller::arriving);
}

template <class T, class Store>
bool queue_core<T, Store>::offer_dropping(T& item, std::size_t weight, status& done) {
  dropped_items dropped;
  bool finished = false;
  try {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    finished = offer_locked(item, weight, done, wakes, &dropped, caller::arriving);
  } catch (...) {
    report(dropped);  // evicted items stay dropped even if moving the new item in threw
    throw;
  }
  report(dropped);
  return finished;
}

template <class T, class Store>
bool queue_core<T, Store>::poll(std::optional<T>& slot, status& done) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  return poll_locked(slot, done, wakes, caller::arriving);
}

}  // namespace sluice::detail
