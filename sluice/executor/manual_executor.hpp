#pragma once

// Runs work when it is called to, on the calling thread: a test steps through work and checks every
// state in between.
//
// Use it in tests, and to run work on a thread that has its own loop (a user interface, a game).
//
// Guarantees: any thread may submit, post and run. FIFO; posts and submissions alternate while both
// wait. `run_one` runs one on this thread and returns false if there was none. When the queue is
// full, `overflow` decides. After `close`, submissions are refused and the remaining work can
// still be run. The destructor runs the remaining posts, because coroutines wait for them, and
// destroys the remaining submissions without running them.
//
//     manual_executor later;
//     auto f = async(later, [] { return 42; });
//     later.run_all();

#include <cstddef>
#include <functional>
#include <string>

#include "sluice/executor/queued_executor.hpp"

namespace sluice {

struct manual_executor_options {
  std::size_t capacity = 1024;
  sluice::overflow overflow = sluice::overflow::reject;
  std::string name = "manual";
  std::function<void(submission&&)> on_drop{};
  std::function<void(std::exception_ptr)> on_error{};
};

class manual_executor final : public queued_executor {
 public:
  using options = manual_executor_options;

  explicit manual_executor(options o = {});
  ~manual_executor();

  void post(work& item) noexcept override;

  bool run_one();
  // Runs until the queue is empty, including work added meanwhile. Returns the number run.
  std::size_t run_all();
  // Runs at most `max`. Returns the number run.
  std::size_t run_some(std::size_t max);
  // Waits for work and runs one piece. Returns closed if it is closed and empty.
  status run_next(const wait_limits& limits = {});

  // Submissions and posts in the queue.
  std::size_t pending() const noexcept { return intake_.pending(); }

 private:
  void run(submission& f);
};

}  // namespace sluice
