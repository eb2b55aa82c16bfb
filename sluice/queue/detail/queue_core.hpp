#pragma once

// The engine under every queue and channel: a bounded store, a list of waiting producers and a list
// of waiting consumers, guarded by one short lock. A queue adds a store, which decides the order of
// the items; a channel adds a capacity that may be zero, and select.
//
// Guarantees of all queues and channels:
// - Linearizable: every operation takes effect at one moment, under the lock. Items of one producer
//   therefore keep their order; the store decides how producers interleave.
// - A failed push leaves the item with the caller, except that `dropped` consumed it. A call that
//   timed out or was stopped took nothing and lost nothing.
// - `close` stops intake and wakes every waiter whose wait cannot succeed any longer. Items inside
//   can still be taken; after the last one, consumers get `closed`.
// - A move constructor that throws loses at most its own item: the exception goes to the caller
//   whose item was moved, and that item stays inside unless it was already on its way into the
//   result.
// - Woken threads try again, and a running thread may be faster: throughput before strict order.
//   One thread is woken at a time, more as the backlog grows, and each woken thread wakes the next
//   while there is work: a burst costs few wakes, and never wakes all waiters at once.
//   Coroutines and selects of coroutines receive their item directly, in order of arrival.
// - Destroying it while a call waits inside is a broken contract.
// T's move constructor runs under the lock: it must not call into the same object.
//
// Cost: no allocation after construction (batch calls build their vector). An uncontended push or
// pop is one atomic exchange and one store (./bench queue, ./bench sync).
//
// Read in the order in which an item travels: queue_calls.hpp (push), queue_core_impl.hpp (offer,
// offer_locked, serve), queue_core_waits.hpp (push_op, pop_op). docs/internals/life-of-a-push.md
// follows one item.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/outcome.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/queue/detail/queue_calls.hpp"
#include "sluice/queue/queue_options.hpp"
#include "sluice/queue/queue_stats.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// Requirements of a store. All calls are made under the lock of the queue core.
template <class S, class T>
concept queue_store = requires(S s, T& item, void (*sink)(T&&), std::size_t weight) {
  { s.empty() } -> std::convertible_to<bool>;
  { s.ready() } -> std::convertible_to<bool>;  // an item can be taken now
  s.put(item, weight);                         // moves from item; strong guarantee
  // Each passes an item to the sink, removes it unless the sink threw, and returns its weight.
  { s.take(sink) } -> std::convertible_to<std::size_t>;
  { s.evict_oldest(sink) } -> std::convertible_to<std::size_t>;  // for drop_oldest
  { s.evict_newest(sink) } -> std::convertible_to<std::size_t>;  // for latest
  // Called after a change, with true if a consumer waits. Returns true if an item became ready.
  { s.settle(true) } -> std::convertible_to<bool>;
};

// Optional parts of a store.

// Items may become ready by themselves: due_by(deadline) returns whether one was ready by then.
template <class S>
concept timed_store = requires(const S& s, const deadline& until) {
  s.due_by(until);
};
// Some items do not count against the capacity. Read without the lock, as a guess.
template <class S>
concept store_with_uncounted_items = requires(const S& s) {
  s.uncounted();
};
// The number of threads that are awake and will check the store without being woken.
template <class S>
concept store_with_searching_threads = requires(const S& s) {
  s.searching_threads();
};
// An incoming item may be the one to drop under drop_oldest.
template <class S, class T>
concept store_that_ranks = requires(const S& s, const T& item) {
  s.matters_least(item);
};

template <class T, class Store>
class queue_core : public queue_calls<queue_core<T, Store>, T> {
 public:
  using options = queue_options<T>;
  class push_op;
  class pop_op;

  queue_core(const queue_core&) = delete;
  queue_core& operator=(const queue_core&) = delete;

  // Takes available items, `max` at most, without waiting.
  outcome<std::vector<T>> try_pop_some(std::size_t max, call_site at = {});

  // Stops intake; items inside can still be taken. Returns false if it was closed already.
  bool close();
  // Closes and drops all items, so that consumers get `closed` at once. Each item goes to
  // `on_drop`. Returns the number of dropped items.
  std::size_t close_and_drop();
  bool is_closed() const noexcept { return closed_.load(acquire); }

  std::size_t size() const noexcept { return size_.load(relaxed); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t weight() const;      // of all items inside
  std::size_t high_water() const;  // the most items ever inside at once
  queue_stats stats() const;
  const std::string& name() const noexcept { return name_; }
  // The number of producers and consumers that wait now.
  std::size_t waiting_to_push() const noexcept { return producers_.length.load(relaxed); }
  std::size_t waiting_to_pop() const noexcept { return consumers_.length.load(relaxed); }

 protected:
  enum class zero_capacity : bool { refused, rendezvous };
  template <class... StoreArgs>
  queue_core(const char* type, options o, zero_capacity zero, StoreArgs&&... store);
  ~queue_core();

  // Serves waiters after items of a timed store became ready.
  void reconsider(wake_batch& wakes);

  // Calls `change(store)` under the lock, then serves the waiters that the change allows. Returns
  // the result of `change`.
  template <class Change>
  decltype(auto) alter(Change&& change) {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    struct serving {
      queue_core& self;
      wake_batch& wakes;
      ~serving() { self.serve(wakes); }
    } const at_the_end{*this, wakes};
    return std::forward<Change>(change)(store_);
  }
  // Returns `read(store)`, called under the lock.
  template <class Read>
  auto look(Read&& read) const {
    const std::lock_guard hold(lock_);
    return std::forward<Read>(read)(store_);
  }
  // Takes items, under the lock, while `more(store)` returns true.
  template <class More, class Sink>
  void take_while(More&& more, Sink&& sink) {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    while (more(store_)) release_one(sink);
    serve(wakes);
  }
  // Takes available items, up to the capacity that `taken` has reserved.
  void take_more(std::vector<T>& taken, std::size_t max);

 private:
  friend class queue_calls<queue_core, T>;
  template <class, class>
  friend class end_case;

  // A waiting producer or consumer.
  struct node : wait_node {
    T* item = nullptr;                 // of a producer: moved from when accepted
    std::optional<T>* slot = nullptr;  // of a consumer: filled when served
    std::size_t weight = 0;            // of the producer's item
    bool retries = false;              // a thread: woken to try again, not served
    bool wake_pending = false;         // woken, counted in wakes_pending, has not tried yet
    status result = status::ok;
    std::exception_ptr error{};  // the move threw while it was served
  };
  struct waiting_list {
    wait_list nodes;                  // protected by lock_
    atomic<std::uint32_t> length{0};  // changed under lock_; read without it as a guess
    std::uint32_t wakes_pending = 0;  // woken threads that have not tried yet

    node& front() noexcept { return static_cast<node&>(nodes.front()); }
    bool empty() const noexcept { return length.load(relaxed) == 0; }
    enlisted add(node& n, waiter& waiting, list_end where) noexcept;
    void link(node& n, waiter& waiting) noexcept;  // without committing the waiter
    void remove(node& n) noexcept;
  };
  // Items that a policy dropped, kept until the lock is released.
  struct dropped_items {
    std::optional<T> first;
    std::vector<T> more;
    void add(T&& item);
  };

  // The calling party: an arriving one, or a waiter that was woken to try again. A woken one does
  // not count as overtaking other waiters, and passes the wake on.
  enum class caller : bool { arriving, woken };

  void check_some(std::size_t max, const call_site& at) const noexcept {
    check_named(max > 0, type_, name_.c_str(), "max > 0", at);
  }

  // One attempt. Each returns false if the caller has to wait (`done` is then full or empty).
  bool offer(T& item, status& done);
  bool offer_dropping(T& item, std::size_t weight, status& done);
  bool offer_some(std::span<T> items, batch_result& result);
  bool poll(std::optional<T>& slot, status& done);

  // All below: lock_ held.
  bool offer_locked(T& item, std::size_t weight, status& done, wake_batch& wakes,
                    dropped_items* dropped, caller by);
  bool offer_slow(T& item, std::size_t weight, status& done, wake_batch& wakes,
                  dropped_items* dropped);
  bool poll_locked(std::optional<T>& slot, status& done, wake_batch& wakes, caller by);
  bool poll_slow(std::optional<T>& slot, status& done, wake_batch& wakes);
  bool fits(std::size_t weight) const noexcept;
  bool would_overtake() const noexcept;
  void accept(T& item, std::size_t weight);
  template <class Sink>
  void release_one(Sink&& sink);
  void take_some(std::vector<T>& taken, std::size_t max, wake_batch& wakes);
  bool evict_for(const T& item, std::size_t weight, dropped_items& dropped);
  bool hand_to_consumer(T& item, wake_batch& wakes);
  bool take_from_producer(std::optional<T>& slot, wake_batch& wakes);
  void serve(wake_batch& wakes, std::uint32_t cascade = 0) {
    if (!consumers_.empty() || !producers_.empty()) [[unlikely]]
      serve_waiting(wakes, cascade);
  }
  void serve_waiting(wake_batch& wakes, std::uint32_t cascade);
  bool serve_consumers(wake_batch& wakes, std::uint32_t cascade);
  bool serve_producers(wake_batch& wakes, std::uint32_t cascade);
  void dismiss(waiting_list& list, wake_batch& wakes);
  void mark_wake_pending(node& n, waiting_list& list) noexcept;
  void clear_wake_pending(node& n, waiting_list& list) noexcept;
  void set_size(std::size_t size) noexcept { size_.store(size, relaxed); }
  std::size_t uncounted() const noexcept {
    if constexpr (store_with_uncounted_items<Store>) return store_.uncounted();
    return 0;
  }
  std::size_t available() const noexcept { return size_.load(relaxed) + uncounted(); }
  std::size_t searching_threads() const noexcept {
    if constexpr (store_with_searching_threads<Store>) return store_.searching_threads();
    return 0;
  }
  bool matters_least(const T& item) const {
    if constexpr (store_that_ranks<Store, T>) return store_.matters_least(item);
    return false;
  }
  bool drops() const noexcept {
    return overflow_ != overflow::block && overflow_ != overflow::reject;
  }
  std::size_t weigh(const T& item) const { return weigh_ ? weigh_(item) : 0; }
  // Reports the use of one end to wait reports, for 4 of every 128 uses: reporting each would cost
  // as much as the push. Uses that serve a waiter are all reported, where they serve it.
  void report_some(wait_report::side side, std::uint64_t count) const noexcept {
    if ((count & 127) < 4) [[unlikely]]
      wait_report::used(this, side);
  }

  // Describes a wait at this side for wait reports. A consumer of an empty queue is idle; a
  // consumer of a channel without a buffer waits for producers.
  wait_report::subject wait_subject(wait_report::side side) const noexcept {
    using wait_report::served_by;
    const bool takes = side == wait_report::side::consumer;
    const auto idle = capacity_ == 0 ? served_by::producers : served_by::unknown;
    return {.object = this,
            .type = type_,
            .wants = takes ? "pop" : "push",
            .by = takes ? idle : served_by::consumers,
            .capacity = capacity_};
  }
  void report(dropped_items& dropped);
  void note_rejected() noexcept;
  void gave_up(status why);

  // Constant after construction.
  const char* const type_;
  const std::string name_;
  const std::size_t capacity_;
  const std::size_t weight_max_;
  const sluice::overflow overflow_;
  const std::function<std::size_t(const T&)> weigh_;
  const std::function<void(T&&)> on_drop_;

  // Protected by lock_, on a cache line of its own; the atomics are read without it as guesses.
  alignas(64) mutable spin_lock lock_;
  atomic<bool> closed_{false};
  spin_budget push_spin_;
  spin_budget pop_spin_;
  atomic<std::size_t> size_{0};

 protected:
  Store store_;  // protected by lock_

 private:
  waiting_list consumers_;
  waiting_list producers_;
  std::size_t weight_ = 0;
  queue_stats stats_;
};

}  // namespace sluice::detail

#include "sluice/queue/detail/queue_core_impl.hpp"
#include "sluice/queue/detail/queue_core_waits.hpp"
