#pragma once

// The rest of exchange.hpp: the waits to push and to pop, the batches, closing, counting.

#include "sluice/base/callback.hpp"
#include "sluice/queue/exchange.hpp"

namespace sluice {

template <class T, class Store>
class exchange<T, Store>::push_op {
 public:
  push_op(exchange& x, T& item) : exchange_(x) {
    node_.item = &item;
    node_.weight = x.weigh(item);
  }

  bool ready() const noexcept {
    return exchange_.size_.load(relaxed) < exchange_.capacity_ ||
           exchange_.closed_.load(relaxed);
  }
  bool spins_linked() const noexcept { return exchange_.capacity_ == 0; }
  spin_budget& spin() noexcept { return exchange_.push_spin_; }

  bool attempt() {
    if (exchange_.drops()) {
      return exchange_.offer_dropping(*node_.item, node_.weight, node_.result);
    }
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    return try_locked(wakes, turn::any);
  }
  enlisted enlist(waiter& who) {
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    exchange_.landed(node_, exchange_.producers_);
    watch::used(&exchange_, watch::side::gives);
    if (try_locked(wakes, again_ ? turn::mine : turn::any)) return enlisted::finished;
    node_.retries = who.is_thread() && exchange_.capacity_ > 0;
    ++exchange_.stats_.push_waits;
    return exchange_.producers_.add(node_, who, again_ ? list_end::front : list_end::back);
  }
  bool woken() {
    if (!node_.retries) return true;
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    exchange_.landed(node_, exchange_.producers_);
    again_ = true;
    if (try_locked(wakes, turn::mine)) return true;
    // With weights, it keeps its turn until it stands in line again or gives up.
    if (exchange_.weight_max_ != 0) exchange_.depart(node_, exchange_.producers_);
    return false;
  }
  void retract() {
    const std::lock_guard hold(exchange_.lock_);
    exchange_.landed(node_, exchange_.producers_);
    if (node_.linked()) exchange_.producers_.remove(node_);
  }
  status result(status ended) {
    if (!ended) {
      exchange_.gave_up(ended);
      return ended;
    }
    if (node_.error) std::rethrow_exception(node_.error);
    return node_.result;
  }
  watch::subject about() const noexcept { return exchange_.about(watch::side::gives); }

 private:
  bool try_locked(wake_batch& wakes, turn whose) {
    // Only the policies that never wait drop: attempt() handles them.
    return exchange_.offer_locked(*node_.item, node_.weight, node_.result, wakes, nullptr, whose);
  }

  exchange& exchange_;
  node node_;
  bool again_ = false;  // was woken before: it keeps its place at the front
};

template <class T, class Store>
class exchange<T, Store>::pop_op {
 public:
  explicit pop_op(exchange& x) noexcept : exchange_(x) { node_.slot = &slot_; }

  bool ready() const noexcept {
    return exchange_.available() > 0 || exchange_.closed_.load(relaxed);
  }
  bool spins_linked() const noexcept { return exchange_.capacity_ == 0; }
  spin_budget& spin() noexcept { return exchange_.pop_spin_; }

  bool attempt() { return exchange_.poll(slot_, node_.result); }
  enlisted enlist(waiter& who) {
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    watch::used(&exchange_, watch::side::takes);
    for (;;) {
      const auto whose = again_ ? turn::mine : turn::any;
      if (exchange_.poll_locked(slot_, node_.result, wakes, whose)) return enlisted::finished;
      if (!exchange_.store_.settle(true)) break;
    }
    node_.retries = who.is_thread() && exchange_.capacity_ > 0;
    ++exchange_.stats_.pop_waits;
    return exchange_.consumers_.add(node_, who, again_ ? list_end::front : list_end::back);
  }
  bool woken() {
    if (!node_.retries) return true;
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    exchange_.landed(node_, exchange_.consumers_);
    again_ = true;
    return exchange_.poll_locked(slot_, node_.result, wakes, turn::mine);
  }
  void retract() {
    const std::lock_guard hold(exchange_.lock_);
    if (node_.linked()) exchange_.consumers_.remove(node_);
  }
  // An item whose time came before the deadline wins over it, however late either was noticed.
  bool take_late(const deadline& until)
    requires requires(const Store& s) { s.due_by(until); }
  {
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    return exchange_.store_.due_by(until) &&
           exchange_.poll_locked(slot_, node_.result, wakes, turn::any);
  }
  outcome<T> result(status ended) {
    if (!ended) return ended;
    if (node_.error) std::rethrow_exception(node_.error);
    return exchange::to_outcome(slot_, node_.result);
  }
  watch::subject about() const noexcept { return exchange_.about(watch::side::takes); }

 private:
  exchange& exchange_;
  node node_;
  std::optional<T> slot_;
  bool again_ = false;
};

// ---- batches

// Stops at the first that was turned away. One that was dropped has left the caller's hands: the
// batch goes on, and is not ok. False: the next one would have to wait.
template <class T, class Store>
bool exchange<T, Store>::offer_some(std::span<T> items, batch_result& result) {
  const auto is_gone = [&result](status done) {
    if (done == status::ok || done == status::dropped) ++result.count;
    if (done != status::ok) result.status = done;
    return done == status::ok || done == status::dropped;
  };
  watch::used(this, watch::side::gives);
  status done = status::ok;
  const auto rest = items.subspan(result.count);
  if (drops() || weigh_) {  // the user's code runs between the items: not under one lock
    for (T& item : rest) {
      if (!offer(item, done)) return false;
      if (!is_gone(done)) return true;
    }
    return true;
  }
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  for (T& item : rest) {
    if (!offer_locked(item, 0, done, wakes, nullptr, turn::any)) return false;
    if (!is_gone(done)) return true;
  }
  return true;
}

template <class T, class Store>
void exchange<T, Store>::take_some(std::vector<T>& taken, std::size_t max, wake_batch& wakes) {
  const auto room = std::min(max, taken.capacity());  // the vector must not grow under the lock
  while (taken.size() < room && store_.ready()) {
    try {
      release_one([&](T&& item) { taken.push_back(std::move(item)); });
      ++stats_.popped;
    } catch (...) {
      if (taken.empty()) throw;
      break;  // it stays inside; those taken so far must not be lost with the exception
    }
  }
  serve(wakes, 1);
}

template <class T, class Store>
outcome<std::vector<T>> exchange<T, Store>::try_pop_some(std::size_t max, call_site at) {
  check_some(max, at);
  watch::used(this, watch::side::takes);
  std::vector<T> taken;
  taken.reserve(std::min(max, size() + 1));
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  take_some(taken, max, wakes);
  if (!taken.empty()) return taken;
  std::optional<T> slot;  // capacity 0, or the reason why there is nothing
  status done = status::ok;
  poll_locked(slot, done, wakes, turn::any);
  if (!slot.has_value()) return done;
  taken.push_back(std::move(*slot));
  return taken;
}

template <class T, class Store>
void exchange<T, Store>::take_more(std::vector<T>& taken, std::size_t max) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  take_some(taken, max, wakes);
}

// ---- ending, and what is counted

template <class T, class Store>
void exchange<T, Store>::report(bin& dropped) {
  if (!on_drop_ || !dropped.first.has_value()) return;
  const auto report_one = [this](T& item) {
    call_back("on_drop of queue", name_, on_drop_, std::move(item));
  };
  report_one(*dropped.first);
  for (T& item : dropped.more) report_one(item);
}

template <class T, class Store>
void exchange<T, Store>::note_rejected() noexcept {
  const std::lock_guard hold(lock_);
  ++stats_.rejected;
}

template <class T, class Store>
void exchange<T, Store>::gave_up(status why) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  if (why == status::timed_out) ++stats_.rejected;
  serve(wakes);  // a lighter item behind it may fit
}

template <class T, class Store>
bool exchange<T, Store>::close() {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  if (closed_.load(relaxed)) return false;
  closed_.store(true, release);  // release: pairs with the acquire in is_closed
  serve_waiting(wakes, 0);
  return true;
}

template <class T, class Store>
std::size_t exchange<T, Store>::close_and_drop() {
  bin dropped;
  dropped.more.reserve(size());  // not under the lock
  std::size_t count = 0;
  {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    closed_.store(true, release);  // release: pairs with the acquire in is_closed
    struct serving {
      exchange& self;
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
void exchange<T, Store>::reconsider(wake_batch& wakes) {
  const std::lock_guard hold(lock_);
  serve_waiting(wakes, 0);
}

// ---- looking

template <class T, class Store>
std::size_t exchange<T, Store>::weight() const {
  const std::lock_guard hold(lock_);
  return weight_;
}

template <class T, class Store>
std::size_t exchange<T, Store>::high_water() const {
  return stats().high_water;
}

template <class T, class Store>
queue_stats exchange<T, Store>::stats() const {
  const std::lock_guard hold(lock_);
  return stats_;
}

}  // namespace sluice
