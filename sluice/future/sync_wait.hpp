#pragma once

// Runs a task to its end on the calling thread and returns its result: the bridge from ordinary
// code into coroutines, and the way to test them.
//
// Use it in `main`, in tests, in a thread of your own. Prefer `spawn` to run a task on an executor,
// `co_await` inside another task: a thread that waits here does nothing else.
//
// Guarantees: the task runs on an executor of its own, which is this thread. Every step runs and
// ends here, except steps that `resume_on` or an awaitable from outside the library moves to other
// threads. While the task sleeps it uses no CPU. An exception of the task is rethrown here.
// With limits, sync_wait also returns how the wait ended, and leaves nothing behind: at the
// deadline or when the token is requested, it requests the task's token (the task's waits end with
// `stopped`), runs the task to its end, frees it, and returns `timed_out` or `stopped`. The task's
// value is then dropped; an exception other than future_error::cancelled is rethrown. A task that
// ignores its stop_token is waited for as long as it takes. If the token is requested already, the
// task is not begun. If the deadline has passed already, the task still runs until its first wait.
// Limits: tasks that the task spawns on its own executor (`this_task::executor()`) must end before
// it does: start them in a `scope`. That executor accepts 1024 pending submissions, then returns
// `full`.
// Cost: no allocation without a deadline, two with one.
//
//     int n = sync_wait(length(lines));
//     outcome<int> soon = sync_wait(length(lines), deadline::after(1s));

#include <stop_token>
#include <utility>

#include "sluice/base/outcome.hpp"
#include "sluice/future/detail/linked_stop.hpp"
#include "sluice/future/detail/run_loop.hpp"
#include "sluice/future/detail/task_root.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice {

namespace detail {

template <class T>
class waited_task final : public task_root<T> {
 public:
  explicit waited_task(task<T>&& t) : task_root<T>(std::move(t)) {}

  T wait(const call_site& at) {
    begin(nullptr, at);
    run_to_end(at);
    return this->take_result();
  }

  limited_result_t<T> wait(const wait_limits& limits) {
    if (limits.stop.stop_requested()) return status(status::stopped);
    if (limits.deadline.is_never()) {
      begin(&limits.stop, limits.at);
      run_to_end(limits.at);
      return this->take_limited(limits.stop.stop_requested() ? status::stopped : status::ok);
    }
    limited_stop limit(limits, {});
    begin(&limit.token(), limits.at);
    while (!ended_ && loop_.try_run_next()) {
    }
    if (!ended_) limit.waits_now();
    run_to_end(limits.at);
    return this->take_limited(limit.ended());
  }

 private:
  void begin(const std::stop_token* token, const call_site& at) noexcept {
    if (wait_report::is_on()) [[unlikely]] {
      wait_report::took({.object = &loop_,
                         .type = "sluice::sync_wait",
                         .mode = wait_report::held_as::running,
                         .by = wait_report::party::coroutine(this->outermost()),
                         .at = at});
    }
    this->set_context(&loop_, token);
    this->begin_posted();
  }
  void run_to_end(const call_site& at) {
    while (!ended_) (void)loop_.run_next(at);
  }
  void ended() noexcept override { ended_ = true; }

  run_loop loop_;
  bool ended_ = false;  // set on this thread: the task ends on loop_
};

template <class T>
void check_unused(const task<T>& t, const call_site& at) noexcept {
  check(t.valid(), "sluice::task", "a task that has not been awaited yet", at);
}

}  // namespace detail

template <class T>
T sync_wait(task<T> t, call_site at = {}) {
  detail::check_unused(t, at);
  return detail::waited_task<T>(std::move(t)).wait(at);
}
template <class T>
detail::limited_result_t<T> sync_wait(task<T> t, const wait_limits& limits) {
  detail::check_unused(t, limits.at);
  return detail::waited_task<T>(std::move(t)).wait(limits);
}

}  // namespace sluice
