#pragma once

// Queries and actions of the current task.
//
//     const std::stop_token stop = co_await this_task::stop_token();   // for long computations
//     executor* const here = co_await this_task::executor();
//     co_await this_task::yield();          // other work of this executor runs first
//     co_await resume_on(disk_threads);     // the rest of this task runs there
//
// `resume_on` moves the task that calls it and the tasks that it awaits afterwards, not the task
// that awaits it. If the task runs on that executor already, it continues immediately. The executor
// must outlive the task; its destructor checks that. `resume_on` and `yield` cannot fail, and do
// not end early if the task's token is requested.
// Cost: no allocation; one post, or none if the task stays where it is.

#include <coroutine>
#include <stop_token>

#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/task_promise.hpp"

namespace sluice {

namespace detail {

// Reads the promise of the awaiting coroutine, without suspending.
class stop_token_query {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> asking) noexcept {
    found_ = &asking.promise().stop_token();
    return false;
  }
  const std::stop_token& await_resume() const noexcept { return *found_; }

 private:
  const std::stop_token* found_ = nullptr;
};

class sink_query {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> asking) noexcept {
    found_ = asking.promise().resume_sink();
    return false;
  }
  work_sink* await_resume() const noexcept { return found_; }

 private:
  work_sink* found_ = nullptr;
};

class executor_query : public sink_query {
 public:
  executor* await_resume() const noexcept {
    return dynamic_cast<executor*>(sink_query::await_resume());
  }
};

class [[nodiscard("co_await it")]] resume_on_awaiter final : private work {
 public:
  explicit resume_on_awaiter(executor& there) noexcept : there_(there) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> moving) noexcept {
    moving.promise().move_to(there_);
    if (executor::current() == &there_) return false;
    moving_ = moving;
    there_.post(*this);  // after this the task may run, and this object be destroyed
    return true;
  }
  void await_resume() const noexcept {}

 private:
  void run() noexcept override { moving_.resume(); }

  executor& there_;
  std::coroutine_handle<> moving_;
};

class [[nodiscard("co_await it")]] yield_awaiter final : private work {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> yielding) noexcept {
    yielding_ = yielding;
    post_to(yielding.promise().resume_sink(), *this);
  }
  void await_resume() const noexcept {}

 private:
  void run() noexcept override { yielding_.resume(); }

  std::coroutine_handle<> yielding_;
};

}  // namespace detail

inline auto resume_on(executor& there) noexcept { return detail::resume_on_awaiter(there); }

namespace this_task {

// co_await returns the stop token of the task. The reference is valid as long as the task.
inline auto stop_token() noexcept { return detail::stop_token_query(); }
// co_await returns the executor of the task; null if it has none, or only a work_sink.
inline auto executor() noexcept { return detail::executor_query(); }
// Moves the task to the back of its executor's queue. Without an executor: behind the work that is
// ready to run on this thread.
inline auto yield() noexcept { return detail::yield_awaiter(); }

}  // namespace this_task

}  // namespace sluice
