#pragma once

// The exception of work that ran on an executor, until it is read. If it is never read because the
// future was dropped, it is reported to the executor: see docs/concepts/errors.md.
//
// A `settled` holds a pointer to it in place of the exception, so a result has no extra size and a
// success costs nothing. It moves with the result along a chain of futures.

#include <exception>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/executor/executor.hpp"

namespace sluice::detail {

class unread_error {
 public:
  // Returns null if there is nothing to report: the library itself ended the work with a
  // future_error (cancelled, rejected, broken_promise), or memory is exhausted. `on`, if not null,
  // must not have ended.
  static unread_error* make(const std::exception_ptr& error, executor* on) noexcept;
  // Reports the exception if it was not read.
  static void end(unread_error* ended) noexcept;

  // Any number of threads may call it at a time.
  const std::exception_ptr& read() noexcept {
    was_read_.store(true, relaxed);  // `end` has synchronized with all readers
    return error_;
  }

 private:
  unread_error(const std::exception_ptr& error, error_route_ref route) noexcept
      : error_(error), route_(std::move(route)) {}

  const std::exception_ptr error_;
  const error_route_ref route_;
  atomic<bool> was_read_{false};
};

}  // namespace sluice::detail
