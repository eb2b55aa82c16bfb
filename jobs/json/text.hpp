#pragma once

// Durations and times as people and programs write them: the same words in JSON, in the query of a
// URL and on the command line.
//
// A duration is a number and a unit (ms, s, m, h, d), or several from the larger unit to the
// smaller: "500ms", "30s", "1.5h", "1h30m", "7d". A bare number is seconds. A time is RFC 3339,
// with any offset: "2026-01-31T12:00:00.250Z". What is finer than a millisecond is cut off.
//
// Guarantees: what is formatted parses to the same value. Errors say what was expected.
//
//     parse_duration("90s").value() == 90s;      format_duration(90s) == "90s";

#include <string>
#include <string_view>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

result<milliseconds> parse_duration(std::string_view text);
// In the largest unit of which it is a whole number. At least 0.
std::string format_duration(milliseconds d);
// Of a number of seconds; none when it is negative, or longer than any duration that is allowed.
result<milliseconds> duration_of_seconds(double seconds);

result<unix_time> parse_time(std::string_view text);
// In UTC with milliseconds. From year 0 to 9999; what is beyond is shown as the nearest of these.
std::string format_time(unix_time t);

}  // namespace sluice::jobs
