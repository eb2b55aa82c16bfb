#pragma once

// Keeps retries from making an outage worse: the callers that share it may retry only a fixed
// share of their calls in total.
//
// Use one for each called service, shared by all its callers, in `retry_policy::budget`.
//
// Guarantees: any thread may call anything. At most reserve + ratio * calls retries are
// allowed. Unused retries are saved up to `saved_max`. Nothing waits.
// Cost: lock-free; two words.
//
//     retry_budget shared({.ratio = 0.1});        // one retry for ten calls

#include <cstdint>

#include "sluice/base/atomic.hpp"

namespace sluice {

struct retry_budget_options {
  double ratio = 0.1;      // retries for one call, on average; 0 to 1000
  double reserve = 10;     // retries available at the start
  double saved_max = 100;  // the maximum saved up; at least 1, and the reserve
};

class retry_budget {
 public:
  using options = retry_budget_options;

  explicit retry_budget(options o = {});
  retry_budget(const retry_budget&) = delete;
  retry_budget& operator=(const retry_budget&) = delete;

  // Records the first attempt of a call.
  void call() noexcept;
  // Returns true if a retry is allowed, and charges it.
  [[nodiscard]] bool try_retry() noexcept;

  double left() const noexcept;
  std::uint64_t refused() const noexcept { return refused_.load(relaxed); }

 private:
  const std::int64_t per_call_;  // in millionths, as the members below
  const std::int64_t most_;
  // relaxed throughout: a count that orders nothing else.
  atomic<std::int64_t> left_;
  atomic<std::uint64_t> refused_{0};
};

}  // namespace sluice
