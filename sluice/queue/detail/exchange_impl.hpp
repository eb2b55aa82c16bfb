#pragma once

// The bodies of exchange.hpp.

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
  check_named(capacity_ > 0 || zero == zero_capacity::rendezvous, type_, name_.c_str(),
              "a capacity of at least 1");
  check_named(capacity_ > 0 || !drops(), type_, name_.c_str(),
              "a capacity of at least 1 for a policy that drops");
  check_named((weight_max_ != 0) == static_cast<bool>(weigh_), type_, name_.c_str(),
              "weight_max and weigh to be given together");
}

template <class T, class Store>
exchange<T, Store>::~exchange() {
  const std::lock_guard hold(lock_);  // a call that is over may still be about to let go of it
  check_named(consumers_.empty() && consumers_.in_flight == 0, type_, name_.c_str(),
              "no consumers waiting inside at its destruction");
  check_named(producers_.empty() && producers_.in_flight == 0, type_, name_.c_str(),
              "no producers waiting inside at its destruction");
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
    const auto inside = size_.load(relaxed);
    if (next.retries) {
      const auto allowed = std::min(inside, 1 + cascade + inside / items_per_extra_wake);
      if (consumers_.in_flight >= allowed) break;
    }
    consumers_.remove(next);
    if (!next.who->try_claim(next)) continue;  // it gave up
    if (next.retries) {
      next.in_flight = true;
      ++consumers_.in_flight;
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
    if (next.retries) {
      const auto room = capacity_ - size_.load(relaxed);
      const auto allowed = std::min(room, 1 + cascade + room / items_per_extra_wake);
      if (producers_.in_flight >= allowed) break;
    }
    producers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    if (next.retries) {
      next.in_flight = true;
      ++producers_.in_flight;
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
bool exchange<T, Store>::landed(node& n, line& mine) noexcept {
  if (!n.in_flight) return false;
  n.in_flight = false;
  --mine.in_flight;
  return true;
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
  weight_ -= store_.take(std::forward<Sink>(sink));
  set_size(size_.load(relaxed) - 1);
}

template <class T, class Store>
void exchange<T, Store>::make_room(std::size_t weight, bin& dropped) {
  const auto sink = [&](T&& item) { dropped.add(std::move(item)); };
  while (!fits(weight)) {
    weight_ -= overflow_ == overflow::drop_oldest ? store_.evict_oldest(sink)
                                                  : store_.evict_latest(sink);
    set_size(size_.load(relaxed) - 1);
    ++stats_.dropped;
  }
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
  while (!consumers_.empty()) {
    node& next = consumers_.front();
    consumers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    next.slot->emplace(std::move(item));
    next.result = status::ok;
    ++stats_.pushed;
    ++stats_.popped;
    wakes.add(*next.who);
    return true;
  }
  return false;
}

template <class T, class Store>
bool exchange<T, Store>::take_from_producer(std::optional<T>& slot, wake_batch& wakes) {
  while (!producers_.empty()) {
    node& next = producers_.front();
    producers_.remove(next);
    if (!next.who->try_claim(next)) continue;
    slot.emplace(std::move(*next.item));
    next.result = status::ok;
    ++stats_.pushed;
    ++stats_.popped;
    wakes.add(*next.who);
    return true;
  }
  return false;
}

template <class T, class Store>
bool exchange<T, Store>::offer_locked(T& item, std::size_t weight, status& done,
                                      wake_batch& wakes, bin* dropped, turn whose) {
  if (closed_.load(relaxed)) {
    done = status::closed;
    return true;
  }
  if (fits(weight) && (whose == turn::mine || !overtakes())) [[likely]] {
    accept(item, weight);
    serve(wakes, whose == turn::mine ? 1 : 0);
    done = status::ok;
    return true;
  }
  if (capacity_ == 0 && hand_to_consumer(item, wakes)) {
    done = status::ok;
    return true;
  }
  done = status::full;
  const bool too_heavy = weight_max_ != 0 && weight > weight_max_;
  if (too_heavy || overflow_ == overflow::reject) {
    ++stats_.rejected;
    return true;
  }
  if (overflow_ == overflow::block) return false;
  if (overflow_ == overflow::drop_newest) {
    dropped->add(std::move(item));
    ++stats_.dropped;
    done = status::dropped;
    return true;
  }
  make_room(weight, *dropped);
  accept(item, weight);
  serve(wakes);
  done = status::ok;
  return true;
}

template <class T, class Store>
bool exchange<T, Store>::poll_locked(std::optional<T>& slot, status& done, wake_batch& wakes,
                                     turn whose) {
  if (store_.ready()) [[likely]] {
    release_one([&](T&& item) { slot.emplace(std::move(item)); });
    ++stats_.popped;
    serve(wakes, whose == turn::mine ? 1 : 0);
    done = status::ok;
    return true;
  }
  if (capacity_ == 0 && take_from_producer(slot, wakes)) {
    done = status::ok;
    return true;
  }
  if (closed_.load(relaxed) && store_.empty()) {
    done = status::closed;
    return true;
  }
  done = status::empty;
  return false;
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
  {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    finished = offer_locked(item, weight, done, wakes, &dropped, turn::any);
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

template <class T, class Store>
void exchange<T, Store>::report(bin& dropped) {
  if (!on_drop_ || !dropped.first.has_value()) return;
  on_drop_(std::move(*dropped.first));
  for (T& item : dropped.more) on_drop_(std::move(item));
}

template <class T, class Store>
void exchange<T, Store>::note_rejected() noexcept {
  const std::lock_guard hold(lock_);
  ++stats_.rejected;
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
void exchange<T, Store>::reconsider() {
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  serve_waiting(wakes, 0);
}

// ---- waiting

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
    return try_locked(wakes, turn::mine);
  }
  void retract() {
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
    if (node_.linked()) exchange_.producers_.remove(node_);
    exchange_.serve(wakes);  // a lighter item behind it may fit
  }
  status result(status ended) {
    if (!ended) {
      if (ended == status::timed_out) exchange_.note_rejected();
      return ended;
    }
    if (node_.error) std::rethrow_exception(node_.error);
    return node_.result;
  }

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
class exchange<T, Store>::owning_push_op : private std::optional<T>, public push_op {
 public:
  owning_push_op(exchange& x, T&& item)
      : std::optional<T>(std::move(item)), push_op(x, **static_cast<std::optional<T>*>(this)) {}
};

template <class T, class Store>
class exchange<T, Store>::pop_op {
 public:
  explicit pop_op(exchange& x) noexcept : exchange_(x) { node_.slot = &slot_; }

  bool ready() const noexcept {
    return exchange_.size_.load(relaxed) > 0 || exchange_.closed_.load(relaxed);
  }
  bool spins_linked() const noexcept { return exchange_.capacity_ == 0; }
  spin_budget& spin() noexcept { return exchange_.pop_spin_; }

  bool attempt() { return exchange_.poll(slot_, node_.result); }
  enlisted enlist(waiter& who) {
    wake_batch wakes;
    const std::lock_guard hold(exchange_.lock_);
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
  outcome<T> result(status ended) {
    if (!ended) return ended;
    if (node_.error) std::rethrow_exception(node_.error);
    return to_outcome(slot_, node_.result);
  }

 private:
  exchange& exchange_;
  node node_;
  std::optional<T> slot_;
  bool again_ = false;
};

template <class T, class Store>
status exchange<T, Store>::push_within(T& item, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  status done = status::ok;
  return offer(item, done) ? done : wait_push(item, limits);
}

template <class T, class Store>
status exchange<T, Store>::wait_push(T& item, const wait_limits& limits) {
  push_op op(*this, item);
  return op.result(wait_blocking(op, limits));
}

template <class T, class Store>
outcome<T> exchange<T, Store>::pop_within(const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  std::optional<T> slot;
  status done = status::ok;
  return poll(slot, done) ? to_outcome(slot, done) : wait_pop(limits);
}

template <class T, class Store>
outcome<T> exchange<T, Store>::wait_pop(const wait_limits& limits) {
  pop_op op(*this);
  return op.result(wait_blocking(op, limits));
}

// ---- batches

template <class T, class Store>
batch_result exchange<T, Store>::try_push_all(std::span<T> items) {
  batch_result result;
  if (drops() || weigh_) {  // the user's code runs between the items: not under one lock
    for (T& item : items) {
      if (!offer(item, result.status)) return result;
      if (result.status != status::ok && result.status != status::dropped) return result;
      ++result.count;
    }
    return result;
  }
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  for (T& item : items) {
    if (!offer_locked(item, 0, result.status, wakes, nullptr, turn::any)) return result;
    if (!result.status) return result;
    ++result.count;
  }
  return result;
}

template <class T, class Store>
batch_result exchange<T, Store>::push_all(std::span<T> items, const wait_limits& limits) {
  batch_result result;
  if (limits.stop.stop_requested()) return {0, items.empty() ? status::ok : status::stopped};
  for (;;) {
    const auto some = try_push_all(items.subspan(result.count));
    result.count += some.count;
    result.status = some.status;
    if (result.count == items.size() || result.status != status::full) return result;
    // No room now: wait for the next one as a single push would.
    result.status = push_within(items[result.count], limits);
    if (!result.status && result.status != status::dropped) return result;
    if (++result.count == items.size()) return result;
  }
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
outcome<std::vector<T>> exchange<T, Store>::try_pop_some(std::size_t max) {
  check_named(max > 0, type_, name_.c_str(), "to be asked for at least one item");
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
outcome<std::vector<T>> exchange<T, Store>::pop_some(std::size_t max, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  if (auto now = try_pop_some(max); now || now.status() != status::empty) return now;
  auto first = pop_within(limits);
  if (!first) return first.status();
  std::vector<T> taken;
  taken.reserve(std::min(max, size() + 1));
  taken.push_back(std::move(*first));
  wake_batch wakes;
  const std::lock_guard hold(lock_);
  take_some(taken, max, wakes);
  return taken;
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
