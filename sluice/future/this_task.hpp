#pragma once

// What a task can learn about itself and do with itself.
//
//     const std::stop_token stop = co_await this_task::stop_token();   // for what computes long
//     executor* const mine = co_await this_task::executor();
//     co_await this_task::yield();          // lets others run on this executor
//     co_await resume_on(disk_threads);     // the rest of this task runs there
//
// `resume_on` moves the task that awaits it and the tasks it awaits afterwards, not the one that
// awaits it. When the task runs there already, it goes on at once. The executor must outlive the
// task, which its destructor checks. Neither `resume_on` nor `yield` fails, or ends early when the
// task is asked to stop.
// Cost: no allocation; one post, none when there is nothing to do.

#include <coroutine>
#include <stop_token>

#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/task_promise.hpp"

namespace sluice {

namespace detail {

// Looks into the promise of whoever awaits it, and does not suspend.
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
    there_.post(*this);  // from here on the task may be running, and this gone
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

// The token that asks the awaiting task to stop. The reference holds as long as the task.
inline auto stop_token() noexcept { return detail::stop_token_query(); }
// The executor it runs on; null when it has none (or one that is only a work_sink).
inline auto executor() noexcept { return detail::executor_query(); }
// Goes to the back of its executor's queue. Without an executor: runs what waits to be run on
// this thread first.
inline auto yield() noexcept { return detail::yield_awaiter(); }

}  // namespace this_task

}  // namespace sluice
