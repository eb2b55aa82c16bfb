#pragma once

// The C++ memory model: which stores of other threads a load may observe.
//
// Each atomic keeps its latest stores in modification order. A load may return any of them except
// those older than a store that the thread knows: by happens-before, by coherence with earlier
// reads, or by the order of seq_cst operations and fences. So a relaxed load may return a stale
// value, and a store followed by a load of another object may appear reordered. A read-modify-write
// reads the newest value. Not modeled: stores become visible in the order in which they are made
// (no store overtakes an earlier one to the same location by another thread), and there are no
// out-of-thin-air values.
//
// Plain data is checked for races: two accesses, one of them a write, neither of which happens
// before the other.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <source_location>
#include <vector>

namespace sluice::sim::detail {

inline constexpr std::uint32_t threads_max = 32;
using times = std::array<std::uint32_t, threads_max>;

inline void join(times& into, const times& other, std::uint32_t threads) noexcept {
  for (std::uint32_t i = 0; i < threads; ++i) {
    if (other[i] > into[i]) into[i] = other[i];
  }
}

// The knowledge of a thread, or the knowledge that a store or a lock publishes.
struct knowledge {
  times before{};  // happens-before: a vector clock
  times seen{};    // coherence: at least `before`, and the stores made visible by fences
  std::uint32_t fence_step = 0;  // the latest seq_cst fence in this knowledge

  void learn(const knowledge& other, std::uint32_t threads) noexcept {
    join(before, other.before, threads);
    join(seen, other.seen, threads);
    if (other.fence_step > fence_step) fence_step = other.fence_step;
  }
};

struct thread_memory {
  knowledge now;
  knowledge released;  // at the latest release fence: published by relaxed stores
  knowledge offered;   // collected by relaxed loads: acquired by an acquire fence
  bool has_released = false;
  bool has_offered = false;
};

struct store_record {
  std::uint64_t value = 0;
  std::uint32_t thread = 0;
  std::uint32_t time = 0;
  std::uint32_t order_step = 0;  // of a seq_cst store, else 0
  bool hands_on = false;
  knowledge given;   // valid if hands_on
  times first_read;  // the time of each thread's first read; 0: not read
};

class location {
 public:
  static constexpr std::uint32_t kept = 8;

  const void* address = nullptr;
  std::uint32_t count = 0;  // stores so far; the latest `kept` of them are in `stores`
  std::array<store_record, kept> stores;

  store_record& nth(std::uint32_t n) noexcept { return stores[n % kept]; }
  store_record& newest() noexcept { return nth(count - 1); }
  std::uint32_t oldest() const noexcept { return count > kept ? count - kept : 0; }
};

struct access {
  std::uint32_t thread = 0;
  std::uint32_t time = 0;
  std::source_location where;
};
struct plain_location {
  const void* address = nullptr;
  access last_write;
  std::array<access, threads_max> reads;
};

// A detected race, with the earlier of the two accesses.
struct race {
  bool found = false;
  bool earlier_wrote = false;
  access earlier;
};

class memory_model {
 public:
  memory_model();

  void begin_run() noexcept;
  void begin_thread(std::uint32_t thread, const knowledge* parent) noexcept;
  thread_memory& of(std::uint32_t thread) noexcept { return threads_[thread]; }
  std::uint32_t threads() const noexcept { return count_; }
  void tick(std::uint32_t thread) noexcept {
    auto& self = threads_[thread].now;
    self.seen[thread] = ++self.before[thread];
  }

  // Begins an atomic at this address, with this value.
  void construct(std::uint32_t thread, const void* at, std::uint64_t value);
  location& find(const void* at, std::uint64_t newest_value);
  bool tracks(const void* at) { return slot(at).count > 0; }
  // Returns true if the construction of the atomic does not happen before this access.
  bool construction_may_be_unseen(std::uint32_t thread, location& at) noexcept;

  // Returns the number of newest stores that the thread may read; at least 1.
  std::uint32_t choices(std::uint32_t thread, location& at, std::memory_order order) noexcept;
  // Reads the store that is `age` stores older than the newest.
  std::uint64_t read(std::uint32_t thread, location& at, std::uint32_t age,
                     std::memory_order order) noexcept;
  void write(std::uint32_t thread, location& at, std::uint64_t value, std::memory_order order,
             bool continues_release = false) noexcept;
  void fence(std::uint32_t thread, std::memory_order order) noexcept;
  // Executes a seq_cst fence on every thread.
  void fence_all() noexcept;
  // Makes all stores so far visible to the thread, without a happens-before relation.
  void see_everything(std::uint32_t thread) noexcept;

  race read_plain(std::uint32_t thread, const void* at, const std::source_location& where);
  race write_plain(std::uint32_t thread, const void* at, const std::source_location& where);
  void forget_plain(const void* at) noexcept;

 private:
  bool knows(std::uint32_t thread, const store_record& store, bool in_order) const noexcept;
  bool happened_before(std::uint32_t thread, const access& earlier) const noexcept {
    return earlier.time <= threads_[thread].now.before[earlier.thread];
  }
  location& slot(const void* at);
  plain_location& plain_slot(const void* at);
  void grow();

  std::array<thread_memory, threads_max> threads_;
  std::uint32_t count_ = 0;
  std::uint32_t order_step_ = 0;  // counts the seq_cst operations
  times fenced_{};                // the stores visible to all later seq_cst fences

  // Open addressing; all entries are cleared at the beginning of a run.
  std::vector<location*> table_;
  std::size_t in_use_ = 0;
  std::deque<location> pool_;
  std::size_t pool_used_ = 0;
  std::vector<plain_location*> plain_table_;
  std::size_t plain_in_use_ = 0;
  std::deque<plain_location> plain_pool_;
  std::size_t plain_pool_used_ = 0;
};

}  // namespace sluice::sim::detail
