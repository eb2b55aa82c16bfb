#pragma once

// Bodies of queue_core: the wait operations of push and pop, batches, closing, counters.

#include "sluice/base/detail/callback.hpp"
#include "sluice/queue/detail/queue_core.hpp"

namespace sluice::detail {

template <class T, class Store>
class queue_core<T, Store>::push_op {
 public:
  push_op(queue_core& queue, T& item) : queue_(queue) {
    node_.item = &item;
    node_.weight = queue.weigh(item);
  }

  bool ready() const noexcept {
    return queue_.size_.load(relaxed) < queue_.capacity_ || queue_.closed_.load(relaxed);
  }
  bool spins_linked() const noexcept { return queue_.capacity_ == 0; }
  spin_budget& spin() noexcept { return queue_.push_spin_; }

  bool attempt() {
    if (queue_.drops()) {
      return queue_.offer_dropping(*node_.item, node_.weight, node_.result);
    }
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    return try_locked(wakes, caller::arriving);
  }
  enlisted enlist(waiter& waiting) {
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    queue_.clear_wake_pending(node_, queue_.producers_);
    wait_report::used(&queue_, wait_report::side::producer);
    if (try_locked(wakes, again_ ? caller::woken : caller::arriving)) return enlisted::finished;
    node_.retries = waiting.is_thread() && queue_.capacity_ > 0;
    ++queue_.stats_.push_waits;
    return queue_.producers_.add(node_, waiting, again_ ? list_end::front : list_end::back);
  }
  bool woken() {
    if (!node_.retries) return true;
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    queue_.clear_wake_pending(node_, queue_.producers_);
    again_ = true;
    if (try_locked(wakes, caller::woken)) return true;
    // With weights, no other producer may go first until it waits again or gives up.
    if (queue_.weight_max_ != 0) queue_.mark_wake_pending(node_, queue_.producers_);
    return false;
  }
  void retract() {
    const std::lock_guard hold(queue_.lock_);
    queue_.clear_wake_pending(node_, queue_.producers_);
    if (node_.linked()) queue_.producers_.remove(node_);
  }
  status result(status ended) {
    if (!ended) {
      queue_.gave_up(ended);
      return ended;
    }
    if (node_.error) std::rethrow_exception(node_.error);
    return node_.result;
  }
  wait_report::subject wait_subject() const noexcept {
    return queue_.wait_subject(wait_report::side::producer);
  }

 private:
  bool try_locked(wake_batch& wakes, caller by) {
    // Policies that drop never wait: attempt() handles them.
    return queue_.offer_locked(*node_.item, node_.weight, node_.result, wakes, nullptr, by);
  }

  queue_core& queue_;
  node node_;
  bool again_ = false;  // was woken before: waits at the front
};

template <class T, class Store>
class queue_core<T, Store>::pop_op {
 public:
  explicit pop_op(queue_core& queue) noexcept : queue_(queue) { node_.slot = &slot_; }

  bool ready() const noexcept { return queue_.available() > 0 || queue_.closed_.load(relaxed); }
  bool spins_linked() const noexcept { return queue_.capacity_ == 0; }
  spin_budget& spin() noexcept { return queue_.pop_spin_; }

  bool attempt() { return queue_.poll(slot_, node_.result); }
  enlisted enlist(waiter& waiting) {
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    wait_report::used(&queue_, wait_report::side::consumer);
    for (;;) {
      const auto by = again_ ? caller::woken : caller::arriving;
      if (queue_.poll_locked(slot_, node_.result, wakes, by)) return enlisted::finished;
      if (!queue_.store_.settle(true)) break;
    }
    node_.retries = waiting.is_thread() && queue_.capacity_ > 0;
    ++queue_.stats_.pop_waits;
    return queue_.consumers_.add(node_, waiting, again_ ? list_end::front : list_end::back);
  }
  bool woken() {
    if (!node_.retries) return true;
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    queue_.clear_wake_pending(node_, queue_.consumers_);
    again_ = true;
    return queue_.poll_locked(slot_, node_.result, wakes, caller::woken);
  }
  void retract() {
    const std::lock_guard hold(queue_.lock_);
    if (node_.linked()) queue_.consumers_.remove(node_);
  }
  // An item that was due before the deadline is taken, however late either was noticed.
  bool take_late(const deadline& until) requires timed_store<Store> {
    wake_batch wakes;
    const std::lock_guard hold(queue_.lock_);
    return queue_.store_.due_by(until) &&
           queue_.poll_locked(slot_, node_.result, wakes, caller::arriving);
  }
  outcome<T> result(status ended) {
    if (!ended) return ended;
    if (node_.error) std::rethrow_exception(node_.error);
    return queue_core::to_outcome(slot_, node_.result);
  }
  wait_report::subject wait_subject() const noexcept {
    return queue_.wait_subject(wait_report::side::consumer);
  }

 private:
  queue_core& queue_;
  node node_;
  std::optional<T> slot_;
  bool again_ = false;
};

// ---- batches

// Pushes items until one is rejected. A dropped item is consumed: the batch continues, and its
// status is not ok. Returns false if the next item has to wait.
template <class T, class Store>
bool queue_core<T, Store>::offer_some(std::span<T> items, batch_result& result) {
  const auto is_consumed = [&result](status done) {
    if (done == status::ok || done == status::dropped) ++result.count;
    if (done != status::ok) result.status = done;
    return done == status::ok || done == status::dropped;
  };
  wait_report::used(this, wait_report::side::producer);
  status done = status::ok;
  const auto rest = items.subspan(result.count);
  if (drops() || weigh_) {  // user code runs between the items: not under one lock
    for (T& item : rest) {
      if (!offer(item, done)) return false;
      if (!is_consumed(done)) return true;
    }
    return true;
  }
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  for (T& item : rest) {
    if (!offer_locked(item, 0, done, wakes, nullptr, caller::arriving)) return false;
    if (!is_consumed(done)) return true;
  }
  return true;
}

template <class T, class Store>
void queue_core<T, Store>::take_some(std::vector<T>& taken, std::size_t max, wake_batch& wakes) {
  const auto most = std::min(max, taken.capacity());  // the vector must not grow under the lock
  while (taken.size() < most && store_.ready()) {
    try {
      release_one([&](T&& item) { taken.push_back(std::move(item)); });
      ++stats_.popped;
    } catch (...) {
      if (taken.empty()) throw;
      break;  // the item stays inside; the taken ones must not be lost with the exception
    }
  }
  serve(wakes, 1);
}

template <class T, class Store>
outcome<std::vector<T>> queue_core<T, Store>::try_pop_some(std::size_t max, call_site at) {
  check_some(max, at);
  wait_report::used(this, wait_report::side::consumer);
  std::vector<T> taken;
  taken.reserve(std::min(max, size() + 1));
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  take_some(taken, max, wakes);
  if (!taken.empty()) return taken;
  std::optional<T> slot;  // capacity 0, or the reason
  status done = status::ok;
  poll_locked(slot, done, wakes, caller::arriving);
  if (!slot.has_value()) return done;
  taken.push_back(std::move(*slot));
  return taken;
}

template <class T, class Store>
void queue_core<T, Store>::take_more(std::vector<T>& taken, std::size_t max) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  take_some(taken, max, wakes);
}

// ---- closing and counters

template <class T, class Store>
void queue_core<T, Store>::report(dropped_items& dropped) {
  // In this order: if nothing was dropped, a woken consumer may have destroyed the queue by now.
  if (!dropped.first.has_value() || !on_drop_) return;
  const auto report_one = [this](T& item) {
    call_back("on_drop of queue", name_, on_drop_, std::move(item));
  };
  report_one(*dropped.first);
  for (T& item : dropped.more) report_one(item);
}

template <class T, class Store>
void queue_core<T, Store>::note_rejected() noexcept {
  const std::lock_guard hold(lock_);
  ++stats_.rejected;
}

template <class T, class Store>
void queue_core<T, Store>::gave_up(status why) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  if (why == status::timed_out) ++stats_.rejected;
  serve(wakes);  // the lighter item of a later producer may fit
}

template <class T, class Store>
bool queue_core<T, Store>::close() {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  if (closed_.load(relaxed)) return false;
  closed_.store(true, release);  // release: pairs with the acquire in is_closed
  serve_waiting(wakes, 0);
  return true;
}

template <class T, class Store>
std::size_t queue_core<T, Store>::close_and_drop() {
  dropped_items dropped;
  dropped.more.reserve(size());  // not under the lock
  std::size_t count = 0;
  {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    closed_.store(true, release);  // release: pairs with the acquire in is_closed
    struct serving {
      queue_core& self;
      wake_batch& wakes;
      ~serving() { self.serve_waiting(wakes, 0); }
    } const at_the_end{*this, wakes};
    const auto sink = [&](T&& item) { dropped.add(std::move(item)); };
    for (; size_.load(relaxed) > 0; ++count) {
      weight_ -= store_.evict_oldest(sink);
      set_size(size_.load(relaxed) - 1);
      ++stats_.dropped;
    }
  }
  report(dropped);
  return count;
}

template <class T, class Store>
void queue_core<T, Store>::reconsider(wake_batch& wakes) {
  const std::lock_guard hold(lock_);
  serve_waiting(wakes, 0);
}

// ---- state

template <class T, class Store>
std::size_t queue_core<T, Store>::weight() const {
  const std::lock_guard hold(lock_);
  return weight_;
}

template <class T, class Store>
std::size_t queue_core<T, Store>::high_water() const {
  return stats().high_water;
}

template <class T, class Store>
queue_stats queue_core<T, Store>::stats() const {
  const std::lock_guard hold(lock_);
  return stats_;
}

}  // namespace sluice::detail
