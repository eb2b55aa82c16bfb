#pragma once

// Runs functions one at a time, in order, on the threads of another executor: state that only its
// functions touch needs no lock, and an idle strand holds no thread.
//
// Use it for the state of one connection, one account, one document: thousands of strands share
// one pool. Prefer a `mutex` when the caller needs the result immediately, and an actor when the
// state should have its own messages.
//
// Guarantees: any thread may call anything. Never two of its functions at once; each function sees
// the effects of all earlier ones. Submissions begin in order of acceptance; posts too, alternating
// with them. The strand is at most once in the underlying executor's queue: it runs at most
// `per_turn` functions, then requeues itself at the back, so strands share threads fairly.
// When the queue is full, `overflow` decides (queued_executor.hpp), except caller_runs, which would
// run two functions at once: a broken contract. Only the strand's own functions free capacity, so a
// submit from inside the strand that would have to wait returns `full` (`async_submit` can wait).
// If the underlying executor has one thread, that thread must not wait here for capacity, for the
// same reason.
// Shutdown: `close` refuses submissions, the rest runs. `drain` also waits for that. `stop` returns
// the submissions that have not begun. Posts are always accepted and run one at a time, even after
// the end: a coroutine that lives on the strand is never resumed concurrently with it. drain, stop,
// join and the destructor from inside the strand would wait for themselves: a broken contract.
// Destruction: drains. The underlying executor must outlive the strand, which its destructor
// checks, and must still run its work. If it has ended, the submitting or posting thread runs the
// strand's work, one thread at a time, as with every post to an ended executor.
// Cost: one block of memory for `capacity` functions; a submission costs that of a bounded_queue
// plus one atomic addition, and one post per burst.
//
//     strand account(pool);
//     if (!account.submit([&] { balance += 10; })) return closed();  // balance needs no lock

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/executor/queued_executor.hpp"
#include "sluice/sync/detail/wait_calls.hpp"

namespace sluice {

struct strand_options {
  std::size_t capacity = 1024;
  sluice::overflow overflow = sluice::overflow::block;
  std::size_t per_turn = 64;  // functions run before it requeues itself in the executor
  std::string name = "strand";
  std::function<void(submission&&)> on_drop{};         // called with dropped submissions
  std::function<void(std::exception_ptr)> on_error{};  // called with exceptions no caller receives
};

struct strand_stats {
  std::size_t queued = 0;       // accepted and not yet begun
  std::uint64_t completed = 0;  // submissions that ended, including failed ones
  std::uint64_t failed = 0;     // threw
  std::uint64_t posts = 0;      // resumptions run
  std::uint64_t rejected = 0;   // refused as full, or timed out while waiting for capacity
  std::uint64_t dropped = 0;    // by a dropping policy
  std::uint64_t turns = 0;      // runs of the strand on the underlying executor
};

class strand final : public queued_executor, private work {
 public:
  using options = strand_options;
  using stats_type = strand_stats;

  // Runs on any executor, also on another strand (a template, because it would else be a copy).
  template <std::derived_from<executor> Executor>
  explicit strand(Executor& on, options o = {}) : strand(std::move(o), on) {}
  ~strand();

  void post(work& item) noexcept override;

  // Closes, and waits until all work inside has run.
  void drain();
  // Closes, requests stop_token, waits for the running function, and returns the submissions that
  // have not begun, in order.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Returns an empty vector if all work has run.
  std::vector<submission> shutdown(const wait_limits& limits);
  // Waits until it is closed and all work has run. Returns ok, timed_out or stopped.
  status join(const wait_limits& limits = {});
  // co_await returns a status. Not from inside the strand either.
  auto async_join(wait_limits limits = {}) { return ended_.async_wait(std::move(limits)); }

  // For running functions: requested by `stop`.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // Returns true if the calling thread is inside one of its functions.
  bool running_here() const noexcept;
  executor& underlying() const noexcept { return on_; }
  stats_type stats() const;

 private:
  // Open while the strand is closed and idle.
  class end_gate : public detail::wait_calls<end_gate> {
   public:
    explicit end_gate(const strand& s) noexcept : strand_(s) {}

   private:
    friend class strand;
    friend class detail::wait_calls<end_gate>;
    static constexpr const char* type_name = "sluice::strand";
    bool is_open() const noexcept;
    const strand& strand_;
  };
  class inside;
  class reported_turn;

  strand(options&& o, executor& on);
  status accept(submission& f, const wait_limits* limits) override;
  bool count_arrival() noexcept;
  void arrived() noexcept override;
  void intake_closed() noexcept override;
  void run() noexcept override;  // one turn on the underlying executor
  void run_some() noexcept;
  void must_be_outside() const noexcept;

  // Constant after construction.
  executor& on_;
  const executor_use use_;
  const std::size_t per_turn_;
  const bool blocks_;

  std::stop_source stop_;

  // 0: idle. Otherwise a turn is running or queued in the underlying executor. Every arrival
  // increments it, so a turn that found the queue empty can check for arrivals since. Set to 0
  // under the guard of ended_.
  atomic<std::uint64_t> arrivals_{0};
  atomic<std::uint32_t> posting_{0};  // calls of `post` that may still touch the strand

  // Written on the strand only.
  atomic<std::uint64_t> completed_{0};
  atomic<std::uint64_t> posts_{0};
  atomic<std::uint64_t> turns_{0};

  end_gate ended_;  // last member: its destructor waits for a turn that is still opening it
};

}  // namespace sluice
