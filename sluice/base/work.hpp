#pragma once

// An intrusive piece of work that is ready to run, and the interface of its executor: a suspended
// coroutine is resumed on its own executor without allocating.
//
// `work` is a member of the waiting object. A `work_sink` runs it: an executor, or a list in a
// test. A coroutine whose promise has `work_sink* resume_sink()` is resumed there; any other is
// resumed by `run_here`, on the thread that ended its wait.
//
// Guarantees: `post` never fails and never waits for capacity: a resumption does not count against
// an executor's bound. `run_here` never nests: work that becomes ready while other work runs on
// this thread is run after it, so a chain of a million hand-overs needs no stack. Therefore a
// coroutine that runs here must not block until other work that is queued on this thread has run.

#include "sluice/base/intrusive_list.hpp"

namespace sluice {

class work : public list_hook {
 public:
  virtual void run() noexcept = 0;

 protected:
  ~work() = default;
};

class work_sink {
 public:
  virtual void post(work& item) noexcept = 0;

 protected:
  ~work_sink() = default;
};

void run_here(work& item) noexcept;

// During its life, `run_here` on this thread only queues; the destructor of the outermost scope
// runs the queued work. For waking several parties before any of them runs.
class run_scope {
 public:
  run_scope() noexcept;
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  ~run_scope();

 private:
  const bool outermost_;
};

// During its life, `run_here` on this thread posts to the sink instead of running. For a thread
// that wakes others but must continue its own work before they run.
class run_elsewhere {
 public:
  explicit run_elsewhere(work_sink& sink) noexcept;
  run_elsewhere(const run_elsewhere&) = delete;
  run_elsewhere& operator=(const run_elsewhere&) = delete;
  ~run_elsewhere();

 private:
  work_sink* const before_;
};

}  // namespace sluice
