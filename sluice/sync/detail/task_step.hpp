#pragma once

// Reports that the calling thread runs a step of a task, so that a task that blocks its thread is
// known to wait.
//
// For writers of coroutine types: create one around the first step of a task that others wait for.
//
// Guarantees: a wait in which the thread sleeps meanwhile is attributed to the task, and blocks the
// thread. Locks and ends that the thread uses stay its own: a task may end on another thread.
//
//     const wait_report::task_step here(wait_report::party::coroutine(frame));
//     handle.resume();

#include "sluice/sync/detail/wait_report.hpp"

namespace sluice::wait_report {

class task_step {
 public:
  explicit task_step(party task) noexcept;  // none: not in a task
  task_step(const task_step&) = delete;
  task_step& operator=(const task_step&) = delete;
  ~task_step();

 private:
  const party before_;
};

}  // namespace sluice::wait_report
