#pragma once

// The exception of work that ran on an executor, until somebody looks at it. If nobody ever does,
// because the future was dropped, it is reported to the executor: see docs/concepts/errors.md.
//
// A `settled` holds a pointer to it in the place of the exception, so a result has its size and a
// success costs nothing. It moves with the result along a chain of futures.

#include <exception>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/executor/detail/error_route.hpp"

namespace sluice {
class executor;
}

namespace sluice::detail {

class unseen_error {
 public:
  // Null if there is nothing to report: the library itself ended the work with a future_error
  // (cancelled, rejected, broken_promise), or there is no memory. `on`, if any, has not ended.
  static unseen_error* make(const std::exception_ptr& error, executor* on) noexcept;
  // Reports the exception if nobody has looked at it.
  static void end(unseen_error* ended) noexcept;

  // Looks at it. Any number of threads at a time.
  const std::exception_ptr& see() noexcept {
    seen_.store(true, relaxed);  // who ends it has synchronized with those who looked
    return error_;
  }

 private:
  unseen_error(const std::exception_ptr& error, error_route_ref route) noexcept
      : error_(error), route_(std::move(route)) {}

  const std::exception_ptr error_;
  const error_route_ref route_;
  atomic<bool> seen_{false};
};

}  // namespace sluice::detail
