#pragma once

// The parts of a store that orders its items: items at fixed places in memory that is allocated
// once, and heaps of their slot numbers.
//
// `slot_pool` keeps the items and their order of arrival. `slot_heap` orders slots by a given
// comparison, and finds the place of any slot, so that any item can be removed.
// Not thread-safe: the queue core guards them. Cost: constant time in the pool, O(log n) in a heap;
// no allocation after construction; nothing throws but the move of an item.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/base/check.hpp"

namespace sluice::detail {

using slot_number = std::uint32_t;
inline constexpr slot_number no_slot = std::numeric_limits<slot_number>::max();

template <class T, class Key>
class slot_pool {
 public:
  explicit slot_pool(std::size_t capacity) {
    check(capacity < no_slot, "sluice::slot_pool", "a capacity below 2^32 - 1");
    entries_ = std::make_unique<entry[]>(capacity);
    for (auto n = static_cast<slot_number>(capacity); n > 0; --n) {
      entries_[n - 1].newer = free_;
      free_ = n - 1;
    }
  }
  slot_pool(const slot_pool&) = delete;
  slot_pool& operator=(const slot_pool&) = delete;
  ~slot_pool() {
    while (oldest_ != no_slot) remove(oldest_);
  }

  bool empty() const noexcept { return oldest_ == no_slot; }
  slot_number oldest() const noexcept { return oldest_; }
  slot_number newest() const noexcept { return newest_; }

  T& item(slot_number n) noexcept { return entries_[n].item; }
  const Key& key(slot_number n) const noexcept { return entries_[n].key; }
  std::size_t weight(slot_number n) const noexcept { return entries_[n].weight; }

  // If the move throws, nothing has changed.
  slot_number add(T& from, const Key& key, std::size_t weight) {
    check(free_ != no_slot, "sluice::slot_pool", "a free slot for the item");
    const auto n = free_;
    entry& e = entries_[n];
    std::construct_at(&e.item, std::move(from));
    free_ = e.newer;
    e.key = key;
    e.weight = weight;
    e.older = newest_;
    e.newer = no_slot;
    (newest_ == no_slot ? oldest_ : entries_[newest_].newer) = n;
    newest_ = n;
    return n;
  }

  void remove(slot_number n) noexcept {
    entry& e = entries_[n];
    std::destroy_at(&e.item);
    (e.older == no_slot ? oldest_ : entries_[e.older].newer) = e.newer;
    (e.newer == no_slot ? newest_ : entries_[e.newer].older) = e.older;
    e.newer = free_;
    free_ = n;
  }

 private:
  struct entry {
    entry() noexcept {}
    ~entry() {}
    union {
      T item;  // alive between add and remove
    };
    Key key{};
    std::size_t weight = 0;
    slot_number older = no_slot;
    slot_number newer = no_slot;  // of a free slot: the next free slot
  };

  std::unique_ptr<entry[]> entries_;
  slot_number oldest_ = no_slot;
  slot_number newest_ = no_slot;
  slot_number free_ = no_slot;
};

// `Before(a, b)` returns whether slot a is taken before slot b.
template <class Before>
class slot_heap {
 public:
  slot_heap(std::size_t capacity, Before before)
      : before_(std::move(before)), place_(capacity, no_slot) {
    heap_.reserve(capacity);
  }

  bool empty() const noexcept { return heap_.empty(); }
  slot_number top() const noexcept { return heap_.front(); }

  void add(slot_number n) noexcept {
    heap_.push_back(n);  // within the reserved capacity
    rise(heap_.size() - 1);
  }

  void remove(slot_number n) noexcept {
    const std::size_t at = place_[n];
    check(at < heap_.size() && heap_[at] == n, "sluice::slot_heap", "to hold the slot");
    const auto last = heap_.back();
    heap_.pop_back();
    place_[n] = no_slot;
    if (last == n) return;
    put(last, at);
    rise(at);
    sink(place_[last]);
  }

 private:
  void put(slot_number n, std::size_t at) noexcept {
    heap_[at] = n;
    place_[n] = static_cast<slot_number>(at);
  }
  void rise(std::size_t at) noexcept {
    const auto n = heap_[at];
    while (at > 0) {
      const auto parent = (at - 1) / 2;
      if (!before_(n, heap_[parent])) break;
      put(heap_[parent], at);
      at = parent;
    }
    put(n, at);
  }
  void sink(std::size_t at) noexcept {
    const auto n = heap_[at];
    for (;;) {
      auto child = at * 2 + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before_(heap_[child + 1], heap_[child])) ++child;
      if (!before_(heap_[child], n)) break;
      put(heap_[child], at);
      at = child;
    }
    put(n, at);
  }

  Before before_;
  std::vector<slot_number> heap_;
  std::vector<slot_number> place_;  // of each slot in the heap
};

}  // namespace sluice::detail
