#pragma once

// For whoever watches: whose step the calling thread is in, so that a task which blocks its thread
// is known to wait.
//
// For writers of coroutine types: make one around the first step of a task that others wait for.
//
// Guarantees: a wait in which the thread sleeps meanwhile is put down to the task, and holds up the
// thread. What the thread takes and uses stays its own: a task may end on another one.
//
//     const watch::task_step here(watch::party::coroutine(frame));
//     handle.resume();

#include "sluice/sync/watch.hpp"

namespace sluice::watch {

class task_step {
 public:
  explicit task_step(party task) noexcept;  // nobody: of no task
  task_step(const task_step&) = delete;
  task_step& operator=(const task_step&) = delete;
  ~task_step();

 private:
  const party before_;
};

}  // namespace sluice::watch
