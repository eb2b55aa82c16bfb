#pragma once

// A worker's own pieces of work: the worker puts and takes at one end with plain stores, others
// take the oldest from the other end. After Chase and Lev, with a ring that never grows.
//
// Guarantees: `push`, `pop` and `size` are the owner's alone; any thread may `steal` and look at
// `looks_empty`. Every item comes out exactly once. The owner gets the youngest, a thief the
// oldest. What happened before a push is seen by whoever gets the item.
// Limits: a fixed capacity, a power of two; a push that finds it full says so and changes nothing.
// Cost: a push is a store and a release store; a pop one exchange; a steal one compare-and-swap,
// repeated while others win. Each end has a cache line of its own; the thieves' changes hands only
// when something is stolen or the last item is taken.
//
// top_ and bottom_ count for ever and never wrap in practice. Items are in [top_, bottom_).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"

namespace sluice::detail {

template <class T>
class steal_deque {
 public:
  explicit steal_deque(std::size_t capacity)
      : mask_(static_cast<std::int64_t>(capacity) - 1),
        slots_(std::make_unique<atomic<T*>[]>(capacity)) {
    check(std::has_single_bit(capacity), "sluice::steal_deque", "a power of two as capacity");
  }
  steal_deque(const steal_deque&) = delete;
  steal_deque& operator=(const steal_deque&) = delete;

  // Owner. False: it is full.
  bool push(T* item) noexcept {
    const auto bottom = bottom_.load(relaxed);  // the owner alone writes it
    if (bottom - top_seen_ > mask_) [[unlikely]] {
      // acquire: pairs with the CAS of a thief, which has read the slot that is used again.
      top_seen_ = top_.load(acquire);
      if (bottom - top_seen_ > mask_) return false;
    }
    slot(bottom).store(item, relaxed);
    // release: pairs with the load of bottom_ in steal, which then sees the slot and the item.
    bottom_.store(bottom + 1, release);
    return true;
  }

  // Owner. Others can only make room.
  bool is_full() const noexcept { return size() == capacity(); }

  // Owner. Null: it is empty.
  T* pop() noexcept {
    const auto last = bottom_.load(relaxed) - 1;
    // seq_cst, both, against both loads in steal: either the thief sees that the last item is no
    // longer offered, or the owner sees that the thief has come so far.
    bottom_.store(last, seq_cst);
    const auto top = top_.load(seq_cst);
    if (top < last) [[likely]] return slot(last).load(relaxed);  // no thief comes this far
    T* taken = nullptr;
    if (top == last) {
      auto expected = top;
      // The last one: whoever moves top_ has it.
      if (top_.compare_exchange_strong(expected, top + 1, seq_cst, relaxed)) {
        taken = slot(last).load(relaxed);
      }
      top_seen_ = top + 1;
    }
    bottom_.store(last + 1, relaxed);  // empty, and nothing is offered by it
    return taken;
  }

  // Any thread. Null: it is empty.
  T* steal() noexcept {
    for (auto top = top_.load(seq_cst);;) {
      // seq_cst: see pop; also acquire, pairs with the release in push.
      if (top >= bottom_.load(seq_cst)) return nullptr;
      T* const item = slot(top).load(relaxed);
      // acq_rel at least: the owner uses the slot again only after it has seen this.
      if (top_.compare_exchange_strong(top, top + 1, seq_cst, seq_cst)) return item;
    }
  }

  // Any thread: a guess, exact for the owner as long as it is the only one to take.
  bool looks_empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept {
    const auto bottom = bottom_.load(relaxed);
    const auto top = top_.load(relaxed);
    return bottom > top ? static_cast<std::size_t>(bottom - top) : 0;
  }
  std::size_t capacity() const noexcept { return static_cast<std::size_t>(mask_) + 1; }

 private:
  atomic<T*>& slot(std::int64_t at) noexcept {
    return slots_[static_cast<std::size_t>(at & mask_)];
  }

  // Constant after construction.
  const std::int64_t mask_;
  const std::unique_ptr<atomic<T*>[]> slots_;

  // The owner's.
  alignas(64) atomic<std::int64_t> bottom_{0};
  std::int64_t top_seen_ = 0;  // some earlier value of top_

  // The thieves', and the owner's when it takes the last one.
  alignas(64) atomic<std::int64_t> top_{0};
};

}  // namespace sluice::detail
