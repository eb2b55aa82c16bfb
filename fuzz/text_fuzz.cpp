// Durations, times and base64, as in JSON, queries and arguments.

#include "fuzz/fuzz_target.hpp"
#include "jobs/json/base64.hpp"
#include "jobs/json/text.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = sluice::fuzz::text_of(data, size);
  if (const auto d = parse_duration(input)) {
    claim(d->count() >= 0, "no negative duration");
    const auto again = parse_duration(format_duration(*d));
    claim(again.has_value() && *again == *d, "the same duration again");
  }
  if (const auto t = parse_time(input)) {
    const auto again = parse_time(format_time(*t));
    claim(again.has_value() && *again == *t, "the same time again");
  }
  if (const auto bytes = json::from_base64(input)) {
    std::string written;
    json::append_base64(written, *bytes);
    claim(json::from_base64(written) == bytes, "the same bytes again");
  }
  return 0;
}
