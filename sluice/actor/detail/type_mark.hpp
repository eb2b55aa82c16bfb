#pragma once

// Distinguishes types at run time.

namespace sluice::detail {

using type_mark = const void*;

template <class T>
struct marked {
  static inline char mark = 0;  // not const: a linker may merge equal constants
};

template <class T>
constexpr type_mark mark_of() noexcept {
  return &marked<T>::mark;
}

}  // namespace sluice::detail
