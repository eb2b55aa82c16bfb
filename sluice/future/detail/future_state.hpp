#pragma once

// What a promise and its future share until the value has gone from one to the other: one atomic
// word, the result, and, in most states, the function that makes the result from that of the state
// before. So a stage of a chain is one allocation.
//
// The two sides never count references. Each side leaves once, through the word, and whoever
// leaves last owns the state and frees it. The values of the word, and who moves it on:
//
//   empty     0        no result, nobody asks yet. The producer moves it to ready; the consumer to
//                      dropped, locked or a continuation.
//   ready     2        the result is there. The producer has left; the consumer owns the state.
//   dropped   4        the future was destroyed. The consumer has left; the producer owns it.
//   locked    6        for a few instructions: somebody links or claims a waiter. Whoever sees it
//                      waits for it to pass, as for a spin_lock.
//   c         pointer  a continuation is attached: the consumer has left and wants c->arrived().
//                      Never changes again: the producer needs one load to see it, no exchange.
//   n | 2     pointer  a thread or coroutine waits in `get`, through the wait_node n. The consumer
//                      moves it back to empty when a limit ends the wait; the producer, through
//                      locked, to ready.
//
// A completed state does not call its continuation, it returns it to a loop (`finish`), so a chain
// of any length needs no stack.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/block_memory.hpp"
#include "sluice/base/per_thread.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/cancel_node.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/sync/waiter.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::detail {

class state_base;

// What is to happen with the result of a state.
class continuation : public work {
 public:
  // The producer's thread: `from` has its result and belongs to the continuation now. Returns the
  // state that has got its own result by this, to be published by the caller, or null.
  virtual state_base* arrived(state_base& from) noexcept = 0;
  // For a continuation that only passes the result on, unchanged: the state that it passes it to,
  // as a forwarding_state of the same type. It may then be bypassed.
  virtual void* passes_on_to() noexcept { return nullptr; }

 protected:
  ~continuation() = default;
};

class state_base : public continuation {
 public:
  // Consumer. False: the result is there already, and the continuation was not attached.
  bool attach(continuation& next) noexcept {
    auto expected = empty;
    // release: the producer sees the continuation whole; acquire: we see the result.
    return word_.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(&next), acq_rel,
                                         acquire);
  }
  // acquire: pairs with the release of the producer, whose result is then seen.
  bool is_ready() const noexcept { return word_.load(acquire) == ready; }
  // Consumer: no longer wants the result.
  void drop() noexcept;
  // Consumer: joins as the one that waits; takes it back. The node is the caller's.
  enlisted link(wait_node& node, waiter& who) noexcept;
  void unlink(wait_node& node) noexcept;
  // Whether somebody waits. The state must not have ended.
  bool is_awaited() const noexcept;

  // Producer, when the result is in place. Returns the next state to publish, or null.
  state_base* publish() noexcept {
    // acquire: pairs with the release in attach.
    const auto seen = word_.load(acquire);
    if (is_continuation(seen)) [[likely]]
      return to_continuation(seen)->arrived(*this);
    return publish_slowly(seen);
  }
  // What whoever watches knows it by.
  const void* identity() const noexcept { return this; }

  // Producer, before the result: the continuation, if it is attached already.
  continuation* attached() const noexcept {
    const auto seen = word_.load(acquire);
    return is_continuation(seen) ? to_continuation(seen) : nullptr;
  }

  // Owner, when the result has been taken out and destroyed: frees the memory, or gives back the
  // state's reference if the memory is shared with a node.
  void leave() noexcept {
    if (node_ != nullptr) {
      node_->unref();
    } else {
      free();
    }
  }
  // The same, together with the consumer's reference to the node at the end of its way back.
  void leave(cancel_ref consumer) noexcept {
    if (node_ != nullptr && node_ == consumer.get()) {
      consumer.release()->unref(2);
    } else {
      leave();
    }
  }
  void free() noexcept { give_block(this, bytes_); }

  std::uint32_t place = 0;  // of a fan-in's input among the others: the consumer's to write

 protected:
  // `bytes` is what take_block was asked for. `node`: the one that is part of this state, if any.
  state_base(std::size_t bytes, cancel_node* node) noexcept
      : node_(node), bytes_(static_cast<std::uint32_t>(bytes)) {}
  ~state_base() = default;

  // Destroys the result and frees the state: nobody wants it.
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

// How many calls of `finish` are under way on this thread, one inside the other.
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

// Where a user's function may run right now: on its executor, else anywhere; but not when user
// functions that complete futures are nested so deep already that the stack is in danger.
SLUICE_PER_THREAD inline bool may_run_here(const executor* on) noexcept {
  if (on != nullptr) return executor::current() == on && finish_depth <= finish_depth_max;
  return finish_depth <= finish_depth_max;
}
inline void run_elsewhere(work& item, executor* on) noexcept {
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

  // Takes the result out for good, and frees the state.
  void consumed() noexcept {
    result.reset();
    leave();
  }

 protected:
  using state_base::state_base;
  ~future_state() = default;
  void discard() noexcept override { consumed(); }
};

// Makes a state. It is never destroyed as a whole: each part ends when it is done with, and the
// rest is memory.
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

// The state of a promise, of an async function: it has a producer that can be told to stop. Made
// with two references to its node: the state's own, and that of the consumer's way back.
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
