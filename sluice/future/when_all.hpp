#pragma once

// Combines several futures into one: of all their values, or of all their results.
//
// Use `when_all` when the values are useless without each other: the first failure ends it
// immediately and cancels the rest. Use `when_all_settled` to get the result of each.
//
// Guarantees: the values are in the order of the futures, not in that of completion.
// Cancelling the result cancels every input. Futures of one type in a vector give a vector of
// values (nothing for void); futures of any types give a tuple, with std::monostate for void and a
// std::reference_wrapper for a reference. Without futures the result is complete at once and empty.
// The result has no executor: name one with `via`.
// Cost: one allocation, and the result; each completion is one atomic decrement.
//
//     auto shown = when_all(load_user(id), load_orders(id))
//                      .then([](std::tuple<user, orders> both) { show(both); });
//     auto printed = when_all(std::move(pages)).then([](std::vector<page> all) { print(all); });

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/future/detail/fan_in.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

namespace detail {

template <class T>
struct settled_of_vector {
  using result = std::vector<settled<T>>;
  static bool decides(vector_inputs<T>&, std::uint32_t) noexcept { return false; }
  static void decide(vector_inputs<T>&, std::uint32_t, settled<result>&) noexcept {}
  static void conclude(vector_inputs<T>& in, std::uint32_t, settled<result>& out) noexcept {
    set_result_of(out, [&] {
      result all;
      all.reserve(in.size());
      in.each([&](future<T>& input, std::uint32_t) { all.push_back(std::move(result_of(input))); });
      return all;
    });
  }
};

template <class... Ts>
struct settled_of_tuple {
  using result = std::tuple<settled<Ts>...>;
  static bool decides(tuple_inputs<Ts...>&, std::uint32_t) noexcept { return false; }
  static void decide(tuple_inputs<Ts...>&, std::uint32_t, settled<result>&) noexcept {}
  static void conclude(tuple_inputs<Ts...>& in, std::uint32_t, settled<result>& out) noexcept {
    set_result_of(out, [&] {
      return std::apply([](auto&... each) { return result(std::move(result_of(each))...); },
                        in.all());
    });
  }
};

}  // namespace detail

template <class T>
auto when_all(std::vector<future<T>> futures) {
  using rule = detail::all_of_vector<T>;
  if (futures.empty()) return make_ready_future<typename rule::result>();
  return detail::fan_in<rule>(detail::vector_inputs<T>(std::move(futures)));
}
template <class... Ts>
future<std::tuple<detail::element_t<Ts>...>> when_all(future<Ts>... futures) {
  if constexpr (sizeof...(Ts) == 0) {
    return make_ready_future<std::tuple<>>();
  } else {
    return detail::fan_in<detail::all_of_tuple<Ts...>>(
        detail::tuple_inputs<Ts...>(std::move(futures)...));
  }
}

template <class T>
future<std::vector<settled<T>>> when_all_settled(std::vector<future<T>> futures) {
  if (futures.empty()) return make_ready_future<std::vector<settled<T>>>();
  return detail::fan_in<detail::settled_of_vector<T>>(
      detail::vector_inputs<T>(std::move(futures)));
}
template <class... Ts>
future<std::tuple<settled<Ts>...>> when_all_settled(future<Ts>... futures) {
  if constexpr (sizeof...(Ts) == 0) {
    return make_ready_future<std::tuple<>>();
  } else {
    return detail::fan_in<detail::settled_of_tuple<Ts...>>(
        detail::tuple_inputs<Ts...>(std::move(futures)...));
  }
}

}  // namespace sluice
