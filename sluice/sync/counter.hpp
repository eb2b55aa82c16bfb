#pragma once

// Counts events of many threads without contention on one number.
//
// Use it for statistics that are written often and read seldom: requests served, bytes sent. Use
// `counter::local` in a tight loop: it counts in plain memory that belongs to one thread, and
// merges its count once, at its end. Prefer a plain atomic when every add must see the total.
//
// Guarantees: any thread may call anything. `sum` includes every add that happened before the call
// (by the same thread, or by one the caller has synchronized with, as by joining it), and any
// subset of the concurrent ones. So it is exact when no adder runs; and while all adders add
// positive amounts, it is between the total at the start and the total at the end of the call.
// There is no reset: remember the last sum and subtract, and no add is ever lost between two
// readers. Past the largest value it wraps around. It orders no other memory: to publish data, use
// a lock, an event or a queue.
// A `local` belongs to one thread at a time, and must end before its counter.
// Cost: an add is one relaxed atomic add to a cache line that few threads share; `sum` reads
// `shards()` lines. One allocation, at construction: 64 bytes for each hardware thread, rounded
// up to a power of two and bounded by 64 of them. A local's add is a plain add.
//
//     counter served;
//     served.increment();                                        // any thread
//     counter::local part(served);
//     for (const auto& line : lines) part.add(handle(line));     // no atomics in here
//     report(served.sum());

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"

namespace sluice {

class counter {
 public:
  using value_type = std::int64_t;
  class local;

  static constexpr std::size_t shards_max = 64;

  counter();
  counter(const counter&) = delete;
  counter& operator=(const counter&) = delete;

  void add(value_type n) noexcept {
    // relaxed: only the sum matters, and the shards are independent of each other.
    shards_[seam::thread_number() & mask_].value.fetch_add(n, relaxed);
  }
  void increment() noexcept { add(1); }

  value_type sum() const noexcept;

  // The number of cache lines that share the count: a power of two.
  std::size_t shards() const noexcept { return mask_ + 1; }

 private:
  // One cache line each, so that the adds of two threads do not contend for a line.
  struct alignas(64) shard {
    atomic<value_type> value{0};
  };

  // Constant after construction.
  std::size_t mask_;
  std::unique_ptr<shard[]> shards_;
};

class counter::local {
 public:
  explicit local(counter& into) noexcept : into_(into) {}
  local(const local&) = delete;
  local& operator=(const local&) = delete;
  ~local() { flush(); }

  // Unsigned inside, because it wraps around as the counter does.
  void add(value_type n) noexcept { pending_ += static_cast<std::uint64_t>(n); }
  void increment() noexcept { ++pending_; }

  // The count that is not merged into the counter yet.
  value_type pending() const noexcept { return static_cast<value_type>(pending_); }

  // Merges now; counting may continue.
  void flush() noexcept {
    if (pending_ == 0) return;
    into_.add(pending());
    pending_ = 0;
  }

 private:
  counter& into_;
  std::uint64_t pending_ = 0;
};

}  // namespace sluice
