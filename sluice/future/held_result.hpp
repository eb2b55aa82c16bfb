#pragma once

// How the result of a task stands in a tuple, a vector or an optional: as itself, as std::monostate
// for void, as a std::reference_wrapper for a reference.

#include <functional>
#include <variant>

namespace sluice {

template <class T>
struct held_result {
  using type = T;
};
template <class T>
struct held_result<T&> {
  using type = std::reference_wrapper<T>;
};
template <>
struct held_result<void> {
  using type = std::monostate;
};
template <class T>
using held_result_t = typename held_result<T>::type;

}  // namespace sluice
