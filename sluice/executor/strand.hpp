#pragma once

// Runs functions one at a time, in order, on the threads of another executor: what only its
// functions touch needs no lock, and no thread is held while nothing happens.
//
// Use it for the state of one connection, one account, one document: thousands of strands share
// one pool. Prefer a `mutex` when the caller needs the result at once, and an actor when the
// state should come with its own messages.
//
// Guarantees: any thread may call anything. Never two of its functions at once, and each sees all
// that those before it did. Submissions begin in the order in which they came in; posts too, in
// turn with them. It stands in the underlying executor's line with one `work` at a time: it runs
// at most `per_turn` functions, then goes to the back, so that strands share threads fairly.
// When full, as `overflow` says (queued_executor.hpp), but never caller_runs, which would run two
// at once: that is a broken contract. Only its own functions make room, so a submit from inside
// the strand that would have to wait says `full` instead (`async_submit` waits properly). For the
// same reason a thread of the underlying executor should not wait for room here while it is the
// only one.
// Shutdown: `close` refuses further submissions, the rest is run. `drain` also waits for that.
// `stop` hands back what has not begun. Posts are always taken and run one at a time, also after
// the end: a coroutine that lives on the strand is never resumed beside it. drain, stop, join and
// the destructor from inside the strand would wait for themselves: a broken contract.
// Destruction: drains. So the underlying executor must outlive it, which its destructor checks, and
// its work must still be run. If that executor has ended, the submitting or posting thread runs the
// work inside, one thread at a time, as with every post to it.
// Cost: one block of memory for `capacity` functions; a submission is that of a bounded_queue plus
// one atomic addition, and one post for every burst.
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
#include "sluice/sync/wait_calls.hpp"

namespace sluice {

struct strand_options {
  std::size_t capacity = 1024;
  sluice::overflow overflow = sluice::overflow::block;
  std::size_t per_turn = 64;  // functions run before others of the underlying executor come on
  std::string name = "strand";
  std::function<void(submission&&)> on_drop{};         // sees what a policy dropped
  std::function<void(std::exception_ptr)> on_error{};  // sees exceptions without an addressee
};

struct strand_stats {
  std::size_t queued = 0;       // accepted and not yet begun
  std::uint64_t completed = 0;  // submissions that ended, those that threw included
  std::uint64_t failed = 0;     // threw
  std::uint64_t posts = 0;      // resumptions that were run
  std::uint64_t rejected = 0;   // told `full`, or timed out while they waited for room
  std::uint64_t dropped = 0;    // by a dropping policy
  std::uint64_t turns = 0;      // times the underlying executor was asked for a thread
};

class strand final : public queued_executor, private work {
 public:
  using options = strand_options;
  using stats_type = strand_stats;

  // Any executor, also another strand: a template, so that this is not taken for a copy.
  template <std::derived_from<executor> Executor>
  explicit strand(Executor& on, options o = {}) : strand(std::move(o), on) {}
  ~strand();

  void post(work& item) noexcept override;

  // Closes, and waits until all that is inside has run.
  void drain();
  // Closes, asks the one that runs to stop (through stop_token), waits for it, and hands back what
  // had not begun, in its order.
  std::vector<submission> stop();
  // Drains until a limit is reached, then stops. Empty: all has run.
  std::vector<submission> shutdown_within(const wait_limits& limits);
  // Waits until it is closed and all has run. ok, timed_out, stopped.
  status join(const wait_limits& limits = {});
  // co_await gives a status. Not from inside the strand either.
  auto async_join(wait_limits limits = {}) { return ended_.async_wait(std::move(limits)); }

  // Running functions may look at it: `stop` asks them to come to an end.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // True in its functions, and in whatever they call on this thread.
  bool running_here() const noexcept;
  executor& underlying() const noexcept { return on_; }
  stats_type stats() const;

 private:
  // Open while it is closed and has nothing to do.
  class end_gate : public wait_calls<end_gate> {
   public:
    explicit end_gate(const strand& s) noexcept : strand_(s) {}

   private:
    friend class strand;
    friend class wait_calls<end_gate>;
    static constexpr const char* type_name = "sluice::strand";
    bool is_open() const noexcept;
    const strand& strand_;
  };
  class inside;
  class told_turn;

  strand(options&& o, executor& on);
  status accept(submission& f, const wait_limits* limits) override;
  bool count_arrival() noexcept;
  void arrived() noexcept override;
  void intake_closed() noexcept override;
  void run() noexcept override;  // a turn
  void run_some() noexcept;
  void must_be_outside() const noexcept;

  // Constant after construction.
  executor& on_;
  const executor_use use_;
  const std::size_t per_turn_;
  const bool blocks_;

  std::stop_source stop_;

  // 0: nothing to do. Else a turn is under way or waits in the underlying executor's line, and
  // this grows with everything that arrives, so that a turn that found nothing more sees whether
  // that is still true. Becomes 0 under the guard of ended_.
  atomic<std::uint64_t> arrivals_{0};
  atomic<std::uint32_t> posting_{0};  // calls of `post` that may still touch it

  // Written on the strand alone.
  atomic<std::uint64_t> completed_{0};
  atomic<std::uint64_t> posts_{0};
  atomic<std::uint64_t> turns_{0};

  end_gate ended_;  // the last: its destructor waits for a turn that is about to let go of it
};

}  // namespace sluice
