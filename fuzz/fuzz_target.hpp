#pragma once

// What a fuzz target is: one function that takes any bytes. It returns, or what it found ends the
// process: a sanitizer's complaint, or a claim that does not hold.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sluice::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the first byte off the input, to choose something by.
inline unsigned take_choice(std::string_view& input) {
  if (input.empty()) return 0;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  return choice;
}

inline void claim(bool holds, const char* what) {
  check(holds, "fuzz target", what);
}

// An error that reaches a person is one line of text that a terminal can show.
inline bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace sluice::fuzz
