#pragma once

// Submits a task to its executor. The task either begins there or is dropped, then deletes itself.

#include <cstdint>
#include <exception>

#include "sluice/base/outcome.hpp"
#include "sluice/future/start_on.hpp"

namespace sluice::detail {

class launched {
 public:
  virtual void begin() noexcept = 0;
  virtual void drop() noexcept = 0;

 protected:
  ~launched() = default;
  // For `drop`: future_error::rejected if the executor refused the task, broken_promise if it
  // accepted and then dropped it.
  std::exception_ptr why_dropped() const;
  // Returns true if it was refused because of the stop_token passed to `launch`.
  bool was_stopped() const noexcept { return refused_ == status::stopped; }

 private:
  friend status launch(start_on where, launched& item, const wait_limits& limits);
  friend status try_launch(start_on where, launched& item);
  struct ending;
  template <class Submit>
  static status hand_over(launched& item, std::int32_t priority, Submit&& submit);

  status refused_ = status::dropped;
};

// Waits for capacity if the executor's policy is `block`.
status launch(start_on where, launched& item, const wait_limits& limits);
status try_launch(start_on where, launched& item);

}  // namespace sluice::detail
