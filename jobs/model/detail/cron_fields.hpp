#pragma once

// A parsed cron line as sets of bits, and the search for matching times in the calendar.
// Independent of time zones: times are local times without clock changes.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace sluice::jobs::detail {

// The form of the hour field: it decides what happens at a clock change (cron_schedule.hpp).
enum class hour_form : std::uint8_t { fixed, step, every };

struct cron_fields {
  std::uint64_t seconds = 1;  // bit n: the value n
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t days = 0;                      // of the month, from bit 1
  std::uint32_t nearest = 0;                   // nW, from bit 1
  bool last_day = false;                       // L
  bool last_nearest = false;                   // LW
  std::uint16_t months = 0;                    // from bit 1
  std::uint8_t weekdays = 0;                   // bit 0: Sunday
  std::uint8_t last_weekdays = 0;              // nL
  std::array<std::uint8_t, 6> nth_weekdays{};  // [n]: the n-th of its kind in the month
  bool any_day = false;                        // the field begins with *, or is ?
  bool any_weekday = false;
  bool has_seconds = false;  // six fields were written
  hour_form hours_as = hour_form::fixed;

  // Returns the matching days of a month: bit n is day n.
  std::uint32_t days_of(std::chrono::year_month month) const;
  // Returns true if some day of the calendar matches.
  bool ever() const;
  // Returns the first match at or after `from` and before `end`. Years -9999 to 9999.
  std::optional<std::chrono::local_seconds> next_match(std::chrono::local_seconds from,
                                                       std::chrono::local_seconds end) const;

 private:
  std::optional<std::chrono::seconds> next_time(std::chrono::seconds time_of_day) const;
};

// Either fields, or the period of an @every line.
struct cron_line {
  cron_fields fields{};
  std::chrono::milliseconds every{0};  // zero: `fields` applies
};

}  // namespace sluice::jobs::detail
