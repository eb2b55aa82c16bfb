#include "jobs/server/size_text.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace sluice::jobs {
namespace {

constexpr std::string_view units = "KMGT";

error invalid_size(std::string_view text) {
  return {error_code::invalid, "expected a size such as 64KB, 16MB or 1GB, found '" +
                                   std::string(text.substr(0, 64)) + "'"};
}

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc{}) return invalid_size(text);
  std::string unit;
  for (const char* at = rest; at != end; ++at) {
    if (*at != ' ' || at != rest) unit += upper(*at);
  }
  if (unit.empty() || unit == "B") return number;
  const std::size_t power = units.find(unit.front());
  unit.erase(0, 1);
  if (power == std::string_view::npos || (unit != "" && unit != "B" && unit != "IB")) {
    return invalid_size(text);
  }
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) return invalid_size(text);
  return number << shift;
}

std::string format_size(std::uint64_t bytes) {
  std::size_t power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power < units.size()) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + (power == 0 ? "" : std::string(1, units[power - 1])) + "B";
}

}  // namespace sluice::jobs
