#pragma once

// The text form of durations and times, the same in JSON, in the query of a URL and on the command
// line.
//
// A duration is a number and a unit (ms, s, m, h, d), or several from the larger unit to the
// smaller: "500ms", "30s", "1.5h", "1h30m", "7d". A bare number is seconds. A time is RFC 3339,
// with any offset: "2026-01-31T12:00:00.250Z". Fractions of a millisecond are rounded up, so that a
// due time is never early.
//
// Guarantees: formatted text parses to the same value. An error names the expected form.
//
//     parse_duration("90s").value() == 90s;      format_duration(90s) == "90s";

#include <string>
#include <string_view>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

result<milliseconds> parse_duration(std::string_view text);
// Formats in the largest unit with a whole number. `d` must be at least 0.
std::string format_duration(milliseconds d);
// Converts a number of seconds; fails if it is negative or above 100 years.
result<milliseconds> duration_of_seconds(double seconds);

result<unix_time> parse_time(std::string_view text);
// Formats in UTC with milliseconds. Times outside of the years 0 to 9999 are clamped to them.
std::string format_time(unix_time t);

}  // namespace sluice::jobs
