#pragma once

// Formats an address, for objects without a name.

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
