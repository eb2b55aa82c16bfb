#pragma once

// Computes when a repeated job is due: a cron line, evaluated in a time zone.
//
//   minute hour day-of-month month day-of-week            "30 9 * * mon-fri"
//   second minute hour day-of-month month day-of-week     "*/10 * * * * *"
//   @yearly @annually @monthly @weekly @daily @midnight @hourly
//   @every 1h30m      counted from 1970, independent of when the server started
//
// A field is a list (1,15) of values, ranges (9-17) and steps (*/5, 10-50/10). Months and weekdays
// also have names (jan, mon, in any case); Sunday is 0 and 7; ? is the same as *. A day of month
// may also be L (the last), 15W (the weekday nearest to the 15th, in that month) or LW (the last
// weekday); a day of week also 5L (the last Friday) or 1#2 (the second Monday). A range that runs
// backwards (22-2) is rejected: the error shows how to write it.
//
// As in Vixie's cron: when neither day field begins with *, a day that matches either of them
// matches; otherwise it must match both.
//
// The hour field decides what happens at a clock change:
//
//   hour field            a time that is skipped          a time that is shown twice
//   --------------------  ------------------------------  ---------------------------
//   fixed (2, 1-5, 8,20)  once, right after the gap       the first time only
//   step (*/n)            once, right after the gap       both times
//   every hour (*)        no extra run: runs continue     both times: every real hour
//                         every real hour
//
// One run follows a gap, however many times the gap skips. So "30 2 * * *" runs exactly once every
// day, and "0 * * * *" once every elapsed hour.
//
// Guarantees: a value; any thread may use a copy. The runs depend on the line and the zone alone:
// `next_after` returns them in order and skips none. Any text is accepted as input: an error names
// the field, the column and the allowed values, as in
// "cron '61 * * * *': column 1: minute '61': must be from 0 to 59". A line that can never run (the
// 31st of February) is rejected.
// Cost: `next_after` steps by month, not by minute: 0.1 to 1 us, and 20 us for a day that occurs
// once in 28 years; no allocation.
// Limits: 256 characters, times of years 1 to 9999, @every from 1s to 366d.
//
//     auto daily = cron_schedule::parse("30 9 * * mon-fri", "Europe/Berlin");
//     if (!daily) return daily.error();
//     for (unix_time t : daily->upcoming(time.now(), 5)) show(t);

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/detail/cron_fields.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "jobs/model/time_zone.hpp"

namespace sluice::jobs {

class cron_schedule {
 public:
  static constexpr std::size_t text_bytes_max = 256;
  static constexpr std::size_t upcoming_max = 1000;

  static result<cron_schedule> parse(std::string_view text, std::string_view zone = "UTC");
  static result<cron_schedule> parse(std::string_view text, time_zone zone);

  // Returns the first run after t (never t itself), or none if there is no run within 100 years or
  // t is in year 9999.
  std::optional<unix_time> next_after(unix_time t) const;
  // Returns the next `count` runs, at most `upcoming_max`.
  std::vector<unix_time> upcoming(unix_time after, std::size_t count) const;

  const std::string& text() const noexcept { return text_; }  // as given, trimmed
  const std::string& zone() const noexcept { return zone_.name(); }
  // For people: "at 09:30 on monday to friday, Europe/Berlin".
  std::string describe() const;

  friend bool operator==(const cron_schedule& a, const cron_schedule& b) noexcept {
    return a.text_ == b.text_ && a.zone_ == b.zone_;
  }

 private:
  cron_schedule(std::string_view text, time_zone zone, const detail::cron_line& line);

  std::string text_;
  time_zone zone_;
  detail::cron_line line_;
};

}  // namespace sluice::jobs
