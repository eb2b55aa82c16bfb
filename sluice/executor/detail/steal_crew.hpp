#pragma once

// Who of a work_stealing_pool's workers is awake: wakes one when there is work nobody looks for,
// puts a spare in the place of one that is held up, and ends them all when the work is done.
//
// A worker is
//   running    runs something, or is
//   searching  (also counted as running) looks for something to run
//   resting    asleep: nothing to do
//   joining    asleep in a join, until the child is done; may be called to help meanwhile
//   blocked    asleep in some other wait of the library, inside a function it runs
//
// At most `threads` are to be running. One that comes back from being blocked may be one too many;
// the next that finds nothing of its own to do goes to rest, and those that rest longer than
// `keep_alive` while there are more than `threads` end.
//
// Who adds work wakes somebody only if nobody is searching: whoever stops searching looks once
// more at everything, after it has said that it no longer searches. So a burst wakes one worker,
// which wakes the next when it has found something and sees more.
//
// While others run, one sleeper watches: every millisecond it looks for work that its worker keeps
// for itself (`next`) and does not come to, because its function runs long. When no worker has kept
// anything for a few milliseconds, or none runs, nobody wakes up; the next that keeps something
// calls a watcher.

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
  using is_over = bool (*)(const void* what) noexcept;

  steal_crew(work_stealing_pool& pool, intake& outside, settings s);
  ~steal_crew();
  steal_crew(const steal_crew&) = delete;
  steal_crew& operator=(const steal_crew&) = delete;

  void start(serve each);  // once, before anything else
  void join_threads() noexcept;

  // After work was put where any worker finds it. Anyone.
  void work_added() noexcept {
    // Pairs with the heavy barrier of a worker that stops searching: it sees the work, or we see
    // that it stopped.
    seam::light_barrier();
    if (wanted_.load(relaxed)) [[unlikely]] call_one();
  }
  // After work was put into a worker's `next`. Its worker.
  void next_added() noexcept {
    seam::light_barrier();
    if (watch_wanted_.load(relaxed)) [[unlikely]] call_one();
  }

  // A worker, that runs, about itself.
  void begin_search() noexcept;
  void end_search() noexcept;  // it found something, or has no more need to
  // It searched in vain: sleeps until it is called, or `over(what)` (null: never). True: it
  // searches again, possibly with what it holds in `rescued`. False: it is to end, and is counted
  // no more.
  bool rest(steal_worker& self, is_over over, const void* what) noexcept;
  void blocks() noexcept;
  void unblocks() noexcept;
  // There are more running than threads: it may go to rest.
  bool is_surplus() const noexcept { return surplus_.load(relaxed); }

  // After the intake was closed: ends the crew, if it is idle; else it ends when it is.
  void closed() noexcept;
  event& ended() noexcept { return ended_; }
  // For whoever watches: the end of the crew is a wait for the end of all who are in it.
  void tell_whose_end() noexcept;

  // Every worker that there is or was.
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

  void start_thread(steal_worker* again);
  void tell_end_of(const steal_worker& who) const noexcept;
  void leave_for_good(steal_worker& self) noexcept;
  void call_one() noexcept;
  void look_once_more() noexcept;
  bool work_is_visible() const noexcept;
  bool next_is_visible() const noexcept;
  void leave(steal_worker& self) noexcept;
  enum class after_sleep : std::uint8_t { sleep_on, search, end };
  after_sleep woken_by_time(steal_worker& self) noexcept;
  after_sleep watch(steal_worker& self) noexcept;
  work* take_stranded(steal_worker& from) noexcept;

  // All below: lock_ held.
  void lie_down(steal_worker& self, bool may_watch) noexcept;
  void get_up(steal_worker& self) noexcept;
  void count_in(steal_worker& self) noexcept;
  steal_worker* next_to_call() noexcept;
  void settle() noexcept;
  bool can_start_spare() const noexcept { return live_ < threads_ + spares_max_; }
  void end_if_done() noexcept;
  bool nobody_joins() const noexcept;

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
  atomic<std::size_t> made_{0};  // how many of them are there
  event ended_;

  // Read by whoever adds work; written under lock_ when it changes.
  alignas(64) atomic<bool> wanted_{false};  // nobody searches, and somebody could
  atomic<bool> watch_wanted_{false};        // ... and nobody watches
  atomic<bool> surplus_{false};

  alignas(64) mutable spin_lock lock_;
  // Protected by lock_.
  intrusive_list<steal_worker> resting_;  // the one that came last first
  intrusive_list<steal_worker> joining_;
  intrusive_list<steal_worker> vacant_;   // their threads have ended, or are about to
  steal_worker* watcher_ = nullptr;       // resting or joining, and in neither list
  std::size_t live_ = 0;
  std::size_t running_ = 0;
  std::size_t searching_ = 0;
  std::size_t blocked_ = 0;
  std::size_t looking_ = 0;  // watchers that look around: one may hold what it took to run
  std::uint64_t start_failures_ = 0;
  bool over_ = false;

  atomic<std::uint64_t> spares_started_{0};
  spin_lock hiring_;  // guards made_ and every worker's thread
};

}  // namespace sluice::detail
