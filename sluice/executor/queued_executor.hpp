#pragma once

// An executor with a bounded queue of submissions: the base of thread_pool, work_stealing_pool,
// strand and manual_executor. It accepts submissions; the derived class runs them.
//
// When the queue is full, `overflow` decides: block (the submitter waits, within its limits, or
// awaits `async_submit`), reject, drop_newest, drop_oldest, latest, or caller_runs: the submitting
// thread runs the function before `submit` returns ok, and an exception of it is reported like any
// other. Functions that are run by their caller may submit in turn, to a depth of 64; beyond that
// `submit` returns full.
// An exception of `on_drop` goes to `on_error`. An exception of `on_error` goes to standard error,
// together with its argument (docs/concepts/errors.md).

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/overflow.hpp"
#include "sluice/executor/detail/intake.hpp"
#include "sluice/executor/executor.hpp"

namespace sluice {

class queued_executor : public executor {
 public:
  // co_await returns a status; if it is not ok, the function is destroyed. The executor must
  // outlive the co_await, not only the function: `arrived` is called after the coroutine has been
  // resumed, and the function may have run before that.
  auto async_submit(submission f, wait_limits limits = {}) {
    return awaitable<submit_op>(std::move(limits), *this, std::move(f));
  }

  static constexpr int caller_nesting_max = 64;

  std::string_view name() const noexcept override { return intake_.name(); }
  std::size_t capacity() const noexcept { return intake_.capacity(); }
  std::size_t queued() const noexcept { return intake_.queued(); }  // submissions not yet begun
  // Submitters that wait for capacity now.
  std::size_t waiting_to_submit() const noexcept { return intake_.waiting_to_push(); }

  // A later submit returns closed; work inside still runs. Returns false if it was closed already.
  bool close() {
    const bool first = intake_.close();
    if (first) intake_closed();
    return first;
  }
  bool is_closed() const noexcept { return intake_.is_closed(); }

  // Calls `on_error` if set, else writes to standard error.
  void report_error(const std::exception_ptr& error) noexcept override;

 protected:
  struct intake_options {
    std::size_t capacity = 0;
    sluice::overflow overflow = sluice::overflow::block;
    std::string name{};
    std::function<void(submission&&)> on_drop{};
    std::function<void(std::exception_ptr)> on_error{};  // empty: report_to_stderr
    spread users = spread::one_place;                    // pools: one cache line per thread
  };
  using priority_order = detail::intake_store::by_priority::order;
  // With an order, the most urgent submission first; else FIFO.
  queued_executor(const char* type, intake_options o, std::optional<priority_order> order = {});
  ~queued_executor() = default;

  status accept(submission& f, const wait_limits* limits) override;

  // Called by the submitting thread after it added a submission, without a lock.
  virtual void arrived() noexcept {}
  // Called by the closing thread after the queue was closed, without a lock.
  virtual void intake_closed() noexcept {}
  // Called before a submission is run by its caller.
  virtual void ran_by_caller() noexcept {}

  // Runs a submission and reports its exception. Returns false if it threw.
  bool run_submission(submission& f) noexcept;
  // Submissions that threw.
  std::uint64_t failures() const noexcept { return failures_.load(relaxed); }

  // Runs a submission on this thread because the queue is full, and returns ok. The function may
  // submit another that finds the queue full, and so on; nested deeper than caller_nesting_max, it
  // returns full and does not move from `f`.
  status run_by_caller(submission& f);

  detail::intake intake_;

 private:
  class submit_op : private submission, public detail::intake::push_op {
   public:
    submit_op(queued_executor& on, submission&& f)
        : submission(std::move(f)), push_op(on.intake_, static_cast<submission&>(*this)), on_(on) {
      check(static_cast<bool>(static_cast<submission&>(*this)), "sluice::executor",
            "a function to run");
    }
    status result(status ended) {
      return on_.after_push(static_cast<submission&>(*this), push_op::result(ended));
    }

   private:
    queued_executor& on_;
  };

  // Called with the result of a push: notifies the derived class, or runs `f` here if the queue
  // was full and the policy is caller_runs.
  status after_push(submission& f, status pushed) {
    if (!pushed) [[unlikely]] return after_failed_push(f, pushed);
    arrived();
    return pushed;
  }
  status after_failed_push(submission& f, status pushed);
  std::function<void(submission&&)> guarded(std::function<void(submission&&)>&& on_drop);

  const std::function<void(std::exception_ptr)> on_error_;
  const bool caller_runs_;
  atomic<std::uint64_t> failures_{0};
};

}  // namespace sluice
