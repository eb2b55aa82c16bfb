#pragma once

// `combine`: a function of two futures' values.

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "sluice/future/detail/fan_in.hpp"

namespace sluice::detail {

// Returns the argument for an element: none if the value type was void.
template <class E>
auto as_arguments(E& element) noexcept {
  return std::forward_as_tuple(std::move(element));
}
inline std::tuple<> as_arguments(std::monostate&) noexcept { return {}; }
template <class R>
std::tuple<R&> as_arguments(std::reference_wrapper<R>& element) noexcept {
  return {element.get()};
}

// True if F takes the values of both futures.
template <class F, class T, class U>
inline constexpr bool takes_values = std::is_invocable_v<F&, T, U>;
template <class F, class U>
inline constexpr bool takes_values<F, void, U> = std::is_invocable_v<F&, U>;
template <class F, class T>
inline constexpr bool takes_values<F, T, void> = std::is_invocable_v<F&, T>;
template <class F>
inline constexpr bool takes_values<F, void, void> = std::is_invocable_v<F&>;

template <class T, class U, class F>
auto combine(future<T> one, future<U> other, executor* on, F f) {
  using rule = all_of_tuple<T, U>;
  return fan_in<rule>(tuple_inputs<T, U>(std::move(one), std::move(other)), on)
      .then([f = std::move(f)](typename rule::result both) mutable -> decltype(auto) {
        return std::apply(f, std::tuple_cat(as_arguments(std::get<0>(both)),
                                            as_arguments(std::get<1>(both))));
      });
}

}  // namespace sluice::detail
