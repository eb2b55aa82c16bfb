#pragma once

// A future of the first of several futures to end; the others are cancelled.
//
// Use `when_any` for the first to end, with a value or an error, and `when_any_success` to request
// one thing from several parties and take the first value. Prefer `with_timeout` to race a timer.
//
// Guarantees: exactly one wins, also if several end at once. `index` counts from 0 in the order of
// the futures. The losers are cancelled before the result is set; they may still be running then,
// and their results are destroyed. Cancelling the result cancels every input. `when_any_success`
// fails if all have failed, with the last failure. With an empty vector the result could never be
// set: it fails immediately with future_error::broken_promise.
// The result has no executor: name one with `via`.
// Cost: one allocation; each completion is one atomic decrement, the first one exchange more.
//
//     auto winner = when_any(std::move(replicas)).get();
//     log(winner.index, winner.result.has_value());
//     page p = when_any_success(fetch(mirror1), fetch(mirror2)).get().value;

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/future/detail/fan_in.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

// The index and the result of the first future to end.
template <class T>
struct first_settled {
  std::size_t index;
  settled<T> result;
};
// The same for several types: the variant holds the alternative `index`.
template <class... Ts>
struct first_settled_of {
  std::size_t index;
  std::variant<settled<Ts>...> result;
};
// The index and the value of the first future to succeed.
template <class T>
struct first_value {
  std::size_t index;
  T value;
};
template <>
struct first_value<void> {
  std::size_t index;
};

namespace detail {

struct first_decides {
  template <class Inputs>
  static bool decides(Inputs&, std::uint32_t) noexcept {
    return true;
  }
  template <class Inputs, class Out>
  static void conclude(Inputs&, std::uint32_t, settled<Out>&) noexcept {}
};

template <class Inputs, class T>
struct first_end : first_decides {
  using result = first_settled<T>;
  static void decide(Inputs& in, std::uint32_t i, settled<result>& out) noexcept {
    set_result_of(out, [&] {
      return in.at(i, [&](auto& input) { return result{i, std::move(result_of(input))}; });
    });
  }
};

template <class... Ts>
struct first_end_of_types : first_decides {
  using result = first_settled_of<Ts...>;
  static void decide(tuple_inputs<Ts...>& in, std::uint32_t i, settled<result>& out) noexcept {
    set_result_of(out, [&] { return take<0>(in, i); });
  }

 private:
  template <std::size_t I>
  static result take(tuple_inputs<Ts...>& in, std::uint32_t i) {
    if constexpr (I + 1 < sizeof...(Ts)) {
      if (i != I) return take<I + 1>(in, i);
    }
    return result{I, std::variant<settled<Ts>...>(std::in_place_index<I>,
                                                  std::move(result_of(std::get<I>(in.all()))))};
  }
};

template <class Inputs, class T>
struct first_success {
  using result = first_value<T>;
  static bool decides(Inputs& in, std::uint32_t i) noexcept {
    return in.at(i, [](auto& input) { return result_of(input).has_value(); });
  }
  static void decide(Inputs& in, std::uint32_t i, settled<result>& out) noexcept {
    set_result_of(out, [&] {
      return in.at(i, [&](auto& input) -> result {
        if constexpr (std::is_void_v<T>) {
          return {i};
        } else {
          return {i, std::move(result_of(input)).value()};
        }
      });
    });
  }
  static void conclude(Inputs& in, std::uint32_t i, settled<result>& out) noexcept {
    in.at(i, [&](auto& input) { result_of(input).pass_error(out); });
  }
};

template <class T>
future<T> first_of_none() {
  return make_failed_future<T>(
      future_error(future_error::broken_promise, "the first of no futures"));
}
template <class T, class... Ts>
inline constexpr bool all_same = (std::is_same_v<T, Ts> && ...);

}  // namespace detail

template <class T>
future<first_settled<T>> when_any(std::vector<future<T>> futures) {
  using inputs = detail::vector_inputs<T>;
  if (futures.empty()) return detail::first_of_none<first_settled<T>>();
  return detail::fan_in<detail::first_end<inputs, T>>(inputs(std::move(futures)));
}
// Returns first_settled<T> if all futures have one type, else first_settled_of<Ts...>.
template <class T, class... Ts>
auto when_any(future<T> first, future<Ts>... others) {
  using inputs = detail::tuple_inputs<T, Ts...>;
  inputs all(std::move(first), std::move(others)...);
  if constexpr (detail::all_same<T, Ts...>) {
    return detail::fan_in<detail::first_end<inputs, T>>(std::move(all));
  } else {
    return detail::fan_in<detail::first_end_of_types<T, Ts...>>(std::move(all));
  }
}

template <class T>
future<first_value<T>> when_any_success(std::vector<future<T>> futures) {
  using inputs = detail::vector_inputs<T>;
  if (futures.empty()) return detail::first_of_none<first_value<T>>();
  return detail::fan_in<detail::first_success<inputs, T>>(inputs(std::move(futures)));
}
template <class T, class... Ts>
  requires(detail::all_same<T, Ts...>)
future<first_value<T>> when_any_success(future<T> first, future<Ts>... others) {
  using inputs = detail::tuple_inputs<T, Ts...>;
  return detail::fan_in<detail::first_success<inputs, T>>(
      inputs(std::move(first), std::move(others)...));
}

}  // namespace sluice
