#pragma once

// The baseline: a bounded blocking queue of the standard library alone.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sluice::bench {

// A ring under one mutex, with a condition variable for each direction. Written for speed: notifies
// exactly one waiter, after releasing the lock, so that the woken thread does not block on it.
class std_ring {
 public:
  explicit std_ring(std::size_t capacity) : items_(capacity) {}

  void push(std::uint64_t item) {
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [this] { return size_ < items_.size(); });
      put(item);
    }
    not_empty_.notify_one();
  }

  std::uint64_t pop() {
    std::uint64_t item;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [this] { return size_ != 0; });
      item = take();
    }
    not_full_.notify_one();
    return item;
  }

  bool try_push(std::uint64_t item) {
    {
      const std::lock_guard lock(mutex_);
      if (size_ == items_.size()) {
        return false;
      }
      put(item);
    }
    not_empty_.notify_one();
    return true;
  }

  bool try_pop(std::uint64_t& item) {
    {
      const std::lock_guard lock(mutex_);
      if (size_ == 0) {
        return false;
      }
      item = take();
    }
    not_full_.notify_one();
    return true;
  }

 private:
  // Indices wrap by comparison: a division would be slower, a power of two a restriction.
  void put(std::uint64_t item) {
    items_[tail_] = item;
    tail_ = tail_ + 1 == items_.size() ? 0 : tail_ + 1;
    ++size_;
  }

  std::uint64_t take() {
    const std::uint64_t item = items_[head_];
    head_ = head_ + 1 == items_.size() ? 0 : head_ + 1;
    --size_;
    return item;
  }

  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::vector<std::uint64_t> items_;  // the rest is protected by mutex_
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t size_ = 0;
};

}  // namespace sluice::bench
