#pragma once

// The engine under every queue and channel: a bounded store, a line of those who wait to put and
// a line of those who wait to take, behind one short lock. A queue is this plus a store that says
// in which order things come out; a channel is this with a capacity that may be zero, and select.
//
// Guarantees, for all of them:
// - Linearizable: every operation happens at one moment, under the lock. So items of one producer
//   keep their order, whatever order the store has among producers.
// - A call that fails leaves the item with the caller; `dropped` alone consumed it. A call that
//   timed out or was stopped took nothing and lost nothing.
// - `close` stops intake and wakes everyone whose wait became pointless. What is inside can still
//   be taken; then takers hear `closed`.
// - A move constructor that throws loses no other item: the one that threw stays where it was (or,
//   when it was out already, on its way into the result, goes with the exception), and the
//   exception goes to the caller whose move it was.
// - Threads that wait are woken to try again, and a running thread may be faster: throughput before
//   strict order. One wake is under way at a time, more as the backlog grows, and every woken
//   thread wakes further ones while there is work: a burst costs few wakes and no herd.
//   Coroutines and selects of coroutines are handed their item in their turn.
// - Destroying it while anybody waits inside is a broken contract.
// T's move runs under the lock: it must not call back into the same object.
//
// Cost: no allocation after construction (batch calls build their vector); a push and a pop are
// one atomic exchange and one store each when uncontended (./bench queue, ./bench sync).

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
#include "sluice/queue/queue_calls.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

template <class T>
struct queue_options {
  std::size_t capacity = 0;  // in items; at least 1 (a channel may have 0)
  sluice::overflow overflow = sluice::overflow::block;
  std::string name{};  // for messages, and what inspect calls it

  // A second bound, in whatever unit `weigh` counts (bytes): 0 is none. An item heavier than all
  // of it is refused with `full` at once, whatever the policy. With a weight, producers are served
  // strictly in turn, so that a heavy item is not overtaken for ever.
  std::size_t weight_max = 0;
  std::function<std::size_t(const T&)> weigh{};

  // Sees every item that a policy dropped, on the thread whose push dropped it, without the lock.
  // An exception that leaves it is written to standard error (docs/concepts/errors.md).
  std::function<void(T&&)> on_drop{};
};

// What the exchange asks of a store. All calls are under the exchange's lock.
template <class S, class T>
concept exchange_store = requires(S s, T& item, void (*sink)(T&&), std::size_t weight) {
  { s.empty() } -> std::convertible_to<bool>;
  { s.ready() } -> std::convertible_to<bool>;  // something may be taken now
  s.put(item, weight);                         // moves from item; strong guarantee
  // Give an item to the sink, remove it if the sink did not throw, and return its weight.
  { s.take(sink) } -> std::convertible_to<std::size_t>;
  { s.evict_oldest(sink) } -> std::convertible_to<std::size_t>;  // for drop_oldest
  { s.evict_latest(sink) } -> std::convertible_to<std::size_t>;  // for latest
  // Optional, for items that become ready by themselves: due_by(deadline), true: one was by then.
  // After a change. `waited_for`: someone waits for an item. True: one became ready, look again.
  { s.settle(true) } -> std::convertible_to<bool>;
};

template <class T, class Store>
class exchange : public queue_calls<exchange<T, Store>, T> {
 public:
  using options = queue_options<T>;
  class push_op;
  class pop_op;

  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  outcome<std::vector<T>> try_pop_some(std::size_t max);

  // False: it was closed already.
  bool close();
  bool is_closed() const noexcept { return closed_.load(acquire); }

  std::size_t size() const noexcept { return size_.load(relaxed); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t weight() const;      // of all that is inside
  std::size_t high_water() const;  // the most items ever inside at once
  queue_stats stats() const;
  const std::string& name() const noexcept { return name_; }
  // How many wait in line right now.
  std::size_t waiting_to_push() const noexcept { return producers_.length.load(relaxed); }
  std::size_t waiting_to_pop() const noexcept { return consumers_.length.load(relaxed); }

 protected:
  enum class zero_capacity : bool { refused, rendezvous };
  template <class... StoreArgs>
  exchange(const char* type, options o, zero_capacity zero, StoreArgs&&... store);
  ~exchange();

  // For a store whose items become ready by themselves (time): look again.
  void reconsider(wake_batch& wakes);

  // For a store that is also filled another way: changes it under the lock, then serves whoever
  // that makes ready. Gives back what `change` returned.
  template <class Change>
  decltype(auto) alter(Change&& change) {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    struct serving {
      exchange& self;
      wake_batch& wakes;
      ~serving() { self.serve(wakes); }
    } const at_the_end{*this, wakes};
    return std::forward<Change>(change)(store_);
  }
  template <class Look>
  auto look(Look&& at) const {
    const std::lock_guard hold(lock_);
    return std::forward<Look>(at)(store_);
  }
  // Takes items out, under the lock, while `more(store)` says so.
  template <class More, class Sink>
  void take_while(More&& more, Sink&& sink) {
    wake_batch wakes;
    const std::lock_guard hold(lock_);
    while (more(store_)) release_one(sink);
    serve(wakes);
  }
  // Takes what is there, as far as `taken` has room reserved.
  void take_more(std::vector<T>& taken, std::size_t max);

 private:
  friend class queue_calls<exchange, T>;
  template <class, class>
  friend class exchange_case;

  struct node : wait_node {
    T* item = nullptr;                  // producers: moved from when accepted
    std::optional<T>* slot = nullptr;   // consumers: filled when served
    std::size_t weight = 0;             // producers
    bool retries = false;               // a thread: told to try again, not served
    bool in_flight = false;             // ... and counted in its line until it has tried
    status result = status::ok;
    std::exception_ptr error{};         // the move threw while it was served
  };
  struct line {
    wait_list nodes;                    // protected by lock_
    atomic<std::uint32_t> length{0};    // changed under lock_; read without it as a guess
    std::uint32_t in_flight = 0;        // threads woken that have not tried yet

    node& front() noexcept { return static_cast<node&>(nodes.front()); }
    bool empty() const noexcept { return length.load(relaxed) == 0; }
    enlisted add(node& n, waiter& who, list_end where) noexcept;
    void link(node& n, waiter& who) noexcept;  // without committing
    void remove(node& n) noexcept;
  };
  struct bin {  // what a policy dropped, on its way out of the lock
    std::optional<T> first;
    std::vector<T> more;
    void add(T&& item);
  };

  // `mine`: the caller stood in line and was woken for this: it overtakes nobody, and passes the
  // wake on.
  enum class turn : bool { any, mine };

  // One try. False: would have to wait (`done` then says full or empty).
  bool offer(T& item, status& done);
  bool offer_dropping(T& item, std::size_t weight, status& done);
  bool offer_some(std::span<T> items, batch_result& result);
  bool poll(std::optional<T>& slot, status& done);

  // All below: lock_ held.
  bool offer_locked(T& item, std::size_t weight, status& done, wake_batch& wakes, bin* dropped,
                    turn whose);
  bool refuse_locked(T& item, std::size_t weight, status& done, wake_batch& wakes, bin* dropped);
  bool poll_locked(std::optional<T>& slot, status& done, wake_batch& wakes, turn whose);
  bool find_nothing(std::optional<T>& slot, status& done, wake_batch& wakes);
  bool fits(std::size_t weight) const noexcept;
  bool overtakes() const noexcept;
  void accept(T& item, std::size_t weight);
  template <class Sink>
  void release_one(Sink&& sink);
  void take_some(std::vector<T>& taken, std::size_t max, wake_batch& wakes);
  bool make_room(const T& item, std::size_t weight, bin& dropped);
  bool hand_to_consumer(T& item, wake_batch& wakes);
  bool take_from_producer(std::optional<T>& slot, wake_batch& wakes);
  void serve(wake_batch& wakes, std::uint32_t cascade = 0) {
    if (!consumers_.empty() || !producers_.empty()) [[unlikely]] serve_waiting(wakes, cascade);
  }
  void serve_waiting(wake_batch& wakes, std::uint32_t cascade);
  bool serve_consumers(wake_batch& wakes, std::uint32_t cascade);
  bool serve_producers(wake_batch& wakes, std::uint32_t cascade);
  void dismiss(line& waiting, wake_batch& wakes);
  void set_size(std::size_t size) noexcept { size_.store(size, relaxed); }
  // A store may hold items that do not count against the capacity. Read without the lock, a guess.
  std::size_t uncounted() const noexcept {
    if constexpr (requires { store_.uncounted(); }) return store_.uncounted();
    return 0;
  }
  std::size_t available() const noexcept { return size_.load(relaxed) + uncounted(); }
  // A store may know of threads that are awake and will look into it by themselves.
  std::size_t about_to_look() const noexcept {
    if constexpr (requires { store_.about_to_look(); }) return store_.about_to_look();
    return 0;
  }
  void depart(node& n, line& mine) noexcept;  // told to try, and counted until it has
  void landed(node& n, line& mine) noexcept;

  // A store with an opinion on what matters may say that the incoming item is the one to drop.
  bool matters_least(const T& item) const {
    if constexpr (requires { store_.matters_least(item); }) return store_.matters_least(item);
    return false;
  }
  bool drops() const noexcept {
    return overflow_ != overflow::block && overflow_ != overflow::reject;
  }
  std::size_t weigh(const T& item) const { return weigh_ ? weigh_(item) : 0; }
  // After the `count`th put or take, by the calling party. Whoever watches hears of some of them
  // (and of all that serve one who waits): to tell of all would cost as much as the rest.
  void tell_some(watch::side which, std::uint64_t count) const noexcept {
    if ((count & 127) < 4) [[unlikely]] watch::used(this, which);
  }

  // What one that waits at this side waits for. A consumer that finds a queue empty is idle; one
  // at a channel without a buffer waits for those who give.
  watch::subject about(watch::side which) const noexcept {
    using watch::served_by;
    const bool takes = which == watch::side::takes;
    const auto idle = capacity_ == 0 ? served_by::givers : served_by::unknown;
    return {.object = this,
            .type = type_,
            .wants = takes ? "pop" : "push",
            .by = takes ? idle : served_by::takers,
            .capacity = capacity_};
  }
  void report(bin& dropped);
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
  line consumers_;
  line producers_;
  std::size_t weight_ = 0;
  queue_stats stats_;
};

}  // namespace sluice

#include "sluice/queue/detail/exchange_core.hpp"
#include "sluice/queue/detail/exchange_calls.hpp"
