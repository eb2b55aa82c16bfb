#pragma once

// The rule by which a zone goes on for ever, as POSIX writes it: "CET-1CEST,M3.5.0,M10.5.0/3". It
// stands at the end of a time zone file, for the times after its table.

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

// A day of every year and a time on it, which may lie up to a week before or after that day.
struct yearly_moment {
  enum class form : std::uint8_t {
    weekday,       // Mm.w.d: the w-th weekday d (0: Sunday) of the month m; the 5th is the last
    day_not_leap,  // Jn: day 1 to 365, of which none is the 29th of February
    day_of_year,   // n: day 0 to 365
  };
  form kind = form::day_of_year;
  unsigned month = 1;
  unsigned week = 1;
  unsigned day = 0;
  seconds time{std::chrono::hours(2)};

  // By the clock on the wall just before, as if it were UTC.
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

  // An error says what is wrong with the text, and nothing of where it came from.
  static result<posix_tz> parse(std::string_view text);

  // One change of the clock: from `when` on there is daylight saving time, or no more.
  struct change {
    sys_seconds when{};
    bool to_dst = false;
  };
  // The changes around a year, in order of time: those of two years before it to two after it, so
  // that every moment of the year has at least one before and one after. For a rule with `dst`.
  std::array<change, 10> changes_around(std::chrono::year y) const;
};

}  // namespace sluice::jobs::detail
