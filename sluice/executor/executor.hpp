#pragma once

// Runs functions on other threads or at a later time: the interface that futures, coroutines,
// actors and streams run on.
//
// Use it: take an `executor&` where the caller should choose the threads. The library's executors
// are `thread_pool` (threads around one bounded queue), `work_stealing_pool` (fork-join and many
// small pieces), `strand` (one function at a time, on any executor), `inline_executor` (on the
// submitting thread) and `manual_executor` (when a test calls it).
//
// Two kinds of work:
// - A **submission** is a user's function. It counts against the executor's capacity; at capacity
//   the overflow policy decides, and the submitter gets the result: ok, full, dropped, closed
//   (after shutdown), timed_out, stopped. `submit(std::move(f))` moves from `f` only if it returns
//   ok or dropped. An exception that leaves the function is reported by the executor and has no
//   other effect.
// - A **post** is a resumption or another step of work that was accepted before. It is always
//   accepted, allocates nothing and never waits; otherwise work in progress could not finish.
//   After an executor has ended, the posting thread runs the post.
//
// An executor must outlive its users: spawned tasks, scopes, pending stages of futures, strands,
// actor systems, and the like (docs/concepts/lifetimes.md). Its destructor runs all work inside,
// then checks that; a remaining user is a broken contract in every build, reported by kind.
//
// Guarantees: any thread may call anything. A submit or post happens-before its function. Each
// executor documents its order.
// To write your own, override `post`; submissions are then allocated and posted, without a bound.
//
//     void handle(request r, executor& background) {
//       if (auto s = background.try_submit([r] { index(r); }); !s) reply(503, to_string(s));
//     }

#include <exception>
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

  // Waits for capacity if the policy is `block`. Moves from `f` only if it returns ok or dropped.
  status submit(submission&& f, const wait_limits& limits = {}) { return accept(f, &limits); }
  // The same without waiting.
  status try_submit(submission&& f) { return accept(f, nullptr); }

  // For messages. May be empty.
  virtual std::string_view name() const noexcept { return {}; }

  // Returns the executor whose work the calling thread is running, or null.
  static executor* current() noexcept;

  // Reports an exception that no caller receives. By default, writes it to standard error.
  virtual void report_error(const std::exception_ptr& error) noexcept;

  // For the library: count a user of this executor, from its construction to its end.
  void begin_use(executor_user kind) noexcept { users_.add(kind); }
  void end_use(executor_user kind) noexcept { users_.remove(kind); }
  // For the library: calls `report_error`, also for a caller that may outlive this executor.
  detail::error_route_ref errors() noexcept;

 protected:
  using spread = detail::executor_users::spread;
  explicit executor(spread users = spread::one_place) : users_(users) {}
  ~executor() { end("sluice::executor"); }

  // Called by the destructor of a derived class after all work inside has run. Checks that no users
  // remain, and ends reports through `errors`.
  void end(const char* type) noexcept;

  // Accepts a submission. Waits for capacity within the limits; null means without waiting.
  virtual status accept(submission& f, const wait_limits* limits);

  // While it exists, `current()` on the calling thread is this executor.
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
  atomic<detail::error_route*> errors_{nullptr};  // created by the first call of `errors`
};

// Counts a user of an executor while this object exists. Null: counts nothing.
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

// Writes an exception of a submission to standard error, with the executor's name. The default of
// an executor without `on_error`.
void report_to_stderr(std::string_view executor_name, const std::exception_ptr& error) noexcept;

}  // namespace sluice
