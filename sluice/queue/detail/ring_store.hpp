#pragma once

// The store of bounded_queue and channel (queue_store in queue_core.hpp): first in, first out, in
// one block of memory that is allocated once. Not thread-safe: the queue core guards it.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/base/check.hpp"
#include "sluice/base/race_checked.hpp"

namespace sluice::detail {

template <class T>
class ring_store {
 public:
  enum class weights : bool { none, kept };

  ring_store(std::size_t capacity, weights w)
      : capacity_(capacity),
        weights_(w == weights::kept ? capacity : 0),
        slots_(capacity > 0 ? std::allocator<T>().allocate(capacity) : nullptr) {}
  ring_store(const ring_store&) = delete;
  ring_store& operator=(const ring_store&) = delete;
  ~ring_store() {
    while (count_ > 0) drop_front();
    if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity_);
  }

  bool empty() const noexcept { return count_ == 0; }
  bool ready() const noexcept { return count_ > 0; }
  bool settle(bool) const noexcept { return false; }

  // The oldest item. Must not be empty.
  const T& front() const noexcept { return slots_[head_]; }

  void put(T& item, std::size_t weight) {
    check(count_ < capacity_, "sluice::ring_store", "free capacity for the item");
    seam::writes_plain(slots_ + tail_);
    std::construct_at(slots_ + tail_, std::move(item));
    if (!weights_.empty()) weights_[tail_] = weight;
    if (++tail_ == capacity_) tail_ = 0;
    ++count_;
  }

  template <class Sink>
  std::size_t take(Sink&& sink) {
    check(count_ > 0, "sluice::ring_store", "an item to take");
    seam::writes_plain(slots_ + head_);
    sink(std::move(slots_[head_]));
    const auto weight = weight_at(head_);
    drop_front();
    return weight;
  }

  template <class Sink>
  std::size_t evict_oldest(Sink&& sink) {
    return take(std::forward<Sink>(sink));
  }

  template <class Sink>
  std::size_t evict_newest(Sink&& sink) {
    check(count_ > 0, "sluice::ring_store", "an item to evict");
    const auto last = (tail_ == 0 ? capacity_ : tail_) - 1;
    seam::writes_plain(slots_ + last);
    sink(std::move(slots_[last]));
    std::destroy_at(slots_ + last);
    tail_ = last;
    --count_;
    return weight_at(last);
  }

 private:
  std::size_t weight_at(std::size_t at) const noexcept {
    return weights_.empty() ? 0 : weights_[at];
  }
  void drop_front() noexcept {
    std::destroy_at(slots_ + head_);
    if (++head_ == capacity_) head_ = 0;
    --count_;
  }

  const std::size_t capacity_;
  std::vector<std::size_t> weights_;  // of the items, if they are weighed
  T* const slots_;
  std::size_t head_ = 0;   // slot of the oldest item
  std::size_t tail_ = 0;   // slot of the next item
  std::size_t count_ = 0;
};

}  // namespace sluice::detail
