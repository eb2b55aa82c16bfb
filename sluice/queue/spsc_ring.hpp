#pragma once

// Hands items from exactly one producer to exactly one consumer, as fast as memory allows.
//
// Use it for a pipe between two threads or coroutines: a stage and the next, a reader and its
// parser. Prefer `bounded_queue` as soon as a second one may push, or a second one may pop.
//
// Guarantees: one party pushes and one pops at a time; that party may be another thread or
// coroutine later, if something orders the two. Two at a time on one side is a broken contract: it
// is always found when both wait, and found when it happens to show, at no cost, otherwise. Anyone
// may close it and look at it. First in, first out; linearizable.
// - A call that fails leaves the item with the caller; a pop that timed out or was stopped took
//   nothing. `close` stops intake and wakes both sides; what is inside can still be taken. It waits
//   for a push that is being moved in, so that no item arrives after the consumer heard `closed`.
// - A move constructor that throws loses no other item: the one that threw stays where it was (or,
//   when it was out already, goes with the exception), and the caller hears.
// - Where full: block, or reject. Nothing is ever dropped: to make room the producer would have to
//   take from the consumer's end, which is what having one consumer rules out. A consumer that
//   wants the latest only takes all with `pop_some` and keeps the last.
// - Destroying it while either side waits inside is a broken contract.
// T's move must not call back into the same ring.
//
// Cost: lock-free while nobody has to wait: a push or pop is a few plain loads and stores, without
// a read-modify-write and without a fence (./bench queue, `sluice_spsc`). A side that has to wait
// spins briefly, then parks; it alone pays for the ordering (one membarrier). No allocation after
// construction. The capacity is exact; memory is for the next power of two.
// Limits: capacity from 1 to 2^48; `high_water` in its counters is the most that either side
// happened to see inside when it looked, not an exact mark.
//
//     sluice::spsc_ring<packet> ring(4096);
//     std::jthread parser([&] { while (auto p = ring.pop()) parse(*p); });
//     while (read(p)) (void)ring.push(std::move(p));
//     ring.close();

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
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

struct spsc_ring_options {
  std::size_t capacity = 0;  // in items; at least 1
  sluice::overflow overflow = sluice::overflow::block;  // or reject
  std::string name{};  // for messages, and what inspect calls it

  // As queue_options::problem.
  const char* problem() const noexcept {
    if (overflow != sluice::overflow::block && overflow != sluice::overflow::reject) {
      return "overflow::block or overflow::reject";
    }
    if (capacity == 0) return "a capacity of at least 1";
    return capacity <= capacity_max ? nullptr : "a capacity of at most 2^48";
  }
  static constexpr std::size_t capacity_max = std::size_t{1} << 48;
};

template <class T>
class spsc_ring : public queue_calls<spsc_ring<T>, T> {
 public:
  using options = spsc_ring_options;
  class push_op;
  class pop_op;

  explicit spsc_ring(std::size_t capacity) : spsc_ring(options{.capacity = capacity}) {}
  explicit spsc_ring(options o);
  spsc_ring(const spsc_ring&) = delete;
  spsc_ring& operator=(const spsc_ring&) = delete;
  ~spsc_ring();

  outcome<std::vector<T>> try_pop_some(std::size_t max, call_site at = {});

  // False: it was closed already.
  bool close();
  bool is_closed() const noexcept { return sealed_.load(acquire); }

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t high_water() const { return stats().high_water; }
  queue_stats stats() const;
  const std::string& name() const noexcept { return name_; }
  // Whether (1 or 0) that side waits right now.
  std::size_t waiting_to_push() const noexcept { return count(producer_); }
  std::size_t waiting_to_pop() const noexcept { return count(consumer_); }

 private:
  friend class queue_calls<spsc_ring, T>;

  // Where one side waits. It says so (`waits`), passes a heavy barrier, and looks again before it
  // parks; the other side publishes, passes a light barrier, and looks at `waits`. So one of the
  // two sees the other. The list decides who ends the wait.
  struct side {
    atomic<bool> waits{false};  // set by the side itself; cleared under guard_
    wait_list list;             // protected by guard_; at most one
  };

  void check_some(std::size_t max, const call_site& at) const noexcept {
    check_named(max > 0, type, name_.c_str(), "to be asked for at least one item", at);
  }
  // Producer. False: would have to wait (`done` then says full).
  bool offer(T& item, status& done);
  bool offer_some(std::span<T> items, batch_result& result);
  std::size_t room(std::uint64_t tail);
  bool begin_push();
  void end_push(std::uint64_t tail);
  [[gnu::noinline]] bool refuse(status& done);
  void note_rejected() noexcept { add_one(rejected_); }

  // Consumer. False: would have to wait (`done` then says empty).
  bool poll(std::optional<T>& slot, status& done);
  std::size_t items(std::uint64_t head, std::size_t wanted);
  void end_pop(std::uint64_t head);
  void take_more(std::vector<T>& taken, std::size_t max);

  // Either. `found`: what it waits for has come after all.
  template <class Found>
  enlisted enlist(side& mine, wait_node& node, waiter& who, const char* alone, Found&& found);
  void retract(side& mine, wait_node& node) noexcept;
  template <class Found>
  [[gnu::noinline]] void claim(side& other, wake_batch& wakes, Found&& found) noexcept;
  bool has_items() const noexcept { return tail_.load(relaxed) != head_.load(relaxed); }
  bool has_room() const noexcept {
    return tail_.load(relaxed) - head_.load(relaxed) < capacity_;
  }
  watch::subject about(watch::side which) const noexcept {
    const bool takes = which == watch::side::takes;
    const auto by = takes ? watch::served_by::unknown : watch::served_by::takers;
    return {.object = this,
            .type = type,
            .wants = takes ? "pop" : "push",
            .by = by,
            .capacity = capacity_};
  }
  [[gnu::noinline]] void seal();
  std::size_t count(const side& s) const noexcept;

  T* at(std::uint64_t index) const noexcept { return slots_ + (index & mask_); }
  void saw(atomic<std::size_t>& mark, std::size_t inside) noexcept {
    if (inside > mark.load(relaxed)) mark.store(inside, relaxed);
  }
  // By one writer: not a read-modify-write.
  static void add_one(atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(relaxed) + 1, relaxed);
  }
  static constexpr const char* type = "sluice::spsc_ring";
  static std::uint64_t mask_for(const options& o);

  // Constant after construction.
  const std::string name_;
  const std::size_t capacity_;
  const std::uint64_t mask_;
  T* const slots_;
  const bool rejects_;

  // Indices only grow; an index modulo the memory's size is a slot. What the other side looks at
  // is apart from what only its own side uses, so that a look costs the owner one miss and no more;
  // two lines each, because the processor fetches lines in pairs.
  // Written by the producer, read by the consumer.
  alignas(128) atomic<std::uint64_t> tail_{0};  // the next to be written; publishes what is before
  // The producer's own.
  alignas(128) atomic<bool> pushing_{false};  // set before it looks at closed_; its last touch
  std::uint64_t head_seen_ = 0;               // where the consumer was when last looked at
  spin_budget push_spin_;
  atomic<std::uint64_t> rejected_{0};
  atomic<std::uint64_t> push_waits_{0};
  atomic<std::size_t> most_by_producer_{0};

  // Written by the consumer, read by the producer.
  alignas(128) atomic<std::uint64_t> head_{0};  // the next to be read; gives back what is before
  // The consumer's own.
  alignas(128) atomic<std::uint64_t> popped_{0};  // follows head_; its last touch
  std::uint64_t tail_seen_ = 0;                   // where the producer was when last looked at
  std::uint64_t found_ = 0;                       // how far it had come since the look before
  spin_budget pop_spin_;
  atomic<std::uint64_t> pop_waits_{0};
  atomic<std::size_t> most_by_consumer_{0};

  // Written when somebody waits or closes.
  alignas(128) side consumer_;
  side producer_;
  atomic<bool> closed_{false};  // no push begins
  atomic<bool> sealed_{false};  // and none is under way: what is inside is all there will be
  mutable spin_lock guard_;
};

}  // namespace sluice

#include "sluice/queue/detail/spsc_ring_core.hpp"
#include "sluice/queue/detail/spsc_ring_calls.hpp"
