#pragma once

// An address as it is shown where there is no name.

#include <array>
#include <cstdio>
#include <string>

namespace sluice::inspect::detail {

inline std::string address_text(const void* address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%p", address);
  return text.data();
}

}  // namespace sluice::inspect::detail
