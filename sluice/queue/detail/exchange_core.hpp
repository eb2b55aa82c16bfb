#pragma once

// The inside of exchange.hpp: lines, in and out, one try. Nothing here waits.

#include "sluice/queue/exchange.hpp"

namespace sluice {

// While this many more items (or free places) than that are there, one more thread is woken at a
// time: a wake takes a thread tens of microseconds, in which a running one handles hundreds.
inline constexpr std::size_t items_per_extra_wake = 128;

template <class T, class Store>
template <class... StoreArgs>
exchange<T, Store>::exchange(const char* type, options o, zero_capacity zero, StoreArgs&&... store)
    : type_(type),
      name_(std::move(o.name)),
      capacity_(o.capacity),
      weight_max_(o.weight_max),
      overflow_(o.overflow),
      weigh_(std::move(o.weigh)),
      on_drop_(std::move(o.on_drop)),
      store_(std::forward<StoreArgs>(store)...) {
  static_assert(exchange_store<Store, T>);
  const bool may_be_zero = zero == zero_capacity::rendezvous;
  const char* const expected =
      detail::queue_problem(may_be_zero ? std::max<std::size_t>(capacity_, 1) : capacity_,
                            overflow_, weight_max_, static_cast<bool>(weigh_));
  check_named(expected == nullptr, type_, name_.c_str(), expected);
  check_named(capacity_ > 0 || !drops(), type_, name_.c_str(),
              "a capacity of at least 1 for a policy that drops");
  if (!name_.empty()) watch::set_name(this, name_);
}

template <class T, class Store>
exchange<T, Store>::~exchange() {
  const std::lock_guard hold(lock_);  // a call that is over may still be about to let go of it
  check_named(consumers_.empty() && consumers_.in_flight == 0, type_, name_.c_str(),
              "no consumers waiting inside at its destruction");
  check_named(producers_.empty() && producers_.in_flight == 0, type_, name_.c_str(),
              "no producers waiting inside at its destruction");
  watch::gone(this);
}

// ---- the lines

template <class T, class Store>
enlisted exchange<T, Store>::line::add(node& n, waiter& who, list_end where) noexcept {
  const auto joined = join(nodes, n, who, where);
  if (joined == enlisted::waiting) length.store(length.load(relaxed) + 1, relaxed);
  return joined;
}

template <class T, class Store>
void exchange<T, Store>::line::link(node& n, waiter& who) noexcept {
  n.who = &who;
  nodes.push_back(n);
  length.store(length.load(relaxed) + 1, relaxed);
}

template <class T, class Store>
void exchange<T, Store>::line::remove(node& n) noexcept {
  n.unlink();
  length.store(length.load(relaxed) - 1, relaxed);
}

template <class T, class Store>
bool exchange<T, Store>::serve_consumers(wake_batch& wakes, std::uint32_t cascade) {
  bool moved = false;
  while (!consumers_.empty() && store_.ready()) {
    node& next = consumers_.front();
    const auto inside = available();
    if (next.retries) {
      const auto allowed = std::min(inside, 1 + cascade + inside / items_per_extra_wake);
      if (consumers_.in_flight + about_to_look() >= allowed) break;
    }
    consumers_.remove(next);
    if (!next.who->try_claim(next)) continue;  // it gave up
    watch::used(this, watch::side::gives);
    if (next.retries) {
      depart(next, consumers_);
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
    wakes.add(*next.who);
  }
  return moved;
}

template <class T, class Store>
bool exchange<T, Store>::serve_producers(wake_batch& wakes, std::uint32_t cascade) {
  bool moved = false;
  while (!producers_.empty() && !closed_.load(relaxed) && fits(producers_.front().weight)) {
    node& next = producers_.front();
    // Strictly in turn: nobody passes the one that was woken and has not tried yet.
    if (weight_max_ != 0 && producers_.in_flight > 0) break;
    if (next.retries) {
      const auto room = capacity_ - size_.load(relaxed);
      const auto allowed = std::min(room, 1 + cascade + room / items_per_extra_wake);
      if (producers_.in_flight >= allowed) break;
    }
    producers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    watch::used(this, watch::side::takes);
    if (next.retries) {
      depart(next, producers_);
    } else {
      try {
        accept(*next.item, next.weight);
        next.result = status::ok;
      } catch (...) {
        next.error = std::current_exception();
      }
      moved = true;
    }
    wakes.add(*next.who);
  }
  return moved;
}

template <class T, class Store>
void exchange<T, Store>::dismiss(line& waiting, wake_batch& wakes) {
  while (!waiting.empty()) {
    node& next = waiting.front();
    waiting.remove(next);
    if (!next.who->try_claim(next)) continue;
    next.result = status::closed;
    wakes.add(*next.who);
  }
}

template <class T, class Store>
void exchange<T, Store>::serve_waiting(wake_batch& wakes, std::uint32_t cascade) {
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
void exchange<T, Store>::depart(node& n, line& mine) noexcept {
  n.in_flight = true;
  ++mine.in_flight;
}

template <class T, class Store>
void exchange<T, Store>::landed(node& n, line& mine) noexcept {
  if (!n.in_flight) return;
  n.in_flight = false;
  --mine.in_flight;
}

// ---- in and out, under the lock

template <class T, class Store>
bool exchange<T, Store>::fits(std::size_t weight) const noexcept {
  return size_.load(relaxed) < capacity_ &&
         (weight_max_ == 0 || (weight <= weight_max_ && weight_ <= weight_max_ - weight));
}

template <class T, class Store>
bool exchange<T, Store>::overtakes() const noexcept {
  return weight_max_ != 0 && (!producers_.empty() || producers_.in_flight != 0);
}

template <class T, class Store>
void exchange<T, Store>::accept(T& item, std::size_t weight) {
  store_.put(item, weight);  // all that can throw comes first
  weight_ += weight;
  const auto inside = size_.load(relaxed) + 1;
  set_size(inside);
  ++stats_.pushed;
  if (inside > stats_.high_water) stats_.high_water = inside;
}

template <class T, class Store>
template <class Sink>
void exchange<T, Store>::release_one(Sink&& sink) {
  const auto beside = uncounted();
  weight_ -= store_.take(std::forward<Sink>(sink));
  if (uncounted() == beside) set_size(size_.load(relaxed) - 1);
}

// False: what is left inside matters more than the item.
template <class T, class Store>
bool exchange<T, Store>::make_room(const T& item, std::size_t weight, bin& dropped) {
  const auto sink = [&](T&& evicted) { dropped.add(std::move(evicted)); };
  while (!fits(weight)) {
    if (matters_least(item)) return false;
    weight_ -= overflow_ == overflow::drop_oldest ? store_.evict_oldest(sink)
                                                  : store_.evict_latest(sink);
    set_size(size_.load(relaxed) - 1);
    ++stats_.dropped;
  }
  return true;
}

template <class T, class Store>
void exchange<T, Store>::bin::add(T&& item) {
  if (!first.has_value()) {
    first.emplace(std::move(item));
  } else {
    more.push_back(std::move(item));
  }
}

// Capacity 0: the item goes from hand to hand.
template <class T, class Store>
bool exchange<T, Store>::hand_to_consumer(T& item, wake_batch& wakes) {
  watch::used(this, watch::side::gives);
  while (!consumers_.empty()) {
    node& next = consumers_.front();
    consumers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    wakes.add(*next.who);
    try {
      next.slot->emplace(std::move(item));
    } catch (...) {
      next.error = std::current_exception();  // it is claimed: it must hear something
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
bool exchange<T, Store>::take_from_producer(std::optional<T>& slot, wake_batch& wakes) {
  watch::used(this, watch::side::takes);
  while (!producers_.empty()) {
    node& next = producers_.front();
    producers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    wakes.add(*next.who);
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

// The way of almost every item: small, and inlined into the caller.
template <class T, class Store>
[[gnu::always_inline]] inline bool exchange<T, Store>::offer_locked(T& item, std::size_t weight,
                                                                    status& done,
                                                                    wake_batch& wakes,
                                                                    bin* dropped, turn whose) {
  if (closed_.load(relaxed) || !fits(weight) || (whose == turn::any && overtakes())) [[unlikely]] {
    return refuse_locked(item, weight, done, wakes, dropped);
  }
  try {
    accept(item, weight);
  } catch (...) {
    serve(wakes, 1);  // the room is still there, and this thread may have been woken for it
    throw;
  }
  tell_some(watch::side::gives, stats_.pushed);
  serve(wakes, whose == turn::mine ? 1 : 0);
  done = status::ok;
  return true;
}

template <class T, class Store>
bool exchange<T, Store>::refuse_locked(T& item, std::size_t weight, status& done,
                                       wake_batch& wakes, bin* dropped) {
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
  if (overflow_ == overflow::drop_newest || !make_room(item, weight, *dropped)) {
    dropped->add(std::move(item));
    ++stats_.dropped;
    done = status::dropped;
    serve(wakes);  // there may be more room than before
    return true;
  }
  accept(item, weight);
  serve(wakes);
  done = status::ok;
  return true;
}

template <class T, class Store>
[[gnu::always_inline]] inline bool exchange<T, Store>::poll_locked(std::optional<T>& slot,
                                                                   status& done,
                                                                   wake_batch& wakes, turn whose) {
  if (!store_.ready()) [[unlikely]] return find_nothing(slot, done, wakes);
  try {
    release_one([&](T&& item) { slot.emplace(std::move(item)); });
  } catch (...) {
    serve(wakes, 1);  // the item is still there, and this thread may have been woken for it
    throw;
  }
  ++stats_.popped;
  tell_some(watch::side::takes, stats_.popped);
  serve(wakes, whose == turn::mine ? 1 : 0);
  done = status::ok;
  return true;
}

// Nothing in the store: from hand to hand, or why there is nothing.
template <class T, class Store>
bool exchange<T, Store>::find_nothing(std::optional<T>& slot, status& done, wake_batch& wakes) {
  if (capacity_ == 0 && take_from_producer(slot, wakes)) {
    done = status::ok;
    return true;
  }
  const bool drained = closed_.load(relaxed) && store_.empty();
  done = drained ? status::closed : status::empty;
  return drained;
}

// ---- one try

template <class T, class Store>
bool exchange<T, Store>::offer(T& item, status& done) {
  const auto weight = weigh(item);  // the user's code: before the lock
  if (drops()) [[unlikely]] return offer_dropping(item, weight, done);
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  return offer_locked(item, weight, done, wakes, nullptr, turn::any);
}

template <class T, class Store>
bool exchange<T, Store>::offer_dropping(T& item, std::size_t weight, status& done) {
  bin dropped;
  bool finished = false;
  try {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    finished = offer_locked(item, weight, done, wakes, &dropped, turn::any);
  } catch (...) {
    report(dropped);  // what made room is gone, also when the item then could not be moved in
    throw;
  }
  report(dropped);
  return finished;
}

template <class T, class Store>
bool exchange<T, Store>::poll(std::optional<T>& slot, status& done) {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  return poll_locked(slot, done, wakes, turn::any);
}

}  // namespace sluice
