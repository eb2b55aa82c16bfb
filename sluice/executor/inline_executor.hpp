#pragma once

// Runs work immediately on the calling thread: for callers that want no other thread, and as the
// executor of a test that needs no concurrency.
//
// Guarantees: `submit` returns ok after the function has returned; an exception of the function is
// reported as by every executor. A post made while other work runs on this thread runs after that
// work, so a chain of posts needs no stack. It has no state, no bound and is never closed. Inside a
// post, `current()` is the inline executor that was posted to; if posts to several are pending on
// this thread, it is one of them.
// Prefer `manual_executor` where a test must decide when work runs.
//
//     inline_executor here;
//     auto answer = async(here, [] { return 42; });

#include "sluice/executor/executor.hpp"

namespace sluice {

class inline_executor final : public executor {
 public:
  inline_executor() = default;
  ~inline_executor() { end("sluice::inline_executor"); }

  void post(work& item) noexcept override;
  std::string_view name() const noexcept override { return "inline"; }

 private:
  class turns;  // the pending posts of a thread
  status accept(submission& f, const wait_limits* limits) override;
};

}  // namespace sluice
