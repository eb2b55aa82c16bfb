#include "sluice/actor/detail/time_text.hpp"

#include <cstdio>

namespace sluice::detail {

std::string time_text(std::chrono::nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  const auto in = [&](double unit, const char* name) {
    char text[48];
    std::snprintf(text, sizeof text, "%.4g %s", ns / unit, name);
    return std::string(text);
  };
  if (ns >= 1e9) return in(1e9, "s");
  if (ns >= 1e6) return in(1e6, "ms");
  if (ns >= 1e3) return in(1e3, "us");
  return in(1, "ns");
}

}  // namespace sluice::detail
