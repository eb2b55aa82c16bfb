#pragma once

// Runs many small pieces of work on a few threads, where the pieces themselves make new ones: a
// recursive algorithm (`fork.hpp`, `parallel.hpp`), coroutines that wake each other.
//
// Use it for computations that divide, and as the executor of coroutines. Prefer `thread_pool` for
// functions that come from outside one by one, need priorities or first come, first served; prefer
// `strand` on top of it where things must not overlap.
//
// Guarantees: any thread may call anything.
// - What comes from outside goes through a bounded queue; when that is full, as `overflow` says.
//   What a worker of this pool submits goes to its own deque of `deque_capacity`; when that is
//   full, the worker runs it at once. Workers without work take from the queue, then from each
//   other. No order is promised. Nothing is starved: every 61st time a worker takes from the queue
//   first, and after `favour_max` resumptions in a row it takes something else.
// - A post made by a worker runs next on that worker, so two coroutines that take turns stay on one
//   thread, and wake nobody. If the worker does not come to it for a millisecond or two, an idle
//   one takes it.
// - Blocking inside a function does not deadlock the pool: a join helps meanwhile, and for every
//   worker that sleeps in a wait of this library another may run, a spare if need be: at most
//   `spares_max`, each for as long as it is needed and `keep_alive` after. Blocking that the
//   library does not see (a system call, a std::mutex) holds up one worker.
// - If a thread cannot be started, the constructor throws what the system said and leaves none
//   behind; later, the pool goes on with those it has, counts it, and tries again at the next need.
// - An exception that leaves a submission, a callback or a task whose future was dropped is given
//   to `on_error`, and ends nothing else (docs/concepts/errors.md).
// - `close` ends intake, and what is inside runs; `drain` also waits until all has run; `stop` ends
//   soon and hands back what has not begun. The destructor drains. A worker that calls drain, stop,
//   join or the destructor of its own pool would wait for itself: a broken contract.
// - Posts after the end run on the thread that makes them. What a post resumed may let somebody
//   destroy the pool at once, even while `post` is still returning.
// Cost: idle costs no CPU. A fork and join of which nobody stole is about 15 ns, without
// allocation (./bench forkjoin). A submission by a worker is one allocation. Each worker has
// 8 * deque_capacity bytes.
//
//     work_stealing_pool pool({.threads = 8});
//     if (!pool.submit([] { index_all(); })) return;  // it was closed
//     parallel_for(pool, 0, rows, [&](int row) { render(row); });

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/base/this_thread.hpp"
#include "sluice/executor/detail/steal_crew.hpp"
#include "sluice/executor/queued_executor.hpp"

namespace sluice {

namespace detail {
class fork_base;
class fork_wait;
}

struct work_stealing_pool_options {
  std::size_t threads = seam::usable_cpus().size();  // that run at once; at least 1
  std::size_t capacity = 4096;  // of the queue for submissions from outside
  sluice::overflow overflow = sluice::overflow::block;
  std::string name = "steal";   // threads are called "steal-1", "steal-2"
  std::size_t deque_capacity = 4096;  // of each worker; a power of two
  std::size_t spares_max = 256;       // more threads than `threads`, while workers are blocked
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(10);  // of a spare with nothing to do
  std::function<void(submission&&)> on_drop{};
  std::function<void(std::exception_ptr)> on_error{};  // empty: says so on standard error
  // Starts a thread that runs the function, or throws; empty: seam::thread.
  std::function<seam::thread(std::function<void()>)> make_thread{};
};

struct work_stealing_stats {
  std::uint64_t executed = 0;  // pieces that workers took out of a queue or deque and ran
  std::uint64_t forked = 0;    // children; those that nobody took are not among the executed
  std::uint64_t stolen = 0;    // pieces taken from another worker
  std::uint64_t rescued = 0;   // of those, the ones it was to run next and did not come to
  std::uint64_t helped = 0;    // joins that had to wait for another worker, and ran others' work
  std::uint64_t parked = 0;    // times a worker went to sleep for want of work
  std::uint64_t run_by_caller = 0;  // submissions for which there was no room
  std::uint64_t failed = 0;         // submissions that threw
  std::uint64_t rejected = 0;       // told `full`, or timed out while they waited for room
  std::uint64_t dropped = 0;        // by a dropping policy
  std::uint64_t spares_started = 0;
  std::uint64_t start_failures = 0;  // threads that could not be started
  std::size_t queued = 0;   // pieces not begun, outside and inside
  std::size_t threads = 0;  // alive now, spares among them
  std::size_t running = 0;  // that run something or look for it
  std::size_t blocked = 0;  // that sleep in a wait inside a function
};

class work_stealing_pool final : public queued_executor {
 public:
  using options = work_stealing_pool_options;
  using stats_type = work_stealing_stats;

  static constexpr std::uint32_t favour_max = 32;

  explicit work_stealing_pool(options o = {});
  ~work_stealing_pool();

  void post(work& item) noexcept override;

  // `close`, from queued_executor: no more submissions; what is inside will be run.
  // Closes, and waits until all of it has run and every thread has ended.
  void drain();
  // Closes, asks those that run to stop (through stop_token), waits for them, and hands back the
  // submissions that had not begun.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Empty: all has run.
  std::vector<submission> shutdown_within(const wait_limits& limits);
  // Waits for the end of a pool that somebody closes. ok, timed_out, stopped.
  status join(const wait_limits& limits = {});
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  std::size_t threads() const noexcept { return crew_.threads(); }
  stats_type stats() const;

  // True on the threads of this pool.
  bool is_worker() const noexcept {
    const auto* const here = detail::current_steal_worker();
    return here != nullptr && &here->pool == this;
  }

 private:
  friend class detail::fork_base;
  friend class detail::steal_worker;
  class own_submission;
  class piece;

  status accept(submission& f, const wait_limits* limits) override;
  void post_from_outside(work& item) noexcept;
  void arrived() noexcept override { crew_.work_added(); }
  void intake_closed() noexcept override { crew_.closed(); }
  void ran_by_caller() noexcept override { run_by_caller_.fetch_add(1, relaxed); }

  void serve(detail::steal_worker& self);
  bool find_own(detail::steal_worker& self, piece& found) noexcept;
  bool find_outside(piece& found) noexcept;
  bool find_stolen(detail::steal_worker& self, piece& found) noexcept;
  enum class first_look : bool { outside, others };
  bool find_any(detail::steal_worker& self, piece& found, first_look first) noexcept;
  bool run_one(detail::steal_worker& self, first_look first) noexcept;
  void run(detail::steal_worker& self, piece& found) noexcept;
  // Counted as searching. False: the worker is to end.
  bool search(detail::steal_worker& self, detail::fork_wait* join) noexcept;
  void push_own(detail::steal_worker& self, work& item) noexcept;
  void falls_asleep(detail::steal_worker& self) noexcept;
  void woke_up() noexcept { crew_.unblocks(); }
  void tell_crew() const noexcept;
  void check_outside(const char* expected) const noexcept;

  // For fork.
  bool fork_here(detail::steal_worker& self, work& child) noexcept {
    self.forked.increment();
    if (!self.deque.push(&child)) [[unlikely]] return false;
    crew_.work_added();
    return true;
  }
  bool fork_from_outside(work& child) noexcept;
  void help(detail::steal_worker& self, detail::fork_base& child, work* popped,
            const call_site& at) noexcept;

  detail::steal_crew crew_;
  std::stop_source stop_;
  atomic<std::uint64_t> run_by_caller_{0};
  spin_budget join_spin_;

  atomic<std::uint32_t> posting_{0};  // threads of others that are inside `post`
  atomic<bool> handing_back_{false};
  spin_lock handed_back_lock_;
  std::vector<submission> handed_back_;  // protected by handed_back_lock_
};

}  // namespace sluice
