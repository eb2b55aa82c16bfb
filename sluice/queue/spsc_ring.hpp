#pragma once

// The fastest bounded queue from exactly one producer to exactly one consumer.
//
// Use it as a pipe between two threads or coroutines: two stages, a reader and its parser. Prefer
// `bounded_queue` if a second party may push or pop.
//
// Guarantees: only one party may push at a time and only one may pop; another thread or coroutine
// may take over a side if the two are ordered (happens-before). Two parties on one side at a time
// are a broken contract: detected whenever both wait, otherwise only by chance. Any thread may
// close it and read its state. First in, first out; linearizable.
// - A call that fails leaves the item with the caller; a pop that timed out or was stopped took
//   nothing. `close` stops intake and wakes both sides; items inside can still be taken. It waits
//   for a push in progress, so that no item arrives after the consumer got `closed`.
// - A move constructor that throws loses at most its own item: the exception goes to the caller,
//   and the item stays in its place unless it was already on its way into the result.
// - When full: block or reject. It never drops: to evict an item the producer would have to pop,
//   which only the consumer may do. A consumer that needs only the latest item takes all with
//   `pop_some` and keeps the last.
// - Destroying it while a side waits inside is a broken contract.
// T's move constructor must not call into the same ring.
//
// Cost: lock-free unless a side has to wait: a push or pop is a few plain loads and stores, without
// a read-modify-write and without a fence (./bench queue, `sluice_spsc`). A side that has to wait
// spins briefly, then parks; it alone pays for the ordering (one membarrier). No allocation after
// construction. The capacity is exact; memory is allocated for the next power of two.
// Limits: capacity from 1 to 2^48; `high_water` is the largest size that either side observed,
// which may be less than the exact maximum.
//
//     sluice::spsc_ring<packet> ring(4096);
//     std::jthread parser([&] { while (auto p = ring.pop()) parse(*p); });
//     while (read(p)) (void)ring.push(std::move(p));
//     ring.close();

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/outcome.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/queue/detail/queue_calls.hpp"
#include "sluice/queue/queue_stats.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

struct spsc_ring_options {
  std::size_t capacity = 0;  // in items; at least 1
  sluice::overflow overflow = sluice::overflow::block;  // or reject
  std::string name{};  // in contract messages and wait reports

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
class spsc_ring : public detail::queue_calls<spsc_ring<T>, T> {
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

  // Stops intake; items inside can still be taken. Returns false if it was closed already.
  bool close();
  bool is_closed() const noexcept { return sealed_.load(acquire); }

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t high_water() const { return stats().high_water; }
  queue_stats stats() const;
  const std::string& name() const noexcept { return name_; }
  // 1 if that side waits now, else 0.
  std::size_t waiting_to_push() const noexcept { return count(producer_); }
  std::size_t waiting_to_pop() const noexcept { return count(consumer_); }

 private:
  friend class detail::queue_calls<spsc_ring, T>;

  // The waiting state of one side. A side that waits sets `waits`, passes a heavy barrier and
  // checks the indices again before it parks. The other side publishes its index, passes a light
  // barrier and reads `waits`. So at least one of the two sees the other's store. The list, under
  // guard_, decides which party ends the wait.
  struct side {
    atomic<bool> waits{false};  // set by the side itself; cleared under guard_
    wait_list list;             // protected by guard_; one node at most
  };

  void check_some(std::size_t max, const call_site& at) const noexcept {
    check_named(max > 0, type, name_.c_str(), "max > 0", at);
  }
  // For the producer. Return false if it has to wait (`done` is then full).
  bool offer(T& item, status& done);
  bool offer_some(std::span<T> items, batch_result& result);
  std::size_t free_slots(std::uint64_t tail);
  bool begin_push();
  void end_push(std::uint64_t tail);
  [[gnu::noinline]] bool refuse(status& done);
  void note_rejected() noexcept { add_one(rejected_); }

  // For the consumer. Returns false if it has to wait (`done` is then empty).
  bool poll(std::optional<T>& slot, status& done);
  std::size_t items(std::uint64_t head, std::size_t wanted);
  void end_pop(std::uint64_t head);
  void take_more(std::vector<T>& taken, std::size_t max);

  // For both sides. `found` returns whether the side can proceed; `alone` is the contract message
  // if another party of the same side waits already.
  template <class Found>
  enlisted enlist(side& waiting_side, wait_node& node, waiter& waiting, const char* alone,
                  Found&& found);
  void retract(side& waiting_side, wait_node& node) noexcept;
  template <class Found>
  [[gnu::noinline]] void claim(side& waiting_side, wake_batch& wakes, Found&& found) noexcept;
  bool has_items() const noexcept { return tail_.load(relaxed) != head_.load(relaxed); }
  bool has_free_slots() const noexcept {
    return tail_.load(relaxed) - head_.load(relaxed) < capacity_;
  }
  wait_report::subject wait_subject(wait_report::side which) const noexcept {
    const bool takes = which == wait_report::side::consumer;
    const auto by = takes ? wait_report::served_by::unknown : wait_report::served_by::consumers;
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
  // Each counter has one writer, so this is not a read-modify-write.
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

  // Indices only grow; an index modulo the size of the memory is a slot. An index that the other
  // side reads has cache lines of its own, so that such a read costs its writer one miss; two lines
  // each, because the processor fetches lines in pairs.
  // Written by the producer, read by the consumer.
  alignas(128) atomic<std::uint64_t> tail_{0};  // next slot to write; publishes the slots before it
  // Of the producer. pushing_ is set before closed_ is read; the push's last access to the ring.
  alignas(128) atomic<bool> pushing_{false};
  std::uint64_t head_seen_ = 0;  // the last value read from head_
  spin_budget push_spin_;
  atomic<std::uint64_t> rejected_{0};
  atomic<std::uint64_t> push_waits_{0};
  atomic<std::size_t> most_by_producer_{0};

  // Written by the consumer, read by the producer.
  alignas(128) atomic<std::uint64_t> head_{0};  // next slot to read; frees the slots before it
  // Of the consumer.
  alignas(128) atomic<std::uint64_t> popped_{0};  // follows head_; the pop's last access
  std::uint64_t tail_seen_ = 0;                   // the last value read from tail_
  std::uint64_t found_ = 0;                       // the growth of that value at the last read
  spin_budget pop_spin_;
  atomic<std::uint64_t> pop_waits_{0};
  atomic<std::size_t> most_by_consumer_{0};

  // Written when a side waits or the ring is closed.
  alignas(128) side consumer_;
  side producer_;
  atomic<bool> closed_{false};  // no new push begins
  atomic<bool> sealed_{false};  // also, no push is in progress: no item will arrive any more
  mutable spin_lock guard_;
};

}  // namespace sluice

#include "sluice/queue/detail/spsc_ring_core.hpp"
#include "sluice/queue/detail/spsc_ring_calls.hpp"
