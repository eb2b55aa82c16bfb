#pragma once

// A message in a mailbox, with the operations to handle it or to drop it unhandled.

#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/base/detail/block_memory.hpp"

namespace sluice::detail {

class cell;
class envelope;

struct envelope_ops {
  // In the actor's turn. Frees the envelope, and throws what the handler throws.
  void (*handle)(cell& receiver, envelope& e);
  // Frees an envelope that will not be handled; an asker gets `why` as an error.
  void (*drop)(envelope& e, const cell& receiver, loss why) noexcept;
  std::string_view type;
  lane in_lane;
  // Like drop, but an asker gets this error.
  void (*refuse)(envelope& e, const std::exception_ptr& why) noexcept;
};

class envelope {
 public:
  explicit envelope(const envelope_ops& operations) noexcept : ops(&operations) {}
  envelope(const envelope&) = delete;
  envelope& operator=(const envelope&) = delete;

  envelope* next = nullptr;
  envelope* ahead = nullptr;  // see push_back_linked
  const envelope_ops* const ops;
  std::uint64_t note = 0;   // of the observer
  bool is_counted = true;   // against the mailbox's bound
  bool is_request = false;  // this is a request_letter
  std::uint8_t behind = 0;  // see push_back_linked
  bool is_tried = false;    // its sender tries other actors: a rejection is not a loss
  // The sending actor, if dead letters are reported. 0: not an actor, unknown, or an id of more
  // than 32 bits.
  std::uint32_t from = 0;

 protected:
  ~envelope() = default;
};

// A FIFO list, linked in one direction.
class envelope_list {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  envelope* front() const noexcept { return first_; }
  envelope* back() const noexcept { return first_ == nullptr ? nullptr : last_; }
  void push_back(envelope& e) noexcept {
    e.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &e;
    last_ = &e;
  }
  // push_back for a list that is only taken as a whole: each envelope also points `stride` ahead,
  // so that a receiver on another core prefetches that one while it handles this one. Following
  // `next` alone would be one cache miss after another.
  void push_back_linked(envelope& e) noexcept {
    e.next = nullptr;
    if (first_ == nullptr) {
      e.ahead = nullptr;
      e.behind = 0;
      first_ = last_ = &e;
      return;
    }
    // While an envelope has none ahead, its `ahead` points `behind` places back.
    last_->next = &e;
    if (last_->behind + 1 < stride) {
      e.behind = static_cast<std::uint8_t>(last_->behind + 1);
      e.ahead = first_;
    } else {
      envelope* const earlier = last_->ahead;
      e.behind = last_->behind;
      e.ahead = earlier->next;
      earlier->ahead = &e;
    }
    last_ = &e;
  }
  envelope* pop_front() noexcept {
    envelope* const e = first_;
    if (e != nullptr) first_ = e->next;
    return e;
  }
  // pop_front for a list that was taken as a whole.
  envelope* pop_linked() noexcept {
    envelope* const e = first_;
    if (e == nullptr) return nullptr;
    first_ = e->next;
    __builtin_prefetch(e->ahead);  // null or freed: harmless
    return e;
  }
  // Moves all of `others` to the front.
  void prepend(envelope_list& others) noexcept {
    if (others.first_ == nullptr) return;
    others.last_->next = first_;
    if (first_ == nullptr) last_ = others.last_;
    first_ = std::exchange(others.first_, nullptr);
  }
  // Removes and returns the newest bounded envelope, or null. Walks the list: for the small
  // mailboxes that keep the latest.
  envelope* pop_last_counted() noexcept {
    envelope* before = nullptr;  // the predecessor of `found`, or null if it is first
    envelope* found = nullptr;
    envelope* last = nullptr;
    for (envelope* at = first_; at != nullptr; last = at, at = at->next) {
      if (!at->is_counted) continue;
      before = last;
      found = at;
    }
    if (found == nullptr) return nullptr;
    (before == nullptr ? first_ : before->next) = found->next;
    if (found == last_) last_ = before;
    return found;
  }

 private:
  static constexpr int stride = 4;

  envelope* first_ = nullptr;
  envelope* last_ = nullptr;  // valid if the list is not empty
};

template <class E, class... Args>
E* make_envelope(Args&&... args) {
  static_assert(alignof(E) <= block_unit, "no over-aligned messages");
  void* const memory = take_block(sizeof(E));
  try {
    return ::new (memory) E(std::forward<Args>(args)...);
  } catch (...) {
    give_block(memory, sizeof(E));
    throw;
  }
}

template <class E>
void free_envelope(E& e) noexcept {
  e.~E();
  give_block(&e, sizeof(E));
}

}  // namespace sluice::detail
