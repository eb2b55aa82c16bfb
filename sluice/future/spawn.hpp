#pragma once

// Runs a task on an executor by itself, and gives a future of its result.
//
// Use it to start something that may outlive the one who starts it. Prefer `scope`, where nothing
// does, and `co_await` for a task whose result is wanted right here.
//
// Guarantees: the beginning of the task is a submission: `spawn` waits for room as `submit` does,
// `spawn_within` for as long as the limits allow, `try_spawn` not at all. From then on the task
// runs on that executor, whatever else is in its queue. Its stop_token is that of the future:
// `cancel` reaches it, and so its waits, through any chain of stages; dropping the future does
// not. Cancelled before it began, it does not run, and the future ends with
// future_error::cancelled; later, with what the task makes of it. It does not hear the token of
// the task that spawns it.
// When the future is ready, the frame of the task and its arguments are freed.
// When the executor does not run it:
//   refused (full, closed, timed out, stopped)   future_error::rejected; try_spawn: the status
//   dropped by its policy, or destroyed unrun    future_error::broken_promise
// An executor must live until its tasks have ended, also tasks that never begin: its destructor
// checks that (executor.hpp). A failed task whose future was dropped is reported to the
// executor's `on_error` (docs/concepts/errors.md).
// Cost: two allocations beside the frame, three when the task has its token asked for.
//
//     future<int> n = spawn(pool, length(lines));
//     if (!n.try_get_for(1s)) n.cancel();
//     spawn({pool, 9}, urgent());                 // with a priority: see start_on.hpp

#include <utility>

#include "sluice/future/detail/spawned_task.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/task.hpp"

namespace sluice {

namespace detail {
template <class T>
future<T> spawn_as(executor_user what, start_on where, const wait_limits& limits, task<T> t) {
  auto* const running = new spawned_task<T>(where.on, std::move(t), what);
  future<T> result = running->get_future();
  (void)launch(where, *running, limits);
  return result;
}
}  // namespace detail

template <class T>
future<T> spawn_within(start_on where, const wait_limits& limits, task<T> t) {
  return detail::spawn_as(executor_user::task, where, limits, std::move(t));
}

template <class T>
future<T> spawn(start_on where, task<T> t) {
  return spawn_within(where, {}, std::move(t));
}

// The status says why it was refused: full or closed. Then the task is gone.
template <class T>
outcome<future<T>> try_spawn(start_on where, task<T> t) {
  auto* const running =
      new detail::spawned_task<T>(where.on, std::move(t), executor_user::task);
  future<T> result = running->get_future();
  const status how = detail::try_launch(where, *running);
  if (!how && how != status::dropped) return how;
  return result;
}

}  // namespace sluice
