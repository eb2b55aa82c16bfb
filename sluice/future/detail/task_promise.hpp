#pragma once

// What the frame of a task holds beside its own variables: who awaits it, where it runs, which
// token asks it to stop, and its result.
//
// A task is awaited through a `task_link`, which lives with whoever awaits: in the frame of the
// awaiting coroutine, or in the object that runs the outermost task (`task_root`). Control goes
// from a task to the one that awaits it by symmetric transfer, unless the two run on different
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

// True when this thread's stack has grown far below the shallowest place it was seen at. A compiler
// that makes real tail calls never gets there; g++ makes none without optimization nor with
// sanitizers, and each transfer then leaves a frame behind. Not inline: a coroutine changes
// threads, and compilers keep the address of a thread_local across that.
bool stack_is_deep() noexcept;

// What a task without a token is given: nobody can ask it to stop.
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
  // Where the awaiting side runs (null: wherever the task ends), and the token it passes on.
  work_sink* sink = nullptr;
  const std::stop_token* stop = nullptr;
  const void* root = nullptr;  // of the outermost that awaits; null: this is its link

  const void* outermost() const noexcept { return root != nullptr ? root : this; }

  // The next coroutine to run, when this thread has nothing better to do than to go on with it.
  // From here on this link and the calling coroutine may be gone.
  std::coroutine_handle<> go_on(std::coroutine_handle<> with, work_sink* from,
                                work_sink* to) noexcept {
    if (from == to && !stack_is_deep()) [[likely]] return with;
    return go_on_there(with, to);
  }

  void run() noexcept override { next_.resume(); }

 protected:
  ~task_link() = default;

 private:
  friend class task_promise_base;
  std::coroutine_handle<> go_on_there(std::coroutine_handle<> with, work_sink* to) noexcept;

  std::coroutine_handle<> awaiting_;  // null: the outermost task, whose link is a task_root
  std::coroutine_handle<> next_;      // what `run` resumes
};

class task_promise_base {
 public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  auto final_suspend() const noexcept { return ending{}; }

  // Where this task is resumed when a wait of its own ends.
  work_sink* resume_sink() const noexcept { return sink_; }
  // It uses the executor from now until its end, or until it moves on.
  void move_to(executor& other) noexcept {
    other.begin_use(executor_user::task);
    leave_executor();
    sink_ = moved_to_ = &other;
  }
  const std::stop_token& stop_token() const noexcept { return *stop_; }
  // What whoever watches knows this coroutine by, together with those that await it.
  const void* outermost() const noexcept {
    return link_ != nullptr ? link_->outermost() : this;
  }

  // Called once, by whoever will wait for the end of this task, just before its first step.
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
    // One that awaits from nowhere in particular goes on where the task has ended.
    work_sink* const to = link.sink != nullptr ? link.sink : sink_;
    if (link.awaiting_) [[likely]] return link.go_on(link.awaiting_, sink_, to);
    if (to == sink_) {
      link.run();
    } else {
      post_to(to, link);
    }
    return std::noop_coroutine();
  }

  task_link* link_ = nullptr;  // null: not begun
  work_sink* sink_ = nullptr;
  executor* moved_to_ = nullptr;  // by resume_on; null: it runs where its awaiter does
  const std::stop_token* stop_ = &no_stop_token();
};

template <class T>
class task_promise final : public task_promise_base {
 public:
  settled<T> result{typename settled<T>::unset_t{}};

  task<T> get_return_object() noexcept;
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
  void unhandled_exception() noexcept { result.fail(std::current_exception()); }
  void return_void() noexcept {
    result.construct([] {});
  }
};

}  // namespace sluice::detail
