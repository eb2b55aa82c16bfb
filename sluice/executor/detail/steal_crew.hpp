#pragma once

// The threads of a work_stealing_pool: wakes one when there is work and none searches, starts a
// spare in place of a blocked one, and ends them all when the work is done.
//
// A worker is
//   running    runs a piece of work, or is
//   searching  (also counted as running) searches for work
//   resting    asleep without work
//   joining    asleep in a join until the child is done; may be woken to help meanwhile
//   blocked    asleep in another wait of the library, inside a function it runs
//
// At most `threads` should be running. A worker that returns from being blocked may be one too
// many; the next worker that has no work of its own then rests. Workers that rest longer than
// `keep_alive` while there are more than `threads` end.
//
// A thread that adds work wakes a worker only if none is searching: a worker that stops searching
// checks for work once more after it has published that it no longer searches. So a burst wakes
// one worker, which wakes the next when it has found work and sees more.
//
// While others run, one sleeping worker is the watcher: every millisecond it checks for posts that
// a worker holds in `next` and does not run because its current function is long. If no worker has
// held a post for a few milliseconds, or none runs, the watcher stops; the next post to a `next`
// starts one.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "sluice/base/atomic.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/executor/detail/intake.hpp"
#include "sluice/executor/detail/steal_worker.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

class steal_crew {
 public:
  // Starts a thread that runs the function, or throws; empty: seam::thread.
  using thread_maker = std::function<seam::thread(std::function<void()>)>;
  struct settings {
    std::size_t threads;
    std::size_t spares_max;
    std::size_t deque_capacity;
    std::chrono::nanoseconds keep_alive;
    thread_maker make_thread;
  };
  using serve = std::function<void(steal_worker&)>;
  using is_done = bool (*)(const void* joined) noexcept;

  steal_crew(work_stealing_pool& pool, intake& outside, settings s);
  ~steal_crew();
  steal_crew(const steal_crew&) = delete;
  steal_crew& operator=(const steal_crew&) = delete;

  void start(serve each);  // once, before any other call
  void join_threads() noexcept;

  // Called by any thread after it added work that any worker can find.
  void work_added() noexcept {
    // Pairs with the heavy barrier of a worker that stops searching: either it sees the work, or
    // this thread sees that it stopped.
    seam::light_barrier();
    if (wanted_.load(relaxed)) [[unlikely]] call_one();
  }
  // Called by a worker after it filled its `next`.
  void next_added() noexcept {
    seam::light_barrier();
    if (watch_wanted_.load(relaxed)) [[unlikely]] call_one();
  }

  // Called by a running worker.
  void begin_search() noexcept;
  void end_search() noexcept;  // it found work, or its join is done
  // Called after a search without result: sleeps until it is woken or `done(joined)` (null: never).
  // Returns true to search again, possibly with work in `rescued`; false if the worker must end, in
  // which case it is no longer counted.
  bool rest(steal_worker& self, is_done done, const void* joined) noexcept;
  void blocks() noexcept;
  void unblocks() noexcept;
  // Returns true if more workers run than `threads`: the caller may rest.
  bool is_surplus() const noexcept { return surplus_.load(relaxed); }

  // Called after the intake was closed: ends the crew now or as soon as it is idle.
  void closed() noexcept;
  event& ended() noexcept { return ended_; }
  // For wait reports: a wait for the end of the crew is a wait for all its threads.
  void report_end_holders() noexcept;

  // All workers, including ended ones.
  std::size_t size() const noexcept { return made_.load(acquire); }  // pairs with hire
  steal_worker& at(std::size_t i) const noexcept { return *workers_[i].load(acquire); }
  std::size_t threads() const noexcept { return threads_; }
  bool is_fixed() const noexcept { return spares_max_ == 0; }

  struct headcount {
    std::size_t live = 0;
    std::size_t running = 0;
    std::size_t searching = 0;
    std::size_t resting = 0;
    std::size_t joining = 0;
    std::size_t blocked = 0;
    std::uint64_t spares_started = 0;
    std::uint64_t start_failures = 0;
  };
  headcount count() const;

 private:
  static constexpr auto watch_period = std::chrono::milliseconds(1);
  static constexpr std::uint32_t quiet_ticks_max = 8;

  void start_thread(steal_worker* reused);
  void report_end_holder(const steal_worker& member) const noexcept;
  void end_worker(steal_worker& self) noexcept;
  void call_one() noexcept;
  void check_again() noexcept;
  bool work_is_visible() const noexcept;
  bool next_is_visible() const noexcept;
  void leave(steal_worker& self) noexcept;
  enum class after_sleep : std::uint8_t { sleep_on, search, end };
  after_sleep woken_by_time(steal_worker& self) noexcept;
  after_sleep watch(steal_worker& self) noexcept;
  work* take_stranded(steal_worker& from) noexcept;

  // Must hold lock_ for all below.
  void park_in_list(steal_worker& self, bool may_watch) noexcept;
  void remove_from_list(steal_worker& self) noexcept;
  void count_in(steal_worker& self) noexcept;
  steal_worker* next_to_call() noexcept;
  void update_flags() noexcept;
  bool can_start_spare() const noexcept { return live_ < threads_ + spares_max_; }
  void end_if_done() noexcept;
  bool has_joiner() const noexcept;

  // Constant after construction.
  work_stealing_pool& pool_;
  intake& outside_;
  const std::size_t threads_;
  const std::size_t spares_max_;
  const std::size_t deque_capacity_;
  const std::chrono::nanoseconds keep_alive_;
  const thread_maker make_thread_;
  serve serve_;

  const std::unique_ptr<atomic<steal_worker*>[]> workers_;
  atomic<std::size_t> made_{0};  // the number of workers_
  event ended_;

  // Read by every thread that adds work; written under lock_ when the value changes.
  alignas(64) atomic<bool> wanted_{false};  // no worker searches, and one could
  atomic<bool> watch_wanted_{false};        // ... and there is no watcher
  atomic<bool> surplus_{false};

  alignas(64) mutable spin_lock lock_;
  // Protected by lock_.
  intrusive_list<steal_worker> resting_;  // LIFO
  intrusive_list<steal_worker> joining_;
  intrusive_list<steal_worker> vacant_;   // their threads have ended, or are about to
  steal_worker* watcher_ = nullptr;       // resting or joining, and in neither list
  std::size_t live_ = 0;
  std::size_t running_ = 0;
  std::size_t searching_ = 0;
  std::size_t blocked_ = 0;
  std::size_t looking_ = 0;  // watchers in a tick: one may have taken work to run
  std::uint64_t start_failures_ = 0;
  bool has_ended_ = false;

  atomic<std::uint64_t> spares_started_{0};
  spin_lock hiring_;  // guards made_ and the thread of every worker
};

}  // namespace sluice::detail
