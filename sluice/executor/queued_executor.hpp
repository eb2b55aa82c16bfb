#pragma once

// An executor with a bounded queue of submissions: what thread_pool, work_stealing_pool, strand and
// manual_executor share. It takes in; how and where things run is theirs.
//
// When full, as `overflow` says: block (the submitter waits, with deadline and stop, or awaits
// `async_submit`), reject, drop_newest, drop_oldest, latest, caller_runs (the submitting thread
// runs it before `submit` returns ok; an exception that leaves it is reported like any other; one
// that submits in turn, and so on, is run by its caller to a depth of 64, and then hears `full`).
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
  // co_await gives a status. The function is lost if it is not ok. The executor must outlive the
  // co_await, not only the function: the arrival is told when the coroutine has been resumed, and
  // the function may have run before that.
  auto async_submit(submission f, wait_limits limits = {}) {
    return awaitable<submit_op>(std::move(limits), *this, std::move(f));
  }

  static constexpr int caller_nesting_max = 64;

  std::string_view name() const noexcept override { return intake_.name(); }
  std::size_t capacity() const noexcept { return intake_.capacity(); }
  std::size_t queued() const noexcept { return intake_.queued(); }  // submissions not yet begun
  // How many wait for room right now.
  std::size_t waiting_to_submit() const noexcept { return intake_.waiting_to_push(); }

  // Stops intake: a later submit says closed. What is inside will still be run. False: it was
  // closed already.
  bool close() {
    const bool first = intake_.close();
    if (first) intake_closed();
    return first;
  }
  bool is_closed() const noexcept { return intake_.is_closed(); }

  // Calls `on_error`, if there is one.
  void report_error(const std::exception_ptr& error) noexcept override;

 protected:
  struct intake_options {
    std::size_t capacity = 0;
    sluice::overflow overflow = sluice::overflow::block;
    std::string name{};
    std::function<void(submission&&)> on_drop{};
    std::function<void(std::exception_ptr)> on_error{};  // empty: report_to_stderr
    spread users = spread::one_place;                    // pools: a line a thread
  };
  using priority_order = detail::intake_store::by_priority::order;
  // With an order, the most urgent first; else first come, first served.
  queued_executor(const char* type, intake_options o, std::optional<priority_order> order = {});
  ~queued_executor() = default;

  status accept(submission& f, const wait_limits* limits) override;

  // Called after a submission came in, by whoever brought it, without a lock.
  virtual void arrived() noexcept {}
  // Called after it was closed, by whoever closed it, without a lock.
  virtual void intake_closed() noexcept {}
  // Called before a submission is run by its caller.
  virtual void ran_by_caller() noexcept {}

  // Runs one, and reports what it throws. False: it threw.
  bool run_submission(submission& f) noexcept;
  // How many threw.
  std::uint64_t failures() const noexcept { return failures_.load(relaxed); }

  // Runs it on this thread, now, because there is no room: ok. A function that is run so may
  // submit another one that finds no room, and so on: nested deeper than caller_nesting_max, it is
  // `full` and stays with the caller.
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
      return on_.settle(static_cast<submission&>(*this), push_op::result(ended));
    }

   private:
    queued_executor& on_;
  };

  // What is left to do when the queue has answered: tell of the arrival, or run it here.
  status settle(submission& f, status how) {
    if (!how) [[unlikely]] return turned_away(f, how);
    arrived();
    return how;
  }
  status turned_away(submission& f, status how);
  std::function<void(submission&&)> guarded(std::function<void(submission&&)>&& on_drop);

  const std::function<void(std::exception_ptr)> on_error_;
  const bool caller_runs_;
  atomic<std::uint64_t> failures_{0};
};

}  // namespace sluice
