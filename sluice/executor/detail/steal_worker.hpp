#pragma once

// One worker of a work_stealing_pool: what it has to do, and what of it others may look at.

#include <cstddef>
#include <cstdint>

#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/per_thread.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/detail/steal_deque.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {
class work_stealing_pool;
}

namespace sluice::detail {

// A number that its worker alone changes and anybody may read.
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

  // Owner: what was made ready last and runs next.
  work* take_next() noexcept {
    if (next.load(relaxed) == nullptr) return nullptr;  // the owner alone fills it
    return next.exchange(nullptr, acquire);  // acquire: pairs with the release of the post
  }

  // Constant while a thread serves it.
  work_stealing_pool& pool;
  const std::size_t number;  // from 1
  seam::parker* sleeper = nullptr;
  std::uintptr_t stack_base = 0;

  // The owner puts in and takes out, others take out.
  steal_deque<work> deque;
  alignas(64) atomic<work*> next{nullptr};

  // The owner's.
  std::uint32_t turn = 0;      // counts how often it looked for work
  std::uint32_t favoured = 0;  // how often in a row it took `next` before all else

  own_count executed;  // pieces taken out of a queue and run
  own_count forked;
  own_count stolen;
  own_count rescues;  // of those, the ones that another kept for itself and did not come to
  own_count parked;
  own_count crowded;  // submissions of its own that found the deque full
  own_count helped;   // waits in join for a child that another worker runs

  atomic<std::uint64_t> party{0};  // what whoever watches knows its thread by; 0: it has none

  // Protected by the crew's lock.
  bool called = false;   // woken to look for work, or to end
  bool joining = false;  // sleeps in a join
  bool watching = false;

  // The owner's, while it watches.
  work* rescued = nullptr;        // what it took from another's `next`
  std::uint32_t quiet_ticks = 0;  // how often in a row no worker had a `next`

  // The watcher's memory of this worker. Atomic, because a watcher that has just been called may
  // still look while another has taken over.
  atomic<work*> next_seen{nullptr};
  atomic<std::uint64_t> executed_seen{0};

  seam::thread thread{};
};

// The calling thread's worker, or null.
extern constinit thread_local steal_worker* this_steal_worker;
SLUICE_PER_THREAD inline steal_worker* current_steal_worker() noexcept { return this_steal_worker; }

}  // namespace sluice::detail
