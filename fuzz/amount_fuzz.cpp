// Sizes and rates, as in a configuration file and in arguments.

#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/model/plan.hpp"
#include "jobs/server/size_text.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t message_max = 200;  // however long the text is
  const std::string_view input = sluice::fuzz::text_of(data, size);
  if (const auto bytes = parse_size(input)) {
    const auto again = parse_size(format_size(*bytes));
    claim(again.has_value() && *again == *bytes, "the same size again");
  } else {
    claim(bytes.error().message.size() <= message_max, "a short message about a size");
  }
  if (const auto rate = parse_rate(input)) {
    claim(*rate >= 0 && *rate <= 1e9, "a rate that a queue can have");
    const bool is_bare = input.find('/') == std::string_view::npos;
    if (is_bare) {
      const auto a_second = parse_rate(std::string(input) + "/s");
      claim(a_second.has_value() && *a_second == *rate, "a bare rate to be per second");
      const auto a_minute = parse_rate(std::string(input) + "/m");
      claim(a_minute.has_value() && *a_minute <= *rate, "a rate per minute to be lower");
    }
  } else {
    claim(rate.error().message.size() <= message_max, "a short message about a rate");
  }
  return 0;
}
