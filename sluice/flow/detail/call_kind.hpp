#pragma once

// The kind of a wrapped function's result: a plain value, a future, or a task.

#include <cstdint>
#include <type_traits>

#include "sluice/future/future.hpp"
#include "sluice/future/task.hpp"

namespace sluice::detail {

enum class call_kind : std::uint8_t { plain, future, task };

template <class R>
struct call_traits {
  static constexpr auto kind = call_kind::plain;
  using value = R;
};
template <class T>
struct call_traits<future<T>> {
  static constexpr auto kind = call_kind::future;
  using value = T;
};
template <class T>
struct call_traits<task<T>> {
  static constexpr auto kind = call_kind::task;
  using value = T;
};

// A wrapped call returns the function's result.
template <class F>
using call_result_t = std::invoke_result_t<std::decay_t<F>&>;
template <class F>
using call_traits_of = call_traits<call_result_t<F>>;

}  // namespace sluice::detail
