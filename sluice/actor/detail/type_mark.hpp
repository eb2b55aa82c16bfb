#pragma once

// Tells types apart at run time.

namespace sluice::detail {

using type_mark = const void*;

template <class T>
struct marked {
  static inline char mark = 0;  // not a constant: a linker may put equal constants together
};

template <class T>
constexpr type_mark mark_of() noexcept {
  return &marked<T>::mark;
}

}  // namespace sluice::detail
