#pragma once

// Runs a task on an executor and returns a future of its result.
//
// Use it to start a task that may outlive the caller. Prefer `scope`, where none does, and
// `co_await` for a task whose result is needed here.
//
// Guarantees: the start of the task is a submission: `spawn` waits for capacity as `submit` does,
// without limits or within `limits`; `try_spawn` does not wait. From then on the task runs on that
// executor, even if the queue is full. Its stop_token is that of the future: `cancel` ends its
// waits, through any chain of stages; dropping the future does not. If it is cancelled before it
// begins, it does not run, and the future ends with future_error::cancelled; if later, the task
// decides the result. It does not inherit the token of the task that spawns it.
// When the future is ready, the frame of the task and its arguments are freed.
// If the executor does not run the task:
//   refused (full, closed, timed out, stopped)   future_error::rejected; try_spawn: the status
//   dropped by its policy, or destroyed unrun    future_error::broken_promise
// An executor must live until its tasks have ended, also tasks that never begin: its destructor
// checks that (executor.hpp). A failed task whose future was dropped is reported to the
// executor's `on_error` (docs/concepts/errors.md).
// Cost: two allocations beside the frame, three if the task's token is used.
//
//     future<int> n = spawn(pool, length(lines));
//     if (!n.get(1s)) n.cancel();
//     auto mail = spawn({pool, 9}, urgent());     // with a priority: see start_on.hpp

#include <utility>

#include "sluice/future/detail/spawned_task.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/task.hpp"

namespace sluice {

namespace detail {
template <class T>
future<T> spawn_as(executor_user user, start_on where, const wait_limits& limits, task<T> t) {
  auto* const running = new spawned_task<T>(where.on, std::move(t), user);
  future<T> result = running->get_future();
  (void)launch(where, *running, limits);
  return result;
}
}  // namespace detail

template <class T>
future<T> spawn(start_on where, const wait_limits& limits, task<T> t) {
  return detail::spawn_as(executor_user::task, where, limits, std::move(t));
}

template <class T>
future<T> spawn(start_on where, task<T> t) {
  return spawn(where, {}, std::move(t));
}

// Returns full or closed if the executor refuses the task, which is then destroyed.
template <class T>
outcome<future<T>> try_spawn(start_on where, task<T> t) {
  auto* const running =
      new detail::spawned_task<T>(where.on, std::move(t), executor_user::task);
  future<T> result = running->get_future();
  const status launched = detail::try_launch(where, *running);
  if (!launched && launched != status::dropped) return launched;
  return result;
}

}  // namespace sluice
