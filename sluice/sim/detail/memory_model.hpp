#pragma once

// What a thread may see of what others wrote: the C++ memory model, as far as programs can tell.
//
// Each atomic keeps its latest stores in the order in which they were made. A load may give any of
// them but those that are older than one the thread knows of: through happens-before, through what
// it or a thread before it has read, or through the order of seq_cst operations and fences. So a
// relaxed load may give a stale value, and a store followed by a load of something else may seem to
// change places with it. A read-modify-write sees the newest. What the model leaves out: stores
// are seen in the order they are made in (no store overtakes an earlier one of its own location
// from another thread), and no value comes out of thin air.
//
// Plain data is checked for races: two accesses, one of them a write, neither before the other.

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

// What one thread knows, or what a store or a lock hands on.
struct knowledge {
  times before{};  // what happened before: the time of each thread
  times seen{};    // what may not be unseen again: all of `before`, and what fences showed
  std::uint32_t fence_step = 0;  // the latest seq_cst fence in it

  void learn(const knowledge& other, std::uint32_t threads) noexcept {
    join(before, other.before, threads);
    join(seen, other.seen, threads);
    if (other.fence_step > fence_step) fence_step = other.fence_step;
  }
};

struct thread_memory {
  knowledge now;
  knowledge released;  // by the latest release fence: what relaxed stores hand on
  knowledge offered;   // by relaxed loads: what an acquire fence takes in
  bool has_released = false;
  bool has_offered = false;
};

struct store_record {
  std::uint64_t value = 0;
  std::uint32_t thread = 0;
  std::uint32_t time = 0;
  std::uint32_t order_step = 0;  // of a seq_cst store, else 0
  bool hands_on = false;
  knowledge given;   // valid when hands_on
  times first_read;  // by each thread, 0: not read
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

// A race that was found: the earlier of the two accesses.
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
    auto& mine = threads_[thread].now;
    mine.seen[thread] = ++mine.before[thread];
  }

  // An atomic comes to be here, with this value.
  void construct(std::uint32_t thread, const void* at, std::uint64_t value);
  location& find(const void* at, std::uint64_t newest_value);
  bool tracks(const void* at) { return slot(at).count > 0; }
  // True when the thread may not know that the atomic was made: it was handed over without order.
  bool may_be_unborn(std::uint32_t thread, location& at) noexcept;

  // How many of the newest stores the thread may read; at least 1.
  std::uint32_t choices(std::uint32_t thread, location& at, std::memory_order order) noexcept;
  // Reads the store that is `age` older than the newest.
  std::uint64_t read(std::uint32_t thread, location& at, std::uint32_t age,
                     std::memory_order order) noexcept;
  void write(std::uint32_t thread, location& at, std::uint64_t value, std::memory_order order,
             bool continues_release = false) noexcept;
  void fence(std::uint32_t thread, std::memory_order order) noexcept;
  // Makes every thread pass a seq_cst fence.
  void fence_all() noexcept;
  // The thread sees all that was stored so far, without anything having happened before.
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
  times fenced_{};                // what seq_cst fences have shown to all that come after

  // Open addressing; an entry of an earlier run is free.
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
