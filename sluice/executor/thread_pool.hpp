#pragma once

// Runs submitted functions on a number of threads, with a bounded queue in front of them: the
// executor for work that blocks, computes or both.
//
// Use it for the work of a service. Prefer `work_stealing_pool` for work that splits itself into
// many small pieces, and a `strand` on top of a pool for functions that must not run concurrently.
//
// Threads: `core` threads exist from construction to the end. With a larger `max` the pool is
// elastic: a submission or post that finds no idle thread starts one, up to `max`; a thread beyond
// `core` ends after `keep_alive` without work. With `sizing` the pool measures how much its
// functions wait and moves the upper limit between core and max (sizing.hpp).
//
// Guarantees: any thread may call anything, except drain, stop, shutdown, join and the destructor
// on one of the pool's own threads: it would wait for itself, a broken contract. Submissions begin
// in the order of acceptance (with several threads, some dozens of later ones may begin first; with
// `by_priority`, the most urgent first) and alternate with posts. No function waits behind a
// running one while a thread is idle. An exception of a function is counted and passed to
// `on_error`, else written to standard error; so are exceptions of callbacks and of tasks whose
// future was dropped (docs/concepts/errors.md).
// When the queue is full, `overflow` decides (queued_executor.hpp). The pool's own threads never
// wait for capacity, because all of them could do so at once: they run the function themselves.
// Shutdown: `close`, `drain`, `stop`, `shutdown`, below; the destructor drains. A closed pool runs
// posts until its last function has ended; after that, the posting thread runs them.
// If a thread cannot be started, the constructor ends the threads it has started and rethrows the
// error; later, the pool continues with its threads, counts the failure, and retries when a thread
// is needed again. If `affinity` names a processor that the process may not use, the constructor
// throws std::system_error (invalid_argument) with its number.
// Cost: no allocation for a function of up to 40 bytes; no CPU while idle (./bench executor). Two
// clock readings would cost more than the rest, so one submission in `time_every` is timed.
// Limits: core at least 1, max at least core and at most threads_max (required with `sizing`;
// with max equal to core, sizing changes nothing), capacity at least 1.
//
//     thread_pool pool({.core = 4, .capacity = 1000, .name = "thumbs"});
//     for (auto& image : album) {
//       if (!pool.submit([&image] { shrink(image); })) break;  // the pool is closed
//     }
//     pool.drain();

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/executor/queued_executor.hpp"
#include "sluice/executor/sizing.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/histogram.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice {

// The processors that the threads of a pool run on. An empty list: all that the process may use.
struct cpu_affinity {
  enum class binding : std::uint8_t { none, one_each, whole_set };

  binding kind = binding::none;
  std::vector<unsigned> cpus{};

  // Binds the first thread to the first processor, the second to the second, and so on in turn.
  static cpu_affinity one_each(std::vector<unsigned> cpus = {}) {
    return {binding::one_each, std::move(cpus)};
  }
  // Binds every thread to the set.
  static cpu_affinity whole_set(std::vector<unsigned> cpus) {
    return {binding::whole_set, std::move(cpus)};
  }
};

struct thread_pool_options {
  std::size_t core = seam::usable_cpus().size();
  std::optional<std::size_t> max{};  // none: core
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(60);  // zero or less: none
  std::optional<sluice::sizing::adaptive> sizing{};

  std::size_t capacity = 4096;  // queued submissions
  sluice::overflow overflow = sluice::overflow::block;
  bool by_priority = false;            // the most urgent first; else FIFO
  std::chrono::nanoseconds ageing{0};  // of priorities, as in priority_queue
  std::function<void(submission&&)> on_drop{};         // called with dropped submissions
  std::function<void(std::exception_ptr)> on_error{};  // called with exceptions no caller receives

  std::string name = "pool";  // threads are called pool-1, pool-2, ...
  cpu_affinity affinity{};
  std::uint32_t time_every = 64;   // 1: time every submission, 0: none
  sluice::clock* clock = nullptr;  // for keep_alive, ageing and timing; null: the real clock
  // Starts a thread that runs the function, or throws; empty: seam::thread.
  std::function<seam::thread(std::function<void()>)> make_thread{};

  // As queue_options::problem.
  const char* problem() const noexcept;
};

struct thread_pool_stats {
  std::size_t threads = 0;
  std::size_t threads_largest = 0;  // the largest number of threads so far
  std::size_t threads_limit = 0;    // max, or the current limit set by sizing
  std::size_t queued = 0;           // accepted and not yet begun
  std::size_t active = 0;           // threads that run a function now
  std::uint64_t completed = 0;      // ended, including failed submissions and those run by callers
  std::uint64_t failed = 0;         // threw
  std::uint64_t rejected = 0;       // refused as full, or timed out while waiting for capacity
  std::uint64_t dropped = 0;        // by a dropping policy
  std::uint64_t run_by_caller = 0;
  std::uint64_t posts = 0;           // resumptions run
  std::uint64_t start_failures = 0;  // threads that could not be started
};

class thread_pool final : public queued_executor {
 public:
  using options = thread_pool_options;
  static constexpr std::size_t threads_max = recommended_threads_max;

  explicit thread_pool(std::size_t threads) : thread_pool(options{.core = threads}) {}
  explicit thread_pool(options o = {});
  ~thread_pool();  // as drain

  void post(work& item) noexcept override;

  // `close`, from queued_executor: refuses submissions; work inside still runs.
  // Closes, and waits until all work has run and every thread has ended.
  void drain();
  // Closes, removes the submissions that have not begun, requests stop_token, waits for the running
  // functions, and returns the removed submissions in the order in which they would have run.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Returns an empty vector if all work has run.
  std::vector<submission> shutdown(const wait_limits& limits);
  // Waits until the pool is closed and has ended. Returns ok, timed_out or stopped.
  status join(const wait_limits& limits = {});

  // For running functions: requested by `stop`.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  std::size_t threads() const noexcept { return threads_.load(relaxed); }
  thread_pool_stats stats() const;
  // Of the timed submissions: nanoseconds from acceptance to begin, and from begin to end.
  histogram::snapshot wait_times() const { return wait_times_.read(); }
  histogram::snapshot run_times() const { return run_times_.read(); }

 private:
  struct worker;
  enum class exit : std::uint8_t { idle_for_long, too_many, closed };

  status accept(submission& f, const wait_limits* limits) override;
  void arrived() noexcept override {
    if (max_ > core_) [[unlikely]] grow_if_needed();
  }
  void ran_by_caller() noexcept override { run_by_caller_.fetch_add(1, relaxed); }

  bool on_own_thread() const noexcept;
  void must_not_be_own_thread() const noexcept;
  std::size_t limit() const noexcept { return limit_.load(relaxed); }

  // Starting and ending threads.
  bool lacks_threads() noexcept;
  void grow_if_needed() noexcept;
  void start_one();  // mutex_ held
  bool leave(worker& me, exit why) noexcept;
  bool rest(std::unique_lock<sluice::mutex>& hold) noexcept;
  void wake_one_at_rest() noexcept;
  void end_threads() noexcept;
  void report_end_holders() noexcept;

  // The loop of a thread.
  void live(worker& me) noexcept;
  void set_up_thread(const worker& me) const noexcept;
  submission* next(worker& me);
  bool poll_for_work() noexcept;
  submission* borrow(worker& me);
  void run(worker& me, submission& f) noexcept;
  void run_timed(submission& f) noexcept;
  void run_measured(worker& me, submission& f) noexcept;

  // Constant after construction.
  const std::size_t core_;
  const std::size_t max_;
  const std::chrono::nanoseconds keep_alive_;
  sluice::clock* const clock_;
  const bool blocks_;
  const cpu_affinity affinity_;
  const std::function<seam::thread(std::function<void()>)> make_thread_;
  const std::function<seam::thread_times()> measure_;  // empty: no sizing

  std::stop_source stop_;
  event ended_;
  histogram wait_times_;
  histogram run_times_;
  atomic<std::uint64_t> run_by_caller_{0};

  atomic<std::size_t> threads_{0};  // written under mutex_; read without it as a guess
  atomic<std::size_t> limit_;       // written under sizing_guard_, likewise
  // Threads that search for work or sleep, including threads just started.
  alignas(64) atomic<std::size_t> idle_{0};

  // Calls of `post` from outside that may still touch the pool.
  alignas(64) atomic<std::uint32_t> posting_{0};

  // Protected by mutex_.
  alignas(64) mutable sluice::mutex mutex_;
  std::vector<std::unique_ptr<worker>> workers_;  // by number; null where a thread has ended
  seam::thread last_ended_;                       // each ending thread joins the previous one
  thread_pool_stats past_;                        // the counts of threads that have ended
  std::size_t resting_ = 0;                       // threads that found the pool closed and empty
  bool has_retired_ = false;                      // all threads did: the intake accepts no posts
  condition at_rest_;

  spin_lock sizing_guard_;
  std::optional<sizing::meter> meter_;  // protected by sizing_guard_
};

}  // namespace sluice
