#pragma once

// A message on its way: what a mailbox holds. It knows the handler it is for, and how to go when
// nobody handles it.

#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/base/block_memory.hpp"

namespace sluice::detail {

class cell;
class envelope;

struct envelope_ops {
  // In the actor's turn. Throws what the handler throws; the envelope is used up either way.
  void (*handle)(cell& to, envelope& e);
  // Nobody will; the envelope is used up. Who asked hears why.
  void (*drop)(envelope& e, const cell& to, loss why) noexcept;
  std::string_view type;
  lane in_lane;
  // The same for a reason of its own: who asked hears that.
  void (*refuse)(envelope& e, const std::exception_ptr& why) noexcept;
};

class envelope {
 public:
  explicit envelope(const envelope_ops& how) noexcept : ops(&how) {}
  envelope(const envelope&) = delete;
  envelope& operator=(const envelope&) = delete;

  envelope* next = nullptr;
  envelope* ahead = nullptr;  // see push_back_linked
  const envelope_ops* const ops;
  std::uint64_t note = 0;   // the observer's
  bool is_counted = true;   // against the mailbox's bound
  bool is_request = false;  // it is a request_letter
  std::uint8_t behind = 0;  // see push_back_linked
  bool is_tried = false;    // its sender has others to try: a refusal is not a loss
  // The actor that sent it, where somebody is told of dead letters. 0: not an actor, or not known,
  // as one whose number does not fit.
  std::uint32_t from = 0;

 protected:
  ~envelope() = default;
};

// First in, first out; one pointer each way.
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
  // The same for a list that is only ever taken as a whole: each then also knows one that comes
  // `stride` later, so that a receiver on another core can have that on its way while it handles
  // this one. Along `next` alone it would wait for each of them in turn.
  void push_back_linked(envelope& e) noexcept {
    e.next = nullptr;
    if (first_ == nullptr) {
      e.ahead = nullptr;
      e.behind = 0;
      first_ = last_ = &e;
      return;
    }
    // Until there is one ahead, `ahead` is the one that is `behind` places behind.
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
  // The same of what was taken as a whole.
  envelope* pop_linked() noexcept {
    envelope* const e = first_;
    if (e == nullptr) return nullptr;
    first_ = e->next;
    __builtin_prefetch(e->ahead);  // null, or gone: no matter
    return e;
  }
  // All of another's, before its own.
  void prepend(envelope_list& others) noexcept {
    if (others.first_ == nullptr) return;
    others.last_->next = first_;
    if (first_ == nullptr) last_ = others.last_;
    first_ = std::exchange(others.first_, nullptr);
  }
  // Takes out the newest that counts against the bound: walks the list. For small mailboxes that
  // keep the latest. Null: there is none.
  envelope* pop_last_counted() noexcept {
    envelope* before = nullptr;  // the one before the newest that counts, or null if that is first
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
  envelope* last_ = nullptr;  // of a list that is not empty
};

template <class E, class... Args>
E* make_envelope(Args&&... args) {
  static_assert(alignof(E) <= block_unit, "no over-aligned messages");
  void* const at = take_block(sizeof(E));
  try {
    return ::new (at) E(std::forward<Args>(args)...);
  } catch (...) {
    give_block(at, sizeof(E));
    throw;
  }
}

template <class E>
void free_envelope(E& e) noexcept {
  e.~E();
  give_block(&e, sizeof(E));
}

}  // namespace sluice::detail
