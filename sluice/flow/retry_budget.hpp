#pragma once

// Keeps retries from making an outage worse: all who share it may together retry only so large a
// share of their calls.
//
// Use one for each thing that is called, shared by all its callers, in `retry_policy::budget`.
//
// Guarantees: any thread may call anything. Never more than reserve + ratio * calls retries are
// allowed, whatever fails. What was not used is saved up to `saved_max`. Nothing waits.
// Cost: lock-free; two words.
//
//     retry_budget shared({.ratio = 0.1});        // one retry for ten calls

#include <cstdint>

#include "sluice/base/atomic.hpp"

namespace sluice {

struct retry_budget_options {
  double ratio = 0.1;      // retries for one call, on average; 0 to 1000
  double reserve = 10;     // retries there are at the start
  double saved_max = 100;  // the most that can be saved up; at least 1, and the reserve
};

class retry_budget {
 public:
  using options = retry_budget_options;

  explicit retry_budget(options o = {});
  retry_budget(const retry_budget&) = delete;
  retry_budget& operator=(const retry_budget&) = delete;

  // A call is made for the first time.
  void call() noexcept;
  // May it be retried?
  [[nodiscard]] bool try_retry() noexcept;

  double left() const noexcept;
  std::uint64_t refused() const noexcept { return refused_.load(relaxed); }

 private:
  const std::int64_t per_call_;  // in millionths, as is all that follows
  const std::int64_t most_;
  // relaxed throughout: a count that orders nothing else.
  atomic<std::int64_t> left_;
  atomic<std::uint64_t> refused_{0};
};

}  // namespace sluice
