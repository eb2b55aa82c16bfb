#pragma once

// A zone's rule for the times after its table, in POSIX form: "CET-1CEST,M3.5.0,M10.5.0/3". It is
// the last line of a time zone file.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// A day of every year and a time relative to it, up to a week before or after that day.
struct yearly_moment {
  enum class form : std::uint8_t {
    weekday,       // Mm.w.d: the w-th weekday d (0: Sunday) of the month m; the 5th is the last
    day_not_leap,  // Jn: day 1 to 365, without the 29th of February
    day_of_year,   // n: day 0 to 365
  };
  form kind = form::day_of_year;
  unsigned month = 1;
  unsigned week = 1;
  unsigned day = 0;
  seconds time{std::chrono::hours(2)};

  // In the local time before the change, as if it were UTC.
  sys_seconds in(std::chrono::year y) const;
};

struct posix_tz {
  struct daylight {
    std::string abbreviation{};
    seconds from_utc{};
    yearly_moment begins{};
    yearly_moment ends{};
  };
  std::string abbreviation{};
  seconds from_utc{};
  std::optional<daylight> dst{};

  // The error describes the mistake in the text, without its origin.
  static result<posix_tz> parse(std::string_view text);

  // One clock change: daylight saving time begins or ends at `when`.
  struct change {
    sys_seconds when{};
    bool to_dst = false;
  };
  // Returns the changes from two years before to two years after a year, in order of time, so that
  // every moment of the year has a change before it and one after it. Requires `dst`.
  std::array<change, 10> changes_around(std::chrono::year y) const;
};

}  // namespace sluice::jobs::detail
