#pragma once

// A batch of submissions that a thread took out of an intake at once and runs one after another. An
// idle thread may steal submissions that have not begun, so none waits behind a long function while
// a thread is idle.
//
// The owner takes the next without a lock. Everything else happens under the intake's lock: the
// batch is filled, other threads steal from it, and it is refilled only after that. So one atomic
// counter is enough to give every item to one thread: a thief has finished moving its item before
// the owner can get the lock to overwrite it.

#include <array>
#include <cstdint>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/executor/submission.hpp"

namespace sluice::detail {

class lent_batch : public list_hook {
 public:
  static constexpr std::uint32_t most = 32;

  // Owner: returns the next submission to run, which stays in its slot while it runs; null if none
  // is left.
  submission* next() noexcept {
    // relaxed: only counts; the intake's lock orders the items, see above.
    const auto at = shared_ ? next_.fetch_add(1, relaxed) : unshared_next_++;
    return at < end_ ? &items_[at] : nullptr;
  }

  // Owner, under the lock, when none is left.
  void clear() noexcept {
    if (linked()) unlink();
    end_ = 0;
  }
  void add(submission&& f) noexcept { items_[end_++] = std::move(f); }
  // Owner, under the lock, after filling. With more than one item, other threads may steal.
  // `number`: batches are numbered in the order of lending.
  void begin(intrusive_list<lent_batch>& lent, std::uint64_t number) noexcept {
    number_ = number;
    unshared_next_ = 0;
    next_.store(0, relaxed);
    shared_ = end_ > 1;
    if (shared_) lent.push_back(*this);
  }

  // Owner, when none is left: holds this one submission.
  submission* hold(submission&& f) noexcept {
    items_[0] = std::move(f);
    end_ = 0;
    shared_ = false;
    return &items_[0];
  }

  // Other threads, under the lock.
  std::uint64_t number() const noexcept { return number_; }
  std::uint32_t left() const noexcept {
    const auto at = next_.load(relaxed);
    return at < end_ ? end_ - at : 0;
  }
  // Returns false if none is left.
  bool take(submission& into) noexcept {
    if (left() == 0) return false;
    const auto at = next_.fetch_add(1, relaxed);
    if (at >= end_) return false;  // the owner took it first
    into = std::move(items_[at]);
    return true;
  }

 private:
  alignas(64) atomic<std::uint32_t> next_{0};  // if shared: index of the first item not taken
  std::uint32_t unshared_next_ = 0;            // else; used by the owner only
  std::uint32_t end_ = 0;                      // changed by the owner under the lock
  bool shared_ = false;                        // likewise
  std::uint64_t number_ = 0;                   // likewise
  alignas(64) std::array<submission, most> items_;
};

}  // namespace sluice::detail
