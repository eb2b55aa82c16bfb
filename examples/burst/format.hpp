#pragma once

// Formats numbers for people.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace burst {

// 50,000
inline std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

inline std::string fixed(double number, int digits, const char* unit) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f%s", digits, number, unit);
  return buffer.data();
}

inline double in_seconds(std::chrono::nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

inline double in_ms(std::chrono::nanoseconds t) {
  return std::chrono::duration<double, std::milli>(t).count();
}

// 1.31 s, 640 ms, 9.5 ms, 70 us
inline std::string readable(std::chrono::nanoseconds t) {
  const double ms = in_ms(t);
  if (ms >= 999.5) return fixed(ms / 1000, 2, " s");
  if (ms >= 0.9995) return fixed(ms, ms < 9.95 ? 1 : 0, " ms");
  return fixed(ms * 1000, 0, " us");
}

}  // namespace burst
