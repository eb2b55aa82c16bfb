#pragma once

// The waiting calls of spsc_ring.hpp, made of one push and one pop operation, and the batches.

#include "sluice/queue/spsc_ring.hpp"

namespace sluice {

template <class T>
class spsc_ring<T>::push_op {
 public:
  push_op(spsc_ring& ring, T& item) noexcept : ring_(ring), item_(item) {}

  bool ready() const noexcept {
    return ring_.has_room() || ring_.closed_.load(relaxed);
  }
  bool attempt() { return ring_.offer(item_, done_); }
  enlisted enlist(waiter& who) {
    add_one(ring_.push_waits_);
    const auto joined = ring_.enlist(ring_.producer_, node_, who, "one producer at a time",
                                     [this] { return ready(); });
    if (joined != enlisted::finished) return joined;
    finish();
    return joined;
  }
  // Nobody else can use the room: the producer itself moves the item in.
  bool woken() {
    finish();
    return true;
  }
  void retract() noexcept { ring_.retract(ring_.producer_, node_); }
  spin_budget& spin() noexcept { return ring_.push_spin_; }
  status result(status ended) noexcept {
    if (ended == status::timed_out) ring_.note_rejected();
    return ended ? done_ : ended;
  }

 private:
  void finish() {
    if (!attempt()) check_named(false, type, ring_.name_.c_str(), "one producer at a time");
  }

  spsc_ring& ring_;
  T& item_;
  wait_node node_;
  status done_ = status::ok;
};

template <class T>
class spsc_ring<T>::owning_push_op : private std::optional<T>, public push_op {
 public:
  owning_push_op(spsc_ring& ring, T&& item)
      : std::optional<T>(std::move(item)), push_op(ring, **static_cast<std::optional<T>*>(this)) {}
};

template <class T>
class spsc_ring<T>::pop_op {
 public:
  explicit pop_op(spsc_ring& ring) noexcept : ring_(ring) {}

  bool ready() const noexcept {
    return ring_.has_items() || ring_.sealed_.load(relaxed);
  }
  bool attempt() { return ring_.poll(slot_, done_); }
  enlisted enlist(waiter& who) {
    add_one(ring_.pop_waits_);
    const auto joined = ring_.enlist(ring_.consumer_, node_, who, "one consumer at a time",
                                     [this] { return ready(); });
    if (joined != enlisted::finished) return joined;
    finish();
    return joined;
  }
  bool woken() {
    finish();
    return true;
  }
  void retract() noexcept { ring_.retract(ring_.consumer_, node_); }
  spin_budget& spin() noexcept { return ring_.pop_spin_; }
  outcome<T> result(status ended) {
    if (!ended) return ended;
    return to_outcome(slot_, done_);
  }

 private:
  void finish() {
    if (!attempt()) check_named(false, type, ring_.name_.c_str(), "one consumer at a time");
  }

  spsc_ring& ring_;
  wait_node node_;
  std::optional<T> slot_;
  status done_ = status::ok;
};

template <class T>
status spsc_ring<T>::push_within(T& item, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  status done = status::ok;
  return offer(item, done) ? done : wait_push(item, limits);
}

template <class T>
status spsc_ring<T>::wait_push(T& item, const wait_limits& limits) {
  push_op op(*this, item);
  return op.result(wait_blocking(op, limits));
}

template <class T>
outcome<T> spsc_ring<T>::pop_within(const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  std::optional<T> slot;
  status done = status::ok;
  return poll(slot, done) ? to_outcome(slot, done) : wait_pop(limits);
}

template <class T>
outcome<T> spsc_ring<T>::wait_pop(const wait_limits& limits) {
  pop_op op(*this);
  return op.result(wait_blocking(op, limits));
}

// ---- batches

template <class T>
batch_result spsc_ring<T>::try_push_all(std::span<T> items) {
  batch_result result;
  if (!offer_some(items, result)) note_rejected();
  return result;
}

template <class T>
batch_result spsc_ring<T>::push_all(std::span<T> items, const wait_limits& limits) {
  batch_result result;
  if (limits.stop.stop_requested()) return {0, items.empty() ? status::ok : status::stopped};
  while (!offer_some(items, result)) {
    result.status = push_within(items[result.count], limits);
    if (!result.status) break;
    ++result.count;
  }
  return result;
}

template <class T>
outcome<std::vector<T>> spsc_ring<T>::try_pop_some(std::size_t max) {
  check_named(max > 0, type, name_.c_str(), "to be asked for at least one item");
  std::vector<T> taken;
  const bool sealed = sealed_.load(acquire);  // before looking: then what is inside is all
  taken.reserve(std::min(max, size() + 1));
  take_some(taken, max);
  if (!taken.empty()) return taken;
  return status(sealed ? status::closed : status::empty);
}

template <class T>
outcome<std::vector<T>> spsc_ring<T>::pop_some(std::size_t max, const wait_limits& limits) {
  if (limits.stop.stop_requested()) return status::stopped;
  if (auto now = try_pop_some(max); now || now.status() != status::empty) return now;
  std::vector<T> taken;
  taken.reserve(std::min(max, few_at_least));  // before: once popped, nothing must fail
  auto first = pop_within(limits);
  if (!first) return first.status();
  taken.push_back(std::move(*first));
  take_some(taken, max);
  return taken;
}

}  // namespace sluice
