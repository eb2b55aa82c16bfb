#pragma once

// The promise of a task: the awaiting side, the executor, the stop token, and the result.
//
// A task is awaited through a `task_link`, which is part of the awaiting side: of the frame of the
// awaiting coroutine, or of the object that runs the outermost task (`task_root`). Control returns
// from a task to the awaiting coroutine by symmetric transfer, unless the two run on different
// executors or the stack has grown: then the link, which is a piece of `work`, is posted.

#include <coroutine>
#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/settled.hpp"

namespace sluice {
template <class T>
class task;
}

namespace sluice::detail {

// Returns true if this thread's stack is far deeper than at the shallowest call so far. That never
// happens if the compiler makes real tail calls; g++ makes none without optimization or with
// sanitizers, and each transfer then leaves a frame on the stack. Not inline: a coroutine changes
// threads, and compilers keep the address of a thread_local across that.
bool stack_is_deep() noexcept;

// The token of a task without one: it cannot be requested.
const std::stop_token& no_stop_token() noexcept;

inline void post_to(work_sink* where, work& item) noexcept {
  if (where != nullptr) {
    where->post(item);
  } else {
    run_here(item);
  }
}

class task_link : public work {
 public:
  // The executor of the awaiting side (null: the one on which the task ends) and the token that the
  // task inherits.
  work_sink* sink = nullptr;
  const std::stop_token* stop = nullptr;
  const void* root = nullptr;  // the link of the outermost awaiting task; null: this is that link

  const void* outermost() const noexcept { return root != nullptr ? root : this; }

  // Returns the coroutine for a symmetric transfer: `next`, or a no-op if `next` was posted to
  // `target`. After the call this link and the calling coroutine may be destroyed.
  std::coroutine_handle<> transfer_to(std::coroutine_handle<> next, work_sink* from,
                                      work_sink* target) noexcept {
    if (from == target && !stack_is_deep()) [[likely]] return next;
    return post_next(next, target);
  }

  void run() noexcept override { next_.resume(); }

 protected:
  ~task_link() = default;

 private:
  friend class task_promise_base;
  std::coroutine_handle<> post_next(std::coroutine_handle<> next, work_sink* target) noexcept;

  std::coroutine_handle<> awaiting_;  // null: the outermost task, whose link is a task_root
  std::coroutine_handle<> next_;      // resumed by `run`
};

// Terminates the program: the compiler has laid out the frame of this task wrongly.
[[noreturn]] void task_is_miscompiled(const call_site& at) noexcept;

// The suspension before the first step of a task. g++ 12 puts the result of a co_await that is the
// condition of an if, a loop or a switch in front of the frame's header if the coroutine has no
// variable before it. A handle made from the promise then points beside the frame, and resuming it
// would repeat this suspension instead of the first step, or crash. The handle made by the compiler
// points to the frame, so the two differ.
template <class Promise>
class task_beginning {
 public:
  explicit task_beginning(const Promise& of) noexcept : promise_(&of) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<Promise> frame, call_site at = {}) const noexcept {
    if (&frame.promise() != promise_) [[unlikely]] task_is_miscompiled(at);
  }
  void await_resume() const noexcept {}

 private:
  const Promise* promise_;
};

class task_promise_base {
 public:
  auto final_suspend() const noexcept { return ending{}; }

  // The executor on which this task resumes after a wait.
  work_sink* resume_sink() const noexcept { return sink_; }
  // Counts the task as a user of the executor until it ends or moves again.
  void move_to(executor& other) noexcept {
    other.begin_use(executor_user::task);
    leave_executor();
    sink_ = moved_to_ = &other;
  }
  const std::stop_token& stop_token() const noexcept { return *stop_; }
  // The id in wait reports of this coroutine and the coroutines that await it.
  const void* outermost() const noexcept {
    return link_ != nullptr ? link_->outermost() : this;
  }

  // Called once by the awaiting side, just before the first step.
  void begin(task_link& link) noexcept {
    link_ = &link;
    sink_ = link.sink;
    if (link.stop != nullptr) stop_ = link.stop;
  }
  static void set_awaiting(task_link& link, std::coroutine_handle<> awaiting) noexcept {
    link.awaiting_ = awaiting;
  }

 private:
  struct ending {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      return ended.promise().end();
    }
    void await_resume() const noexcept {}
  };

  void leave_executor() noexcept {
    if (moved_to_ != nullptr) [[unlikely]] moved_to_->end_use(executor_user::task);
  }
  std::coroutine_handle<> end() noexcept {
    leave_executor();
    task_link& link = *link_;
    // An awaiting side without an executor resumes on that of the ended task.
    work_sink* const target = link.sink != nullptr ? link.sink : sink_;
    if (link.awaiting_) [[likely]] return link.transfer_to(link.awaiting_, sink_, target);
    if (target == sink_) {
      link.run();
    } else {
      post_to(target, link);
    }
    return std::noop_coroutine();
  }

  task_link* link_ = nullptr;  // null: not begun
  work_sink* sink_ = nullptr;
  executor* moved_to_ = nullptr;  // by resume_on; null: it runs on the executor of its awaiter
  const std::stop_token* stop_ = &no_stop_token();
};

template <class T>
class task_promise final : public task_promise_base {
 public:
  settled<T> result{typename settled<T>::unset_t{}};

  task<T> get_return_object() noexcept;
  task_beginning<task_promise> initial_suspend() const noexcept {
    return task_beginning<task_promise>(*this);
  }
  void unhandled_exception() noexcept { result.fail(std::current_exception()); }

  template <class U = T>
    requires(!std::is_reference_v<T> && std::is_constructible_v<T, U &&>)
  void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
    result.construct([&] { return T(std::forward<U>(value)); });
  }
  void return_value(T value) noexcept
    requires std::is_reference_v<T>
  {
    result.construct([&]() -> T { return value; });
  }
};

template <>
class task_promise<void> final : public task_promise_base {
 public:
  settled<void> result{settled<void>::unset_t{}};

  task<void> get_return_object() noexcept;
  task_beginning<task_promise> initial_suspend() const noexcept {
    return task_beginning<task_promise>(*this);
  }
  void unhandled_exception() noexcept { result.fail(std::current_exception()); }
  void return_void() noexcept {
    result.construct([] {});
  }
};

}  // namespace sluice::detail
