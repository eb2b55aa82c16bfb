#pragma once

// The functions of `then`, `and_then`, `recover`, `handle` and `finally` as actions of a stage:
// each is called for a value, an error, or both, with the matching argument.

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "sluice/future/detail/future_parts.hpp"

namespace sluice::detail {

// The parameters that functions of a future's calls must take. The calls assert it before they use
// the function, so that the first compiler error names the rule and the user's line.
template <class F, class T>
concept takes_value =
    std::is_invocable_v<F&> || (!std::is_void_v<T> && std::is_invocable_v<F&, T>);

// Calls a user's function with the value, or with nothing if it takes nothing.
template <class T, class F>
decltype(auto) call_with_value(F& f, settled<T>& in) {
  if constexpr (std::is_void_v<T>) {
    return std::invoke(f);
  } else if constexpr (std::is_invocable_v<F&, T>) {
    return std::invoke(f, std::move(in).value());
  } else {
    return std::invoke(f);
  }
}
template <class F, class T>
using value_call_t =
    decltype(call_with_value<T>(std::declval<F&>(), std::declval<settled<T>&>()));

// Stores the result of `make` in `out`; if it is a future, returns it instead.
template <class U, class Make>
auto produce(settled<U>& out, Make&& make) noexcept {
  using made = decltype(make());
  if constexpr (is_future_v<made>) {
    try {
      return future_access::take(make());
    } catch (...) {
      out.fail(std::current_exception());
    }
    return future_parts<U>();
  } else {
    try {
      out.construct(std::forward<Make>(make));
    } catch (...) {
      out.fail(std::current_exception());
    }
  }
}

// Calls the function for a value; passes an error on.
template <class T, class U, class F>
struct on_value {
  F f;
  auto operator()(settled<T>& in, settled<U>& out) noexcept {
    const auto call = [&]() -> decltype(auto) { return call_with_value<T>(f, in); };
    using made = decltype(produce(out, call));
    if (!in.has_value()) {
      in.pass_error(out);
      return made();
    }
    return produce(out, call);
  }
};

// Calls the function for both.
template <class T, class U, class F>
struct on_settled {
  F f;
  auto operator()(settled<T>& in, settled<U>& out) noexcept {
    if (in.is_error()) (void)in.error();  // counts as read, even if the function ignores it
    return produce(out, [&]() -> decltype(auto) { return std::invoke(f, std::move(in)); });
  }
};

// The exceptions that a function of `recover` handles: the type of its parameter; `any_error` for
// std::exception_ptr and for a function without parameters.
struct any_error {};
template <class Signature>
struct parameter_of;
template <class R, class C, class A>
struct parameter_of<R (C::*)(A)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const> : parameter_of<R (C::*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) noexcept> : parameter_of<R (C::*)(A)> {};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const noexcept> : parameter_of<R (C::*)(A)> {};
template <class R, class A>
struct parameter_of<R (*)(A)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class A>
struct parameter_of<R (*)(A) noexcept> : parameter_of<R (*)(A)> {};

template <class F>
struct recovers_from {};  // not a function of one exception
template <class F>
  requires(!std::is_invocable_v<F&, std::exception_ptr> && !std::is_invocable_v<F&> &&
           requires { typename parameter_of<decltype(&F::operator())>::type; })
struct recovers_from<F> {
  using type = typename parameter_of<decltype(&F::operator())>::type;
};
template <class F>
  requires(std::is_invocable_v<F&, std::exception_ptr> || std::is_invocable_v<F&>)
struct recovers_from<F> {
  using type = any_error;
};
template <class F>
  requires(std::is_pointer_v<F> && !std::is_invocable_v<F&, std::exception_ptr> &&
           !std::is_invocable_v<F&>)
struct recovers_from<F> : parameter_of<F> {};
template <class F>
using recovers_from_t = typename recovers_from<F>::type;
template <class F>
concept takes_error = requires { typename recovers_from_t<F>; };

template <class F>
decltype(auto) call_with_error(F& f, const std::exception_ptr& error) {
  using wanted = recovers_from_t<F>;
  if constexpr (std::is_invocable_v<F&, std::exception_ptr>) {
    return std::invoke(f, error);
  } else if constexpr (std::is_same_v<wanted, any_error>) {
    return std::invoke(f);
  } else {
    try {
      std::rethrow_exception(error);
    } catch (wanted& e) {  // any other exception propagates
      return std::invoke(f, e);
    }
  }
}
template <class F>
using error_call_t =
    decltype(call_with_error(std::declval<F&>(), std::declval<std::exception_ptr&>()));
// True if a result of type Made can replace the value.
template <class Made, class T>
inline constexpr bool replaces_value = std::is_void_v<T> || std::is_constructible_v<T, Made>;
template <class Made, class T>
inline constexpr bool replaces_value<future<Made>, T> = std::is_same_v<Made, T>;
template <class F, class T>
concept recovers = takes_error<F> && replaces_value<error_call_t<F>, T>;

// Calls the function for an error; passes a value on.
template <class T, class F>
struct on_error {
  F f;
  auto operator()(settled<T>& in, settled<T>& out) noexcept {
    const auto call = [&]() -> decltype(auto) { return call_with_error(f, error_of(in)); };
    using made = decltype(produce(out, call));
    if (in.has_value()) {
      move_result(in, out);
      return made();
    }
    return produce(out, call);
  }

 private:
  static std::exception_ptr error_of(const settled<T>& in) noexcept { return in.error(); }
};

// Calls the function in any case, and passes the result on unless the function throws.
template <class T, class F>
struct in_any_case {
  F f;
  void operator()(settled<T>& in, settled<T>& out) noexcept {
    try {
      std::invoke(f);
    } catch (...) {
      out.fail(std::current_exception());
      return;
    }
    move_result(in, out);
  }
};

}  // namespace sluice::detail
