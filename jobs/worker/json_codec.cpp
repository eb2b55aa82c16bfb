#include "jobs/worker/json_codec.hpp"

#include <charconv>

namespace sluice::jobs::detail {

std::uint64_t read_unsigned(json::json_reader& in) {
  if (in.peek() != json::json_reader::kind::number) return in.natural();
  const std::string_view text = in.raw();
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed == std::errc() && end == text.data() + text.size()) return value;
  if (in.ok()) in.refuse("expected a whole number from 0 to 18446744073709551615");
  return 0;
}

std::string escaped_key(std::string_view key) {
  std::string quoted;
  json::json_writer(quoted).value(key);
  return quoted.substr(1, quoted.size() - 2);
}

error not_json(std::string_view name, const payload& given) {
  return {error_code::invalid, std::string(name) + ": expected JSON, found " +
                                   std::to_string(given.data.size()) + " bytes"};
}

error no_fit(std::string_view name, const error& why) {
  return {error_code::invalid, std::string(name) + ": " + why.message};
}

}  // namespace sluice::jobs::detail
