#pragma once

// Runs many small pieces of work on a few threads, where pieces create new ones: a recursive
// algorithm (`fork.hpp`, `parallel.hpp`), coroutines that wake each other.
//
// Use it for computations that divide, and as the executor of coroutines. Prefer `thread_pool` for
// functions that are submitted from outside one by one or need priorities or FIFO order; prefer a
// `strand` on top of it for functions that must not run concurrently.
//
// Guarantees: any thread may call anything.
// - Submissions from outside go through a bounded queue; when it is full, `overflow` decides. A
//   submission by a worker of this pool goes to its own deque of `deque_capacity`; if that is full,
//   the worker runs it immediately. Idle workers take from the queue, then from each other. No
//   order is promised, and nothing starves: every 61st time a worker takes from the queue first,
//   and after `favour_max` resumptions in a row it takes other work.
// - A post made by a worker runs next on that worker, so two coroutines that alternate stay on one
//   thread and wake no other. If the worker does not run it within a millisecond or two, an idle
//   worker takes it.
// - Blocking inside a function does not deadlock the pool: a join runs other work meanwhile, and
//   for every worker that sleeps in a wait of this library another may run, if necessary a spare
//   thread (at most `spares_max`; a spare ends after `keep_alive` without work). Blocking that the
//   library does not see (a system call, a std::mutex) blocks one worker.
// - If a thread cannot be started, the constructor ends the threads it has started and rethrows the
//   error; later, the pool continues with its threads, counts the failure, and retries.
// - An exception that leaves a submission, a callback or a task whose future was dropped is passed
//   to `on_error` and has no other effect (docs/concepts/errors.md).
// - `close` refuses submissions, work inside still runs; `drain` also waits for it; `stop` returns
//   the submissions that have not begun. The destructor drains. A worker that calls drain, stop,
//   join or the destructor of its own pool would wait for itself: a broken contract.
// - Posts after the end run on the posting thread. A function that a post resumes may cause the
//   destruction of the pool even before that `post` returns.
// Cost: idle costs no CPU. A fork and join of an unstolen child is about 15 ns, without allocation
// (./bench forkjoin). A submission by a worker is one allocation. Each worker has
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
  std::size_t threads = seam::usable_cpus().size();  // running at once; at least 1
  std::size_t capacity = 4096;  // of the queue for submissions from outside
  sluice::overflow overflow = sluice::overflow::block;
  std::string name = "steal";   // threads are called "steal-1", "steal-2"
  std::size_t deque_capacity = 4096;  // of each worker; a power of two
  std::size_t spares_max = 256;       // more threads than `threads`, while workers are blocked
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(10);  // of an idle spare thread
  std::function<void(submission&&)> on_drop{};
  std::function<void(std::exception_ptr)> on_error{};  // empty: writes to standard error
  // Starts a thread that runs the function, or throws; empty: seam::thread.
  std::function<seam::thread(std::function<void()>)> make_thread{};

  // As queue_options::problem.
  const char* problem() const noexcept;
};

struct work_stealing_stats {
  std::uint64_t executed = 0;  // pieces that workers took out of a queue or deque and ran
  std::uint64_t forked = 0;    // children; unstolen ones are not counted in `executed`
  std::uint64_t stolen = 0;    // pieces taken from another worker
  std::uint64_t rescued = 0;   // stolen from a busy worker's slot for the next resumption
  std::uint64_t helped = 0;    // joins that waited for another worker and ran other work meanwhile
  std::uint64_t parked = 0;    // times a worker slept because it had no work
  std::uint64_t run_by_caller = 0;  // submissions that found the deque or queue full
  std::uint64_t failed = 0;         // submissions that threw
  std::uint64_t rejected = 0;       // refused as full, or timed out while waiting for capacity
  std::uint64_t dropped = 0;        // by a dropping policy
  std::uint64_t spares_started = 0;
  std::uint64_t start_failures = 0;  // threads that could not be started
  std::size_t queued = 0;   // pieces not begun, in the queue and the deques
  std::size_t threads = 0;  // alive now, including spares
  std::size_t running = 0;  // threads that run or search for work
  std::size_t blocked = 0;  // threads that sleep in a wait inside a function
};

class work_stealing_pool final : public queued_executor {
 public:
  using options = work_stealing_pool_options;
  using stats_type = work_stealing_stats;

  static constexpr std::uint32_t favour_max = 32;

  explicit work_stealing_pool(options o = {});
  ~work_stealing_pool();

  void post(work& item) noexcept override;

  // `close`, from queued_executor: refuses submissions; work inside still runs.
  // Closes, and waits until all work has run and every thread has ended.
  void drain();
  // Closes, requests stop_token, waits for the running functions, and returns the submissions that
  // have not begun.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Returns an empty vector if all work has run.
  std::vector<submission> shutdown(const wait_limits& limits);
  // Waits until the pool is closed and has ended. Returns ok, timed_out or stopped.
  status join(const wait_limits& limits = {});
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  std::size_t threads() const noexcept { return crew_.threads(); }
  stats_type stats() const;

  // Returns true on the threads of this pool.
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
  // Called while the worker is counted as searching. Returns false if the worker must end.
  bool search(detail::steal_worker& self, detail::fork_wait* join) noexcept;
  void push_own(detail::steal_worker& self, work& item) noexcept;
  void falls_asleep(detail::steal_worker& self) noexcept;
  void woke_up() noexcept { crew_.unblocks(); }
  void report_crew() const noexcept;
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

  atomic<std::uint32_t> posting_{0};  // threads outside the pool that are inside `post`
  atomic<bool> handing_back_{false};
  spin_lock handed_back_lock_;
  std::vector<submission> handed_back_;  // protected by handed_back_lock_
};

}  // namespace sluice
