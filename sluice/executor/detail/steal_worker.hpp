#pragma once

// One worker of a work_stealing_pool: its work, its counters, and its state in the crew.

#include <cstddef>
#include <cstdint>

#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/detail/per_thread.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/detail/steal_deque.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {
class work_stealing_pool;
}

namespace sluice::detail {

// A counter written by one thread and readable by all.
class own_count {
 public:
  void increment() noexcept { value_.store(value_.load(relaxed) + 1, relaxed); }
  std::uint64_t get() const noexcept { return value_.load(relaxed); }

 private:
  atomic<std::uint64_t> value_{0};
};

class steal_worker final : public list_hook, public sleep_observer {
 public:
  steal_worker(work_stealing_pool& on, std::size_t at, std::size_t deque_capacity)
      : pool(on), number(at), deque(deque_capacity) {}

  void falls_asleep() noexcept override;
  void woke_up() noexcept override;

  // Owner: takes the most recent post, which runs next, or returns null.
  work* take_next() noexcept {
    if (next.load(relaxed) == nullptr) return nullptr;  // only the owner fills it
    return next.exchange(nullptr, acquire);  // acquire: pairs with the release of the post
  }

  // Constant while a thread serves it.
  work_stealing_pool& pool;
  const std::size_t number;  // from 1
  seam::parker* sleeper = nullptr;
  std::uintptr_t stack_base = 0;

  // Filled by the owner; the owner and other workers take from it.
  steal_deque<work> deque;
  alignas(64) atomic<work*> next{nullptr};

  // Used by the owner only.
  std::uint32_t turn = 0;      // number of searches for work
  std::uint32_t favoured = 0;  // times in a row that it took `next` first

  own_count executed;  // pieces taken out of a queue and run
  own_count forked;
  own_count stolen;
  own_count rescues;  // stolen pieces in another worker's `next` that it was too busy to run
  own_count parked;
  own_count crowded;  // its submissions that found the deque full
  own_count helped;   // waits in join for a child that another worker runs

  atomic<std::uint64_t> party{0};  // its thread's id in wait reports; 0: it has no thread

  // Protected by the crew's lock.
  bool called = false;   // woken to search for work, or to end
  bool joining = false;  // sleeps in a join
  bool watching = false;

  // Used by the owner while it is the watcher.
  work* rescued = nullptr;        // taken from another worker's `next`
  std::uint32_t quiet_ticks = 0;  // ticks in a row in which no worker had a `next`

  // The state of this worker at the watcher's last tick. Atomic, because a former watcher may still
  // read it while the new one writes.
  atomic<work*> next_seen{nullptr};
  atomic<std::uint64_t> executed_seen{0};

  seam::thread thread{};
};

// The worker of the calling thread, or null.
extern constinit thread_local steal_worker* this_steal_worker;
SLUICE_PER_THREAD inline steal_worker* current_steal_worker() noexcept { return this_steal_worker; }

}  // namespace sluice::detail
