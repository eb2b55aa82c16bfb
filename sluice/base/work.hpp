#pragma once

// A piece of work that is ready to run, and the place that runs it: what lets a suspended
// coroutine be resumed on its own executor without allocating.
//
// `work` is embedded in whatever waits. A `work_sink` is anything that can run it: an executor, a
// test's list. A coroutine whose promise has `work_sink* resume_sink()` is resumed there; any
// other is resumed by `run_here`, on the thread that ended its wait.
//
// Guarantees: `post` never fails and never blocks on a user's bound, because a resumption is not
// the user's item. `run_here` never nests: work that becomes ready while other work runs on this
// thread is run after it, so a chain of a million hand-overs needs no stack. For the same reason a
// coroutine that runs here must not block for one that is ready to run behind it on this thread.

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

// While it lives, `run_here` on this thread only queues; the outermost one runs what was queued at
// its end. For waking several parties before any of them runs.
class run_scope {
 public:
  run_scope() noexcept;
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  ~run_scope();

 private:
  const bool outermost_;
};

// While it lives, `run_here` on this thread posts to the sink instead. For a thread that wakes
// others while it holds something that must not wait behind them.
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
