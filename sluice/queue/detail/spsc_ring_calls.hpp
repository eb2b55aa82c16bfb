#pragma once

// Bodies of spsc_ring: the wait operations of push and pop, batches.

#include "sluice/queue/spsc_ring.hpp"

namespace sluice {

template <class T>
class spsc_ring<T>::push_op {
 public:
  push_op(spsc_ring& ring, T& item) noexcept : ring_(ring), item_(item) {}

  bool ready() const noexcept {
    return ring_.has_free_slots() || ring_.closed_.load(relaxed);
  }
  bool attempt() { return ring_.offer(item_, done_); }
  enlisted enlist(waiter& waiting) {
    add_one(ring_.push_waits_);
    const auto joined = ring_.enlist(ring_.producer_, node_, waiting, "one producer at a time",
                                     [this] { return ready(); });
    if (joined != enlisted::finished) return joined;
    finish();
    return joined;
  }
  // Only this producer can use the free slot: it moves the item in itself.
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
  wait_report::subject wait_subject() const noexcept {
    return ring_.wait_subject(wait_report::side::producer);
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
class spsc_ring<T>::pop_op {
 public:
  explicit pop_op(spsc_ring& ring) noexcept : ring_(ring) {}

  bool ready() const noexcept {
    return ring_.has_items() || ring_.sealed_.load(relaxed);
  }
  bool attempt() { return ring_.poll(slot_, done_); }
  enlisted enlist(waiter& waiting) {
    add_one(ring_.pop_waits_);
    const auto joined = ring_.enlist(ring_.consumer_, node_, waiting, "one consumer at a time",
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
    return spsc_ring::to_outcome(slot_, done_);
  }
  wait_report::subject wait_subject() const noexcept {
    return ring_.wait_subject(wait_report::side::consumer);
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

// ---- batches

template <class T>
outcome<std::vector<T>> spsc_ring<T>::try_pop_some(std::size_t max, call_site at) {
  check_some(max, at);
  std::vector<T> taken;
  const bool sealed = sealed_.load(acquire);  // before tail_ is read, which then finds every item
  taken.reserve(std::min(max, size() + 1));
  take_more(taken, max);
  if (!taken.empty()) return taken;
  return status(sealed ? status::closed : status::empty);
}

}  // namespace sluice
