#pragma once

// The upstream links of a chain of futures: from the future at its end to the producer of the
// value, so that a cancel requests the producer's stop_token, however long the chain is.
//
// Only a state that has or is a producer has a node: a promise, an async function, an and_then
// (whose source changes when its function has run), a fan-in. A plain `then` has none: its future
// uses the node of the future before it. Nodes count their references; a node is part of the state
// of its future, and the last reference frees the memory of the state.
//
// A future waits for the nodes upstream of its node. So they also show whether an and_then would
// wait for itself, and, for wait reports, which party will set the result.

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

class cancel_node;

// One reference.
class cancel_ref {
 public:
  cancel_ref() noexcept = default;
  // Takes over a counted reference.
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

  // Requests the stop_tokens of everything upstream. A second call does nothing.
  void cancel() noexcept;
  // acquire: pairs with the release in begin_cancel: effects before the cancel are visible.
  bool is_cancelled() const noexcept { return cancelled_.load(acquire); }
  // Returns the producer's token. The first call creates it.
  std::stop_token token();

  // Sets the upstream node (null: none). Cancels it if this node is cancelled already.
  void wait_for(cancel_ref up) noexcept;
  // Returns whether `sought` is this node or upstream of it.
  bool reaches(const cancel_node& sought) noexcept;

  // Sets the party that will set the result, if known. Only while wait reports are on.
  void made_by(wait_report::party maker) noexcept {
    if (wait_report::is_on()) [[unlikely]]
      maker_.store(maker.word(), relaxed);  // only a number: orders nothing
  }
  // The same, if it was `before` until now.
  void made_by_next(wait_report::party before, wait_report::party maker) noexcept {
    auto expected = before.word();
    (void)maker_.compare_exchange_strong(expected, maker.word(), relaxed, relaxed);
  }
  // Called when the producer has finished: the makers are upstream from now on.
  void made() noexcept {
    if (maker_.load(relaxed) != 0) [[unlikely]]
      maker_.store(0, relaxed);
  }
  // For the report of a wait for the result `of`: writes up to `capacity` parties that will set it,
  // including unknown parties and sources that a timer or token can end. Takes only the upstream
  // guards that are free. Returns the number found, at most capacity + 1.
  std::size_t makers(const wait_report::subject& of, wait_report::subject* out,
                     std::size_t capacity) noexcept;

  void add_reference() noexcept { references_.fetch_add(1, relaxed); }
  // Releases `count` references.
  void unref(std::uint32_t count = 1) noexcept {
    // acquire and acq_rel: the destroying thread sees the effects of all others.
    if (references_.load(acquire) == count || references_.fetch_sub(count, acq_rel) == count) {
      end();
    }
  }

 protected:
  ~cancel_node() = default;

  // Frees the memory of this node.
  virtual void destroy() noexcept = 0;

  // Visits the upstream nodes of a fan-in, which has several; they never change.
  class visitor {
   public:
    virtual void visit(cancel_node& source) = 0;

   protected:
    ~visitor() = default;
  };
  virtual void each_source(visitor&) {}
  // Returns whether a timer or a stop_token can end it without a maker.
  virtual bool ends_by_itself() const noexcept { return false; }
  // Returns whether a cancel also cancels the sources.
  virtual bool cancels_sources() const noexcept { return true; }

 private:
  // A million nodes may be upstream, in any shape: walks use a list instead of recursion.
  class cancel_list;
  class source_list;
  class maker_list;

  bool begin_cancel() noexcept;  // returns true on the first call
  void end() noexcept;

  atomic<std::uint32_t> references_;
  spin_lock guard_;
  atomic<bool> cancelled_{false};            // becomes true under guard_
  std::uint32_t seen_by_walk_ = 0;           // protected by guard_
  std::stop_source stop_{std::nostopstate};  // protected by guard_
  cancel_ref up_;                            // protected by guard_
  atomic<std::uint64_t> maker_{0};           // a party's word; 0: unknown
  cancel_node* next_ = nullptr;  // in a cancel_list, once; then in the list of ending nodes
};

inline cancel_ref cancel_ref::copy() const noexcept {
  if (node_ != nullptr) node_->add_reference();
  return cancel_ref(node_);
}
inline void cancel_ref::reset() noexcept {
  if (node_ != nullptr) std::exchange(node_, nullptr)->unref();
}

}  // namespace sluice::detail
