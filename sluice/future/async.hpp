#pragma once

// Runs a function on an executor and returns a future of its result.
//
// Guarantees: waits for capacity as `submit` does, without limits or within `limits`; `try_async`
// does not wait. Functions attached to the future run on the same executor, unless `via` names
// another. If f takes a std::stop_token, it gets a token that `cancel` requests. If it is cancelled
// before it begins, f is not called, and the future ends with future_error::cancelled. If f returns
// a future, the result is that of the returned future.
// If the executor does not run the function:
//   refused (full, closed, timed out, stopped)   future_error::rejected; try_async: the status
//   dropped by its policy, or destroyed unrun    future_error::broken_promise
// An exception of a function whose future was dropped is reported to the executor's `on_error`
// (docs/concepts/errors.md).
// Cost: one allocation.
//
//     auto total = async(pool, [rows](std::stop_token stop) { return sum(rows, stop); });
//     auto first = async({pool, 9}, urgent);      // with a priority: see start_on.hpp

#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/executor/executor.hpp"
#include "sluice/future/detail/async_state.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/start_on.hpp"

namespace sluice {

template <class F>
using async_result_t = detail::future_value_t<detail::token_call_t<std::decay_t<F>>>;

// The limits are those of the wait for capacity.
template <class F>
future<async_result_t<F>> async(start_on where, const wait_limits& limits, F&& f) {
  detail::async_start<std::decay_t<F>> start(where, std::forward<F>(f));
  start.answered(where.on.submit(std::move(start.function), limits));
  return std::move(start.result);
}

template <class F>
future<async_result_t<F>> async(start_on where, F&& f) {
  return async(where, wait_limits(), std::forward<F>(f));
}

// Returns full or closed if the executor refuses the function, which is then destroyed.
template <class F>
outcome<future<async_result_t<F>>> try_async(start_on where, F&& f) {
  detail::async_start<std::decay_t<F>> start(where, std::forward<F>(f));
  const status submitted = where.on.try_submit(std::move(start.function));
  start.answered(submitted);
  if (!submitted && submitted != status::dropped) return submitted;
  return std::move(start.result);
}

}  // namespace sluice
