#pragma once

// Runs a task to its end on the calling thread, and waits for it: the way from ordinary code into
// coroutines, and the way to test them.
//
// Use it in `main`, in tests, in a thread of your own. Prefer `spawn` to run a task on an executor,
// `co_await` inside another task: a thread that waits here does nothing else.
//
// Guarantees: the task runs on an executor of its own, which is this thread. Every step of it runs
// here, except what `resume_on` or an awaitable from outside the library takes elsewhere, and it
// ends here. Asleep it costs no CPU. What the task throws is thrown here.
// With limits it says how the wait ended, and nothing is left behind: at the deadline, or when the
// token asks, the task is asked to stop (its waits end with `stopped`), `sync_wait` goes on until
// it has ended, frees it, and says `timed_out` or `stopped`, whatever the task ended with; only an
// exception other than future_error::cancelled is thrown all the same. A task that does not listen
// to its stop_token is waited for as long as it takes. A token that has asked already wins: the
// task is not begun. A deadline that has passed already still lets the task run as far as it gets
// without waiting.
// Limits: what the task spawns on its own executor (`this_task::executor()`) has to end before it
// does: give it to a `scope`. That executor takes 1024 submissions at a time, then says `full`.
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
      return this->take_within(limits.stop.stop_requested() ? status::stopped : status::ok);
    }
    limited_stop asked(limits, {});
    begin(&asked.token(), limits.at);
    while (!ended_ && loop_.try_run_next()) {
    }
    if (!ended_) asked.waits_now();
    run_to_end(limits.at);
    return this->take_within(asked.ended());
  }

 private:
  void begin(const std::stop_token* token, const call_site& at) noexcept {
    if (watch::is_on()) [[unlikely]] {
      watch::took({.object = &loop_,
                   .type = "sluice::sync_wait",
                   .how = watch::held_as::running,
                   .by = watch::party::coroutine(this->outermost()),
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
