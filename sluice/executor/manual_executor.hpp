#pragma once

// Runs work when it is told to, on the thread that tells it: a test steps through what would
// otherwise happen by itself, and looks at every state in between.
//
// Use it in tests, and to run work on a thread that has its own loop (a user interface, a game).
//
// Guarantees: any thread may submit, post and run; first come, first served, posts and submissions
// in turn when both wait. `run_one` runs one, on this thread, and says whether there was any.
// When full, as `overflow` says. After `close` submissions are refused and the rest can be run.
// At its destruction posts that are left are run (somebody's coroutine waits for them);
// submissions that are left are destroyed unrun.
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
  // Runs until nothing is left, also what is added meanwhile. Returns how many.
  std::size_t run_all();
  // Runs at most so many.
  std::size_t run_some(std::size_t max);
  // Waits for something to run, and runs it. closed: there will be nothing more.
  status run_next(const wait_limits& limits = {});

  // Submissions and posts that could be run now.
  std::size_t pending() const noexcept { return intake_.pending(); }

 private:
  void run(submission& f);
};

}  // namespace sluice
