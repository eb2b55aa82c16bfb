#pragma once

// Runs work somewhere else, or later: the one interface that futures, coroutines, actors and
// streams run on.
//
// Take an `executor&` where the caller should decide which threads do the work. The executors of
// the library: `thread_pool` (threads around one bounded queue), `work_stealing_pool` (fork-join
// and many small pieces), `strand` (one at a time, on any executor), `inline_executor` (here, now),
// `manual_executor` (when a test says so).
//
// Two kinds of work, never mixed:
// - A **submission** is the user's function. It counts against the executor's bound; when that is
//   reached the executor does what its policy says, and the submitter hears it: ok, full, dropped,
//   closed (after shutdown), timed out, stopped. What was not accepted is still with the caller
//   when it was handed in as an lvalue. An exception that leaves it is reported by the executor
//   and ends nothing else.
// - A **post** is a resumption or another step of work that was accepted before. It is always
//   accepted, allocates nothing and never waits, or else work under way could not end. After an
//   executor has ended, a post is run by the thread that makes it.
//
// An executor must outlive its users: spawned tasks, scopes, pending stages of futures, strands,
// actor systems, and the like (docs/concepts/lifetimes.md). Its destructor runs all work inside,
// then checks that: a remaining user is a broken contract, in every build, that names the executor.
//
// Guarantees: any thread may call anything. What happened before a submit or post is seen by the
// function. Whether order is kept is said by each executor.
// To write your own, override `post`; submissions are then allocated and posted, without a bound.
//
//     void handle(request r, executor& background) {
//       if (auto s = background.try_submit([r] { index(r); }); !s) reply(503, to_string(s));
//     }

#include <chrono>
#include <exception>
#include <stop_token>
#include <string_view>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/detail/error_route.hpp"
#include "sluice/executor/detail/executor_users.hpp"
#include "sluice/executor/submission.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {

class executor : public work_sink {
 public:
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  // Waits for room, as the policy says.
  status submit(submission f) { return submit_within(f, {}); }
  status submit(submission f, std::stop_token stop) { return submit_within(f, std::move(stop)); }
  // Never waits.
  status try_submit(submission f) { return try_submit_ref(f); }
  template <class Rep, class Period>
  status try_submit_for(submission f, std::chrono::duration<Rep, Period> wait,
                        std::stop_token stop = {}) {
    return submit_within(f, {deadline::after(wait), std::move(stop)});
  }
  template <class Clock, class Duration>
  status try_submit_until(submission f, std::chrono::time_point<Clock, Duration> when,
                          std::stop_token stop = {}) {
    return submit_within(f, {deadline::at(when), std::move(stop)});
  }
  // The general forms. They move from `f` only when the answer is ok or dropped.
  status submit_within(submission& f, const wait_limits& limits) { return accept(f, &limits); }
  status try_submit_ref(submission& f) { return accept(f, nullptr); }

  // For messages; empty when it has none.
  virtual std::string_view name() const noexcept { return {}; }

  // The executor whose work the calling thread is running, or null.
  static executor* current() noexcept;

  // Reports an exception without an addressee. By default, writes to standard error.
  virtual void report_error(const std::exception_ptr& error) noexcept;

  // For the library. Counts a user of this executor, from its construction to its end.
  void begin_use(executor_user kind) noexcept { users_.add(kind); }
  void end_use(executor_user kind) noexcept { users_.remove(kind); }
  // For the library. The way to `report_error` for a caller that may outlive this executor.
  detail::error_route_ref errors() noexcept;

 protected:
  using spread = detail::executor_users::spread;
  explicit executor(spread users = spread::one_place) : users_(users) {}
  ~executor() { end("sluice::executor"); }

  // Called by the destructor of a derived class when all work inside has run. Checks that no users
  // remain, and ends reports through `errors`.
  void end(const char* type) noexcept;

  // Takes a submission, waiting for room within the limits (null: without waiting).
  virtual status accept(submission& f, const wait_limits* limits);

  // Marks the calling thread as running this executor's work, as long as it lives.
  class running {
   public:
    explicit running(executor& here) noexcept;
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running();

   private:
    executor* const before_;
  };

 private:
  detail::executor_users users_;
  atomic<detail::error_route*> errors_{nullptr};  // made when it is first asked for
};

// A user of an executor (null: of none), for as long as this lives.
class executor_use {
 public:
  executor_use(executor* of, executor_user kind) noexcept : of_(of), kind_(kind) {
    if (of != nullptr) of->begin_use(kind);
  }
  executor_use(const executor_use&) = delete;
  executor_use& operator=(const executor_use&) = delete;
  ~executor_use() {
    if (of_ != nullptr) of_->end_use(kind_);
  }

 private:
  executor* const of_;
  const executor_user kind_;
};

// What an executor does with an exception that left a submission, when the user gave it nothing
// else: says so on standard error, with the executor's name and what the exception says.
void report_to_stderr(std::string_view executor_name, const std::exception_ptr& error) noexcept;

}  // namespace sluice
