#pragma once

// Gathers items into batches of at most `size`; a smaller batch is due when its first item has
// waited for `wait`. For operations that are cheaper in groups: rows of one INSERT, lines of one
// write, messages of one packet.
//
// Batches are taken (`take`, on a thread or in a coroutine, by any number of consumers), or passed
// to a handler that runs on an executor, one batch at a time. Prefer `pop_some` of a queue where
// a batch may be the items that are in the queue at the moment.
//
// Guarantees: any thread may call anything. Items leave in the order of arrival, each once. A
// batch is due when `size` items are inside, when `wait` has passed since its first item arrived
// (on `clock`, so a test can move time), or when it was flushed or closed; it is never empty and
// never larger than `size`. One wake a batch, not one an item. At most `capacity` items are inside;
// then `overflow` applies (block, reject, drop_newest, drop_oldest, latest).
// Shutdown: `close` refuses further items and makes the items inside due; then `take` returns
// closed. `drain` also waits until all are taken, and handled if there is a handler. `stop` returns
// the items that were not taken. Neither may be called from the handler, which would wait for
// itself: a broken contract. Destruction: with a handler, drains, so its executor must outlive it,
// and still be run; without, items inside are destroyed, and waiters inside are a broken contract.
// An exception that leaves the handler or `on_drop` goes to `on_error` (else standard error) and
// changes nothing else (docs/concepts/errors.md).
// Cancel safety: a wait that timed out or was stopped pushed nothing and took nothing.
// Cost: memory for `capacity` items at construction; a vector for each batch; one timer, armed
// only during a wait for a batch that is not full.
// Limits: size at least 1, capacity at least size, wait not negative; T's move must not throw.
//
//     batcher<row> rows({.size = 500, .wait = 20ms}, pool, [&](std::vector<row> batch) {
//       db.insert(batch);
//     });
//     (void)rows.push(std::move(r));

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/queue/detail/ring_store.hpp"
#include "sluice/sync/detail/wait_calls.hpp"
#include "sluice/sync/detail/wake_timer.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T>
struct batcher_options {
  std::size_t size = 100;                                         // items of a batch, at most
  std::chrono::nanoseconds wait = std::chrono::milliseconds(10);  // longest wait of the first item
  std::size_t capacity = 0;                                       // items inside; 0: ten batches
  sluice::overflow overflow = sluice::overflow::block;
  std::string name = "batcher";
  sluice::clock* clock = nullptr;                      // null: the real one; outlives the batcher
  std::function<void(T&&)> on_drop{};                  // called with each dropped item
  std::function<void(std::exception_ptr)> on_error{};  // called with exceptions of the handler
};

struct batcher_stats {
  std::size_t queued = 0;
  std::uint64_t pushed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t rejected = 0;  // pushes that returned `full`, or timed out
  std::uint64_t batches = 0;   // taken or passed to the handler
  std::uint64_t full = 0;      // batches of `size` items
  std::uint64_t failed = 0;    // the handler threw
};

template <class T>
class batcher final : private work {
  static_assert(std::is_nothrow_move_constructible_v<T>, "items are moved under the lock");

 public:
  using options = batcher_options<T>;
  using batch = std::vector<T>;
  class push_op;
  class take_op;

  explicit batcher(options o) : batcher(std::move(o), nullptr, {}) {}
  batcher(options o, executor& on, std::function<void(batch)> handler)
      : batcher(std::move(o), &on, std::move(handler)) {}
  batcher(const batcher&) = delete;
  batcher& operator=(const batcher&) = delete;
  ~batcher();

  // Pushes the item; under `block`, waits for capacity within the limits. Returns ok, closed, full
  // (reject), dropped, timed_out or stopped. Moves from `item` only on ok and dropped.
  status push(T&& item, const wait_limits& limits = {}) {
    return block_on(push_op(*this, item), limits);
  }
  status push(const T& item, const wait_limits& limits = {}) { return push(T(item), limits); }
  status try_push(T&& item) {
    push_op op(*this, item);
    return op.attempt() ? op.result(status::ok) : op.give_up();
  }
  status try_push(const T& item) { return try_push(T(item)); }
  // co_await returns a status. `item` must not be moved until then.
  auto async_push(T& item, wait_limits limits = {}) {
    return awaitable<push_op>(std::move(limits), *this, item);
  }

  // Blocks until a batch is due, within the limits. Returns `closed` once it is closed and drained.
  // With a handler, a broken contract.
  outcome<batch> take(const wait_limits& limits = {}) { return block_on(take_op(*this), limits); }
  outcome<batch> try_take() {
    take_op op(*this);
    return op.attempt() ? op.result(status::ok) : outcome<batch>(status::empty);
  }
  // co_await returns an outcome<std::vector<T>>.
  auto async_take(wait_limits limits = {}) { return awaitable<take_op>(std::move(limits), *this); }

  void flush();  // makes the items inside due now
  bool close();  // returns false if it was closed already
  bool is_closed() const noexcept { return closed_.load(acquire); }
  void drain();
  std::vector<T> stop();
  // Drains until a limit is reached, then stops. Returns the items that were not taken.
  std::vector<T> shutdown(const wait_limits& limits);
  // Blocks until it is closed and all items are taken and handled. Returns ok, timed_out or
  // stopped.
  status wait_ended(const wait_limits& limits = {});
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  std::size_t queued() const noexcept { return queued_.load(relaxed); }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t waiting_to_push() const noexcept;
  std::size_t waiting_to_take() const noexcept;
  batcher_stats stats() const;
  const std::string& name() const noexcept { return name_; }

 private:
  struct slot {
    T item;
    time_point arrived;
  };
  struct push_node : wait_node {
    T* item = nullptr;
    status result = status::ok;
  };
  struct take_node : wait_node {
    batch taken;
    status result = status::ok;
  };
  class end_gate : public detail::wait_calls<end_gate> {
   public:
    explicit end_gate(const batcher& b) noexcept : batcher_(b) {}

   private:
    friend class batcher;
    friend class detail::wait_calls<end_gate>;
    static constexpr const char* type_name = "sluice::batcher";
    // acquire: pairs with the releases of the values it reads.
    bool is_open() const noexcept {
      return batcher_.is_closed() && batcher_.queued_.load(acquire) == 0 &&
             batcher_.turns_.load(acquire) == 0;
    }
    const batcher& batcher_;
  };
  // Work to do after the lock is released; declared before it. A woken waiter may destroy the
  // batcher, so waking comes last, and coroutines that resume on this thread run after it.
  struct aftermath {
    explicit aftermath(batcher& b, wake_batch* outer = nullptr) noexcept
        : wakes(outer != nullptr ? *outer : own), self(b) {}
    aftermath(const aftermath&) = delete;
    aftermath& operator=(const aftermath&) = delete;
    ~aftermath() {
      if (turn) self.on_->post(self);
      if (may_have_ended) self.ended_.open_gate([this] { return self.ended_.is_open(); });
    }
    run_scope resumed_last;
    wake_batch own;
    wake_batch& wakes;
    batcher& self;
    bool turn = false;
    bool may_have_ended = false;
  };

  batcher(options o, executor* on, std::function<void(batch)> handler);

  // All below must hold guard_.
  bool offer(T& item, status& done, std::optional<T>& dropped, aftermath& after);
  void accept(T& item);
  std::size_t due() const;  // the number of items that may be taken now
  void take(batch& into, std::size_t count, aftermath& after);
  void serve(aftermath& after);  // serves all waiters that can be served, and sets the timer
  bool serve_takers(aftermath& after);
  bool serve_producers(aftermath& after);
  bool close_intake(aftermath& after);
  bool arm();  // returns true if the time is reached already
  void disarm() noexcept;
  time_point due_at() const;  // of the items inside

  void run() noexcept override;  // one turn of the handler
  void handle(batch&& items) noexcept;
  void check_outside() const noexcept;

  // Constant after construction.
  const std::string name_;
  const std::size_t size_;
  const std::chrono::nanoseconds wait_;
  const std::size_t capacity_;
  const sluice::overflow overflow_;
  clock& clock_;
  executor* const on_;
  const executor_use use_;
  const std::function<void(batch)> handler_;
  const std::function<void(T&&)> on_drop_;
  const std::function<void(std::exception_ptr)> on_error_;

  std::stop_source stop_;
  spin_budget push_spin_;
  spin_budget take_spin_;
  atomic<std::uint32_t> turns_{0};  // incremented under guard_, decremented under ended_'s
  static inline constinit thread_local const batcher* handling_ = nullptr;
  mutable spin_lock guard_;

  // Protected by guard_; the atomics are read without it as guesses.
  atomic<bool> closed_{false};
  atomic<std::size_t> queued_{0};
  detail::ring_store<slot> items_;
  std::size_t flushed_ = 0;  // the number of items inside that are due at once
  wait_list takers_;
  wait_list producers_;
  bool scheduled_ = false;
  std::optional<time_point> armed_for_;
  batcher_stats counts_;

  detail::wake_timer* const alarm_;
  end_gate ended_;  // the last: its destructor waits for a thread that is still leaving it
};

}  // namespace sluice

#include "sluice/flow/detail/batcher_core.hpp"
#include "sluice/flow/detail/batcher_ops.hpp"
