#pragma once

// The default of priority_queue: the priority of a number is the number, of any other item its
// member `priority`.

#include <type_traits>

namespace sluice {

struct default_priority {
  template <class T>
  auto operator()(const T& item) const noexcept {
    if constexpr (std::is_arithmetic_v<T>) {
      return item;
    } else {
      return item.priority;
    }
  }
};

}  // namespace sluice
