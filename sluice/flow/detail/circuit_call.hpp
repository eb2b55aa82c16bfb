#pragma once

// The implementation of circuit_breaker::call.

#include <utility>

#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

template <class F>
detail::call_result_t<F> circuit_breaker::call(F&& f) {
  return call(std::forward<F>(f), [](const auto&...) { return false; });
}

template <class F, class Failed>
detail::call_result_t<F> circuit_breaker::call(F&& f, Failed failed) {
  using traits = detail::call_traits_of<F>;
  using T = typename traits::value;
  if constexpr (traits::kind == detail::call_kind::task) {
    return call_task<T>(*this, std::decay_t<F>(std::forward<F>(f)), std::move(failed));
  } else if constexpr (traits::kind == detail::call_kind::future) {
    return call_future<T>(f, std::move(failed));
  } else {
    auto entered = enter_or_throw();
    try {
      if constexpr (std::is_void_v<T>) {
        f();
        entered.success();
      } else {
        T result = f();
        entered.end(failed(std::as_const(result)) ? circuit_verdict::failure
                                                  : circuit_verdict::success);
        return static_cast<T>(std::forward<T>(result));
      }
    } catch (...) {
      if (entered.is_open()) entered.end(judge(std::current_exception()));
      throw;
    }
  }
}

template <class T, class F, class Failed>
task<T> circuit_breaker::call_task(circuit_breaker& self, F f, Failed failed) {
  auto entered = self.enter_or_throw();
  std::exception_ptr thrown;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await f();
      entered.success();
      co_return;
    } else {
      T result = co_await f();
      entered.end(failed(std::as_const(result)) ? circuit_verdict::failure
                                                : circuit_verdict::success);
      co_return static_cast<T>(std::forward<T>(result));
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  if (entered.is_open()) entered.end(self.judge(thrown));
  std::rethrow_exception(thrown);
}

template <class T, class F, class Failed>
future<T> circuit_breaker::call_future(F& f, Failed failed) {
  auto entered = try_enter();
  if (!entered) return make_failed_future<T>(refusal(entered));
  try {
    auto begun = f();
    return std::move(begun).handle([this, entered = std::move(entered),
                                    failed = std::move(failed)](settled<T> s) mutable -> T {
      if (!s) {
        entered.end(judge(s.error()));
      } else if constexpr (std::is_void_v<T>) {
        (void)failed;  // there is no result to check
        entered.success();
      } else {
        const T& result = s.value();
        entered.end(failed(result) ? circuit_verdict::failure : circuit_verdict::success);
      }
      return std::move(s).value();
    });
  } catch (...) {
    if (entered.is_open()) entered.end(judge(std::current_exception()));
    return make_failed_future<T>(std::current_exception());
  }
}

}  // namespace sluice
