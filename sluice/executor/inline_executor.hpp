#pragma once

// Runs work at once, on the thread that brings it: for callers that want no other thread, and as
// the executor of a test that needs no concurrency.
//
// Guarantees: `submit` returns when the function has ended, and says ok; what the function throws
// is reported as every executor does. A post made while other work runs on this thread runs after
// it, so a chain of posts needs no stack. It has no state, no bound and is never closed, so all of
// them are alike: inside a post, `current()` is an inline executor that was posted to, if several
// were, one of them.
// Prefer `manual_executor` where a test must decide when things run.
//
//     inline_executor here;
//     async(here, [] { return 42; });

#include "sluice/executor/executor.hpp"

namespace sluice {

class inline_executor final : public executor {
 public:
  inline_executor() = default;
  ~inline_executor() { end("sluice::inline_executor"); }

  void post(work& item) noexcept override;
  std::string_view name() const noexcept override { return "inline"; }

 private:
  class turns;  // a thread's posts that wait for the work before them
  status accept(submission& f, const wait_limits* limits) override;
};

}  // namespace sluice
