#pragma once

// The way back of a chain of futures: from the future at its end to whoever produces the value, so
// that a cancel reaches the producer's stop_token, however long the chain is by then.
//
// Only what has, or is, a producer has a node: a promise, an async function, an and_then (whose
// source changes when its function has run), a fan-in. A plain `then` has none: it hands the node
// of what it continues on to its own future. Nodes count their references; a node is part of its
// future's state, and the state's memory goes with the last of them.
//
// The nodes upstream of a node are what its future waits for. So they also tell whether an
// and_then is about to wait for itself, and to whoever watches, who is to make its result.

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::detail {

class cancel_node;

// One reference.
class cancel_ref {
 public:
  cancel_ref() noexcept = default;
  // Takes over a reference that is counted already.
  static cancel_ref adopt(cancel_node* counted) noexcept { return cancel_ref(counted); }
  cancel_ref(cancel_ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  cancel_ref& operator=(cancel_ref&& other) noexcept {
    if (this != &other) {
      reset();
      node_ = std::exchange(other.node_, nullptr);
    }
    return *this;
  }
  ~cancel_ref() { reset(); }

  inline cancel_ref copy() const noexcept;
  inline void reset() noexcept;
  cancel_node* release() noexcept { return std::exchange(node_, nullptr); }
  cancel_node* get() const noexcept { return node_; }
  cancel_node* operator->() const noexcept { return node_; }
  explicit operator bool() const noexcept { return node_ != nullptr; }

 private:
  explicit cancel_ref(cancel_node* counted) noexcept : node_(counted) {}
  cancel_node* node_ = nullptr;
};

class cancel_node {
 public:
  explicit cancel_node(std::uint32_t references) noexcept : references_(references) {}
  cancel_node(const cancel_node&) = delete;
  cancel_node& operator=(const cancel_node&) = delete;

  // Asks everything upstream to stop. Again: nothing more happens.
  void cancel() noexcept;
  // acquire: pairs with the release in begin_cancel; what the canceller did before is seen.
  bool is_cancelled() const noexcept { return cancelled_.load(acquire); }
  // The producer's token. Made when it is first asked for.
  std::stop_token token();

  // From now on it waits for `up` (null: for nothing). Cancels it if this is cancelled already.
  void wait_for(cancel_ref up) noexcept;
  // Whether `sought` is this node or upstream of it.
  bool reaches(const cancel_node& sought) noexcept;

  // Who is to make the result, as far as it is known. Only while somebody watches.
  void made_by(watch::party who) noexcept {
    if (watch::is_on()) [[unlikely]]
      maker_.store(who.word(), relaxed);  // a number, nothing hangs on it
  }
  // The same, if it was `before` until now.
  void made_by_next(watch::party before, watch::party who) noexcept {
    auto expected = before.word();
    (void)maker_.compare_exchange_strong(expected, who.word(), relaxed, relaxed);
  }
  // The producer has done its part: who is to make it is upstream from now on.
  void made() noexcept {
    if (maker_.load(relaxed) != 0) [[unlikely]]
      maker_.store(0, relaxed);
  }
  // For whoever watches a wait for the result, which is `of`: up to `room` of those that are to
  // make it. One that is not known is among them, and so is one for each that ends in time. It
  // takes the guards upstream that are free. Returns how many, up to one more than there is room.
  std::size_t makers(const watch::subject& of, watch::subject* out, std::size_t room) noexcept;

  void add_reference() noexcept { references_.fetch_add(1, relaxed); }
  // Gives back so many references.
  void unref(std::uint32_t count = 1) noexcept {
    // acquire and acq_rel: the one who destroys it has seen what all others did to it.
    if (references_.load(acquire) == count || references_.fetch_sub(count, acq_rel) == count) {
      end();
    }
  }

 protected:
  ~cancel_node() = default;

  // Frees the memory that this node is in.
  virtual void destroy() noexcept = 0;

  // Of a fan-in, which has several upstream, always the same ones: visits each.
  class visitor {
   public:
    virtual void visit(cancel_node& source) = 0;

   protected:
    ~visitor() = default;
  };
  virtual void each_source(visitor&) {}
  // Whether a timer or a stop_token may end it, if nobody else does.
  virtual bool ends_in_time() const noexcept { return false; }
  // Whether a cancel goes on to those sources.
  virtual bool cancels_sources() const noexcept { return true; }

 private:
  // Nodes upstream may be a million, in any shape: whoever walks them has a list, not a stack.
  class cancel_list;
  class source_list;
  class maker_list;

  bool begin_cancel() noexcept;  // true: nobody has before
  void end() noexcept;

  atomic<std::uint32_t> references_;
  spin_lock guard_;
  atomic<bool> cancelled_{false};            // becomes true under guard_
  std::uint32_t seen_by_walk_ = 0;           // protected by guard_
  std::stop_source stop_{std::nostopstate};  // protected by guard_
  cancel_ref up_;                            // protected by guard_
  atomic<std::uint64_t> maker_{0};           // a party's word; 0: it is not known
  cancel_node* next_ = nullptr;  // in a list of those being cancelled, once; then of those that end
};

inline cancel_ref cancel_ref::copy() const noexcept {
  if (node_ != nullptr) node_->add_reference();
  return cancel_ref(node_);
}
inline void cancel_ref::reset() noexcept {
  if (node_ != nullptr) std::exchange(node_, nullptr)->unref();
}

}  // namespace sluice::detail
