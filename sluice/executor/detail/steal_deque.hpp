#pragma once

// The work-stealing deque of one worker: the owner pushes and pops at one end with plain stores,
// thieves take the oldest item from the other end. After Chase and Lev, with a ring of fixed size.
//
// Guarantees: only the owner may call `push`, `pop` and `size`; any thread may call `steal` and
// `looks_empty`. Every item comes out exactly once. The owner gets the youngest, a thief the
// oldest. A push happens-before the pop or steal of its item.
// Limits: a fixed capacity, a power of two; `push` returns false if full and changes nothing.
// Cost: a push is a store and a release store; a pop one exchange; a steal one compare-and-swap,
// repeated while other thieves win. Each end has its own cache line; that of the thieves is
// transferred only for a steal or when the last item is taken.
//
// top_ and bottom_ only grow and never wrap in practice. Items are in [top_, bottom_).

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

  // Owner. Returns false if full.
  bool push(T* item) noexcept {
    const auto bottom = bottom_.load(relaxed);  // written only by the owner
    if (bottom - top_seen_ > mask_) [[unlikely]] {
      // acquire: pairs with the CAS of a thief, which has read the slot before it is reused.
      top_seen_ = top_.load(acquire);
      if (bottom - top_seen_ > mask_) return false;
    }
    slot(bottom).store(item, relaxed);
    // release: pairs with the load of bottom_ in steal, which then sees the slot and the item.
    bottom_.store(bottom + 1, release);
    return true;
  }

  // Owner. Thieves can only free slots.
  bool is_full() const noexcept { return size() == capacity(); }

  // Owner. Returns null if empty.
  T* pop() noexcept {
    const auto last = bottom_.load(relaxed) - 1;
    // seq_cst, both, against both loads in steal: either the thief sees the smaller bottom_, or the
    // owner sees the larger top_.
    bottom_.store(last, seq_cst);
    const auto top = top_.load(seq_cst);
    if (top < last) [[likely]] return slot(last).load(relaxed);  // no thief can take this slot
    T* taken = nullptr;
    if (top == last) {
      auto expected = top;
      // The last item belongs to the thread that increments top_.
      if (top_.compare_exchange_strong(expected, top + 1, seq_cst, relaxed)) {
        taken = slot(last).load(relaxed);
      }
      top_seen_ = top + 1;
    }
    bottom_.store(last + 1, relaxed);  // the deque is empty: this publishes no item
    return taken;
  }

  // Any thread. Returns null if empty.
  T* steal() noexcept {
    for (auto top = top_.load(seq_cst);;) {
      // seq_cst: see pop; also acquire, pairs with the release in push.
      if (top >= bottom_.load(seq_cst)) return nullptr;
      T* const item = slot(top).load(relaxed);
      // At least acq_rel: the owner reuses the slot only after it has seen this.
      if (top_.compare_exchange_strong(top, top + 1, seq_cst, seq_cst)) return item;
    }
  }

  // Any thread. A guess; exact for the owner while no thief takes items.
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

  // Written by the owner.
  alignas(64) atomic<std::int64_t> bottom_{0};
  std::int64_t top_seen_ = 0;  // an earlier value of top_

  // Written by thieves, and by the owner when it takes the last item.
  alignas(64) atomic<std::int64_t> top_{0};
};

}  // namespace sluice::detail
