#pragma once

// Runs a function on an executor and gives a future of what it returns.
//
// Guarantees: waits for room as `submit` does; `async_within` for as long as the limits allow;
// `try_async` not at all. Functions that are attached to the future run on the same executor,
// unless `via` names another. If f takes a std::stop_token it gets one that `cancel` requests;
// cancelled before it began, f is not called, and the future ends with future_error::cancelled. f
// may return a future: then the result is what that one ends with.
// When the executor does not run it:
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

template <class F>
future<async_result_t<F>> async_within(start_on where, const wait_limits& limits, F&& f) {
  detail::async_start<std::decay_t<F>> start(where, std::forward<F>(f));
  start.answered(where.on.submit_within(start.function, limits));
  return std::move(start.result);
}

template <class F>
future<async_result_t<F>> async(start_on where, F&& f) {
  return async_within(where, {}, std::forward<F>(f));
}

// The status says why it was refused: full or closed. Then f is gone.
template <class F>
outcome<future<async_result_t<F>>> try_async(start_on where, F&& f) {
  detail::async_start<std::decay_t<F>> start(where, std::forward<F>(f));
  const status how = where.on.try_submit_ref(start.function);
  start.answered(how);
  if (!how && how != status::dropped) return how;
  return std::move(start.result);
}

}  // namespace sluice
