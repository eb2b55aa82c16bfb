#pragma once

// Submissions that a thread took out of an intake several at a time, and begins one after another.
// Until it has begun one, any other thread that finds nothing else to do may have it: so none waits
// behind a long one while somebody is idle.
//
// The owner asks for the next without a lock. Everything else happens under the intake's lock: it
// is filled, others take from it, and it is filled again only then. So one atomic counter is
// enough, which hands every item to one thread: whoever takes from it is done moving the item
// before the owner can get the lock to overwrite it.

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

  // The owner: the one to begin next, which stays in its place while it runs. Null: none is left.
  submission* next() noexcept {
    // relaxed: it only counts; see above for what orders the items.
    const auto at = shared_ ? next_.fetch_add(1, relaxed) : alone_next_++;
    return at < end_ ? &items_[at] : nullptr;
  }

  // The owner, under the lock, when none is left.
  void clear() noexcept {
    if (linked()) unlink();
    end_ = 0;
  }
  void add(submission&& f) noexcept { items_[end_++] = std::move(f); }
  // Done filling. With more than one, others may take from it.
  void begin(intrusive_list<lent_batch>& lent, std::uint64_t turn) noexcept {
    turn_ = turn;
    alone_next_ = 0;
    next_.store(0, relaxed);
    shared_ = end_ > 1;
    if (shared_) lent.push_back(*this);
  }

  // The owner, when none is left: this one alone.
  submission* hold(submission&& f) noexcept {
    items_[0] = std::move(f);
    end_ = 0;
    shared_ = false;
    return &items_[0];
  }

  // Others, under the lock. Batches are numbered as they are lent.
  std::uint64_t turn() const noexcept { return turn_; }
  std::uint32_t left() const noexcept {
    const auto at = next_.load(relaxed);
    return at < end_ ? end_ - at : 0;
  }
  bool take(submission& into) noexcept {
    if (left() == 0) return false;
    const auto at = next_.fetch_add(1, relaxed);
    if (at >= end_) return false;  // the owner was faster
    into = std::move(items_[at]);
    return true;
  }

 private:
  alignas(64) atomic<std::uint32_t> next_{0};  // once shared: the first that nobody has
  std::uint32_t alone_next_ = 0;               // until then, the owner's
  std::uint32_t end_ = 0;                      // changed by the owner under the lock
  bool shared_ = false;                        // likewise
  std::uint64_t turn_ = 0;                     // likewise
  alignas(64) std::array<submission, most> items_;
};

}  // namespace sluice::detail
