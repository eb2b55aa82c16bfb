#pragma once

// The state shared by a promise and its future until the value is transferred: one atomic word, the
// result, and, in most states, the function that makes the result from that of the preceding state.
// So a stage of a chain is one allocation.
//
// The two sides do not count references. Each side leaves once, through the word; the side that
// leaves last owns the state and frees it. The values of the word and their transitions:
//
//   empty     0        no result and no consumer action yet. The producer moves it to ready; the
//                      consumer to dropped, locked or a continuation.
//   ready     2        the result is set. The producer has left; the consumer owns the state.
//   dropped   4        the future was destroyed. The consumer has left; the producer owns it.
//   locked    6        for a few instructions, while a thread links or claims a waiter. Other
//                      threads wait for it to change, as for a spin_lock.
//   c         pointer  a continuation is attached: the consumer has left, and c->arrived() must be
//                      called. Final: the producer needs one load to see it, no exchange.
//   n | 2     pointer  a thread or coroutine waits in `get`, through the wait_node n. The consumer
//                      moves it back to empty when a limit ends the wait; the producer, through
//                      locked, to ready.
//
// A completed state does not call its continuation but returns it to a loop (`finish`), so a chain
// of any length needs no stack.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/detail/block_memory.hpp"
#include "sluice/base/detail/per_thread.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/cancel_node.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::detail {

class state_base;

// The consumer of a state's result.
class continuation : public work {
 public:
  // Called on the producer's thread: `from` has its result and is now owned by the continuation.
  // Returns the state whose own result this has set, to be published by the caller, or null.
  virtual state_base* arrived(state_base& from) noexcept = 0;
  // If the continuation passes the result on unchanged: returns the receiving state, as a
  // forwarding_state of the same type. The continuation may then be bypassed.
  virtual void* passes_on_to() noexcept { return nullptr; }

 protected:
  ~continuation() = default;
};

class state_base : public continuation {
 public:
  // Consumer. Returns false if the result is set already; the continuation is then not attached.
  bool attach(continuation& next) noexcept {
    auto expected = empty;
    // release: publishes the continuation to the producer. acquire: this thread sees the result.
    return word_.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(&next), acq_rel,
                                         acquire);
  }
  // acquire: pairs with the release of the producer, so its result is visible.
  bool is_ready() const noexcept { return word_.load(acquire) == ready; }
  // Consumer: gives up the result.
  void drop() noexcept;
  // Consumer: links and unlinks its wait_node, which it owns.
  enlisted link(wait_node& node, waiter& waiting) noexcept;
  void unlink(wait_node& node) noexcept;
  // Returns whether a consumer waits. The state must not have ended.
  bool is_awaited() const noexcept;

  // Producer, after it has set the result. Returns the next state to publish, or null.
  state_base* publish() noexcept {
    // acquire: pairs with the release in attach.
    const auto seen = word_.load(acquire);
    if (is_continuation(seen)) [[likely]]
      return to_continuation(seen)->arrived(*this);
    return publish_slowly(seen);
  }
  // Its address in wait reports.
  const void* identity() const noexcept { return this; }

  // Producer, before the result: returns the attached continuation, or null.
  continuation* attached() const noexcept {
    const auto seen = word_.load(acquire);
    return is_continuation(seen) ? to_continuation(seen) : nullptr;
  }

  // Owner, after the result was taken out and destroyed: frees the memory, or releases the state's
  // reference if the memory contains a node.
  void leave() noexcept {
    if (node_ != nullptr) {
      node_->unref();
    } else {
      free();
    }
  }
  // The same, and releases the consumer's reference to a node.
  void leave(cancel_ref consumer) noexcept {
    if (node_ != nullptr && node_ == consumer.get()) {
      consumer.release()->unref(2);
    } else {
      leave();
    }
  }
  void free() noexcept { give_block(this, bytes_); }

  std::uint32_t place = 0;  // the index of a fan-in's input; written by the consumer

 protected:
  // `bytes` is the size passed to take_block; `node` the node inside this state, or null.
  state_base(std::size_t bytes, cancel_node* node) noexcept
      : node_(node), bytes_(static_cast<std::uint32_t>(bytes)) {}
  ~state_base() = default;

  // Destroys the unused result and frees the state.
  virtual void discard() noexcept = 0;

 private:
  static constexpr std::uintptr_t empty = 0;
  static constexpr std::uintptr_t ready = 2;
  static constexpr std::uintptr_t dropped = 4;
  static constexpr std::uintptr_t locked = 6;
  static constexpr std::uintptr_t awaited = 2;  // the mark on a wait_node

  static bool is_continuation(std::uintptr_t seen) noexcept {
    return seen > locked && (seen & awaited) == 0;
  }
  static continuation* to_continuation(std::uintptr_t seen) noexcept {
    return reinterpret_cast<continuation*>(seen);
  }
  state_base* publish_slowly(std::uintptr_t seen) noexcept;
  std::uintptr_t when_unlocked() const noexcept;

  atomic<std::uintptr_t> word_{empty};
  cancel_node* const node_;
  const std::uint32_t bytes_;
};

// The number of nested calls of `finish` on this thread.
extern constinit thread_local std::uint32_t finish_depth;
inline constexpr std::uint32_t finish_depth_max = 64;

// Runs `step`, publishes the state that it completes (or null), runs its continuation if that runs
// here, publishes what that completes, and so on.
template <class Step>
SLUICE_PER_THREAD void finish_with(Step&& step) noexcept {
  ++finish_depth;
  state_base* done = step();
  while (done != nullptr) done = done->publish();
  --finish_depth;
}
inline void finish(state_base& done) noexcept {
  finish_with([&] { return &done; });
}
// Consumer: `next` is to be called with the result of `from`, now if it is there.
inline void attach_or_run(state_base& from, continuation& next) noexcept {
  if (!from.attach(next)) finish_with([&] { return next.arrived(from); });
}

// Returns whether a user's function may run on this thread now: it is the function's executor or
// the function has none, and functions that complete futures are not nested too deep.
SLUICE_PER_THREAD inline bool may_run_here(const executor* on) noexcept {
  if (on != nullptr) return executor::current() == on && finish_depth <= finish_depth_max;
  return finish_depth <= finish_depth_max;
}
inline void post_or_run_here(work& item, executor* on) noexcept {
  if (on != nullptr) {
    on->post(item);
  } else {
    run_here(item);
  }
}

template <class T>
class future_state : public state_base {
 public:
  settled<T> result{typename settled<T>::unset_t{}};

  // Destroys the result and frees the state.
  void consumed() noexcept {
    result.reset();
    leave();
  }

 protected:
  using state_base::state_base;
  ~future_state() = default;
  void discard() noexcept override { consumed(); }
};

// Creates a state. It has no destructor call: each part is destroyed when it is no longer needed,
// and then the memory is freed.
template <class State, class... Args>
State* make_state(Args&&... args) {
  static_assert(alignof(State) <= block_unit, "no over-aligned values in futures");
  void* const at = take_block(sizeof(State));
  try {
    return ::new (at) State(std::forward<Args>(args)...);
  } catch (...) {
    give_block(at, sizeof(State));
    throw;
  }
}

// The state of a promise or an async function: it has a producer with a stop_token. Created with
// two references to its node: the state's and the consumer's.
template <class T>
class source_state : public future_state<T>, public cancel_node {
 public:
  explicit source_state(std::size_t bytes = sizeof(source_state)) noexcept
      : future_state<T>(bytes, this), cancel_node(2) {}
  state_base* arrived(state_base&) noexcept override { return nullptr; }
  void run() noexcept override {}

 protected:
  ~source_state() = default;
  void destroy() noexcept override { this->free(); }
};

}  // namespace sluice::detail
