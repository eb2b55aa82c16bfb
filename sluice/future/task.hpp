#pragma once

// A coroutine that is written like a function and does not hold a thread while it waits.
//
// Use it for work with several waits. Prefer `future` for a result that another party produces, a
// plain function on an executor for work that never waits.
//
// A task is lazy: it does not run until it is awaited by another task, or passed to `spawn`, a
// `scope` or `sync_wait`. It awaits other tasks, futures, timers, and every `async_x` call of the
// library. It inherits from the awaiting task:
// - the executor: after a wait it resumes there. `co_await resume_on(other)` moves the rest of one
//   task; the awaiting task stays on its executor.
// - the stop_token: a wait without its own token uses the task's. So cancelling the outermost task
//   ends its current wait, however deep, with `stopped` (awaiting a future throws
//   future_error::cancelled). `co_await this_task::stop_token()` returns it, for long computations.
//
// Guarantees: T may be void, a reference, or move-only. An exception of the task is rethrown where
// it is awaited. Awaiting needs no stack: chains and loops of a million are fine, in every build.
// Between its waits a task runs on one thread at a time; its effects before a wait are visible
// after it. A task that is destroyed unawaited never ran; its frame and arguments are freed.
// Awaiting twice, or awaiting an empty task, is a broken contract.
// An awaitable from outside the library resumes the task on a thread of its choice: the task stays
// there until its next wait in the library, or until `co_await resume_on(executor)`.
// A task that waits for its own end, e.g. awaits the future it was spawned with, waits forever:
// unlike a cycle of futures, that is not detected.
// Limits: parameters taken by reference must outlive the task, as must the lambda object of a
// coroutine lambda. g++ 12 miscompiles a co_await in the condition of an if, while, for or switch
// if the coroutine has declared no variable before it. Such a task terminates the program when it
// is called, with a message that names it. Name the result first: const auto s = co_await x();
// Cost: one allocation per task, none per wait; ./bench future, workload task_pingpong.
//
//     task<int> length(channel<std::string>& in) {
//       auto line = co_await in.async_receive();
//       co_return line ? int(line->size()) : -1;
//     }
//     task<> twice(channel<std::string>& in) {
//       std::printf("%d %d\n", co_await length(in), co_await length(in));
//     }

#include <coroutine>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/task_promise.hpp"

namespace sluice {

namespace detail {
template <class T>
class task_root;

// Awaits a task with a stop token other than the awaiting coroutine's. The token must live until
// the task has ended.
template <class T>
auto await_with(task<T>&& t, const std::stop_token& token) noexcept;
}  // namespace detail

template <class T = void>
class [[nodiscard("it runs only when it is awaited")]] task {
 public:
  using value_type = T;
  using promise_type = detail::task_promise<T>;

  task() noexcept = default;
  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      destroy();
      frame_ = std::exchange(other.frame_, nullptr);
    }
    return *this;
  }
  ~task() { destroy(); }

  // Returns false if default-constructed, moved from, or awaited.
  bool valid() const noexcept { return frame_ != nullptr; }

  // Runs the task and returns its result. The awaiter frees the frame at the end of the expression.
  auto operator co_await() && noexcept { return awaiter(take()); }
  void operator co_await() & = delete;  // write co_await std::move(t): awaiting consumes it

 private:
  using frame = std::coroutine_handle<promise_type>;
  friend promise_type;
  friend class detail::task_root<T>;
  template <class U>
  friend auto detail::await_with(task<U>&& t, const std::stop_token& token) noexcept;

  explicit task(frame f) noexcept : frame_(f) {}

  frame take() noexcept {
    check(frame_ != nullptr, "sluice::task", "a task that has not been awaited yet");
    return std::exchange(frame_, nullptr);
  }
  void destroy() noexcept {
    if (frame_) frame_.destroy();
  }

  class awaiter final : private detail::task_link {
   public:
    explicit awaiter(frame f, const std::stop_token* instead = nullptr) noexcept : frame_(f) {
      stop = instead;
    }
    awaiter(const awaiter&) = delete;
    awaiter& operator=(const awaiter&) = delete;
    ~awaiter() { frame_.destroy(); }

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
      auto& outer = awaiting.promise();
      if constexpr (requires { outer.resume_sink(); }) sink = outer.resume_sink();
      if constexpr (requires { outer.stop_token(); }) {
        const std::stop_token& inherited = outer.stop_token();
        if (stop == nullptr) stop = &inherited;
      }
      if constexpr (requires { outer.outermost(); }) {
        root = outer.outermost();
      } else {
        root = awaiting.address();
      }
      detail::task_promise_base::set_awaiting(*this, awaiting);
      frame_.promise().begin(*this);
      return transfer_to(frame_, sink, sink);
    }
    T await_resume() { return std::move(frame_.promise().result).value(); }

   private:
    frame frame_;
  };

  frame frame_ = nullptr;
};

namespace detail {

template <class T>
auto await_with(task<T>&& t, const std::stop_token& token) noexcept {
  return typename task<T>::awaiter(t.take(), &token);
}

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace detail

}  // namespace sluice
