#pragma once

// Runs submitted functions on a number of threads, keeps the rest in a bounded queue, and says
// when that is full: the executor for work that blocks, computes or both.
//
// Use it for the work of a service. Prefer `work_stealing_pool` for work that splits itself into
// many small pieces, and a `strand` on top of a pool for work that must not run side by side.
//
// Threads: `core` of them from the beginning to the end. With a larger `max` it is elastic: a
// submission or post that finds no idle thread starts another one, until there are `max`; one
// beyond `core` that has had nothing to do for `keep_alive` ends. With `sizing` the pool measures
// how much its functions wait, and moves the upper limit between core and max (sizing.hpp).
//
// Guarantees: any thread may call anything, but drain, stop, shutdown_within, join and the
// destructor not one of the pool's own: it would wait for itself, a broken contract. Submissions
// begin as accepted (with several threads, some dozens of later ones may come first; `by_priority`,
// the most urgent), posts in turn with them. Nothing waits behind a function that runs while a
// thread is idle. An exception of a function ends nothing: it is counted and given to `on_error`,
// else written to standard error. Exceptions of callbacks and of tasks whose future was dropped are
// given to `on_error`, too (docs/concepts/errors.md).
// When the queue is full, as `overflow` says (queued_executor.hpp). One of the pool's own threads
// never waits for room, because all of them could do so at once: where it would have to, it runs
// the function itself.
// Shutdown: `close`, `drain`, `stop`, `shutdown_within`, below; the destructor drains. Until its
// last function has ended, a closed pool runs what is posted; after that, whoever posts runs it.
// If a thread cannot be started, the constructor throws what the system said and leaves none
// behind; later, the pool goes on with those it has, counts it, and tries again at the next need.
// Processors that `affinity` names and the process may not use: the constructor throws
// std::system_error (invalid_argument), which says which.
// Cost: no allocation for a function of up to 40 bytes; idle, no CPU (./bench executor). Two
// readings of the clock would cost more than the rest: one submission in `time_every` is timed.
// Limits: core at least 1, max at least core and at most threads_max (named, if there is `sizing`;
// one equal to core leaves it nothing to move), capacity at least 1.
//
//     thread_pool pool({.core = 4, .capacity = 1000, .name = "thumbs"});
//     for (auto& image : album) {
//       if (!pool.submit([&image] { shrink(image); })) break;  // somebody has closed it
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

// Which processors the threads of a pool run on. No processors: all that the process may use.
struct cpu_affinity {
  enum class binding : std::uint8_t { none, one_each, whole_set };

  binding how = binding::none;
  std::vector<unsigned> cpus{};

  // The first thread on the first of them alone, the second on the second, and so on in turn.
  static cpu_affinity one_each(std::vector<unsigned> cpus = {}) {
    return {binding::one_each, std::move(cpus)};
  }
  // Every thread on any of them.
  static cpu_affinity whole_set(std::vector<unsigned> cpus) {
    return {binding::whole_set, std::move(cpus)};
  }
};

struct thread_pool_options {
  std::size_t core = seam::usable_cpus().size();
  std::optional<std::size_t> max{};  // none: as many as core
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(60);  // zero or less: not at all
  std::optional<sluice::sizing::adaptive> sizing{};

  std::size_t capacity = 4096;  // submissions that wait
  sluice::overflow overflow = sluice::overflow::block;
  bool by_priority = false;            // the most urgent first, else first come, first served
  std::chrono::nanoseconds ageing{0};  // of priorities, as priority_queue has it
  std::function<void(submission&&)> on_drop{};         // sees what a policy dropped
  std::function<void(std::exception_ptr)> on_error{};  // sees exceptions without an addressee

  std::string name = "pool";  // threads are called pool-1, pool-2, ...
  cpu_affinity affinity{};
  std::uint32_t time_every = 64;   // 1: time all of them, 0: none
  sluice::clock* clock = nullptr;  // of keep_alive, ageing and timing; null: the real one
  // Starts a thread that runs the function, or throws; empty: seam::thread.
  std::function<seam::thread(std::function<void()>)> make_thread{};
};

struct thread_pool_stats {
  std::size_t threads = 0;
  std::size_t threads_largest = 0;  // the most there ever were at once
  std::size_t threads_limit = 0;    // max, or what sizing has made of it
  std::size_t queued = 0;           // accepted and not yet begun
  std::size_t active = 0;           // threads that are running something
  std::uint64_t completed = 0;      // ended, those that threw and the callers' own included
  std::uint64_t failed = 0;         // threw
  std::uint64_t rejected = 0;       // told `full`, or timed out while they waited for room
  std::uint64_t dropped = 0;        // by a dropping policy
  std::uint64_t run_by_caller = 0;
  std::uint64_t posts = 0;           // resumptions that were run
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

  // `close`, from queued_executor: no more submissions; what is inside will be run.
  // Closes, and waits until all of it has run and every thread has ended.
  void drain();
  // Closes, takes out what has not begun, asks those that run to stop (through stop_token), waits
  // for them, and hands back what it took out, in the order in which it would have been run.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Empty: all has run.
  std::vector<submission> shutdown_within(const wait_limits& limits);
  // Waits for the end of a pool that somebody closes. ok, timed_out, stopped.
  status join(const wait_limits& limits = {});

  // Running functions may look at it: `stop` asks them to come to an end.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  std::size_t threads() const noexcept { return threads_.load(relaxed); }
  thread_pool_stats stats() const;
  // Nanoseconds from being accepted to being begun, and from there to the end, of those timed.
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

  void check_options(const options& o) const noexcept;
  bool on_own_thread() const noexcept;
  void must_not_be_own_thread() const noexcept;
  std::size_t limit() const noexcept { return limit_.load(relaxed); }

  // Threads come and go.
  bool lacks_threads() noexcept;
  void grow_if_needed() noexcept;
  void start_one();  // mutex_ held
  bool leave(worker& me, exit why) noexcept;
  bool rest(std::unique_lock<sluice::mutex>& hold) noexcept;
  void wake_one_at_rest() noexcept;
  void end_threads() noexcept;
  void tell_whose_end() noexcept;

  // What a thread does.
  void live(worker& me) noexcept;
  void settle_in(const worker& me) const noexcept;
  submission* next(worker& me);
  bool look_for_more() noexcept;
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
  const std::function<seam::thread_times()> measure_;  // empty: it does not size itself

  std::stop_source stop_;
  event ended_;
  histogram wait_times_;
  histogram run_times_;
  atomic<std::uint64_t> run_by_caller_{0};

  atomic<std::size_t> threads_{0};  // changed under mutex_; read without it as a guess
  atomic<std::size_t> limit_;       // changed under sizing_guard_, likewise
  // Threads that look for something to run or rest, those just started included.
  alignas(64) atomic<std::size_t> idle_{0};

  // Calls of `post` from outside that may still touch the pool.
  alignas(64) atomic<std::uint32_t> posting_{0};

  // Protected by mutex_.
  alignas(64) mutable sluice::mutex mutex_;
  std::vector<std::unique_ptr<worker>> workers_;  // by number; null where a thread has ended
  seam::thread last_ended_;                       // each joins the one that ended before it
  thread_pool_stats past_;                        // the counts of threads that have ended
  std::size_t resting_ = 0;                       // threads that found it closed and empty
  bool over_ = false;                             // all of them did: nothing is taken any more
  condition at_rest_;

  spin_lock sizing_guard_;
  std::optional<sizing::meter> meter_;  // protected by sizing_guard_
};

}  // namespace sluice
