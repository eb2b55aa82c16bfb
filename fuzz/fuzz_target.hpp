#pragma once

// The entry point of a fuzz target: a function that takes any bytes. A finding terminates the
// process: an error of a sanitizer, or a claim that is false.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sluice::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Removes the first byte of the input and returns it, to choose a variant.
inline unsigned take_choice(std::string_view& input) {
  if (input.empty()) return 0;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  return choice;
}

inline void claim(bool holds, const char* expected) {
  check(holds, "fuzz target", expected);
}

// Returns true if an error message is one line of text that is safe to print on a terminal.
inline bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace sluice::fuzz
