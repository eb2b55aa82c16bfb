// Describes a cron line in words, so that its author can check it.

#include <array>
#include <bit>
#include <cstdio>

#include "jobs/model/cron_schedule.hpp"

namespace sluice::jobs {
namespace {

using detail::cron_fields;

constexpr std::array<std::string_view, 13> months = {
    "",     "january", "february",  "march",   "april",    "may",     "june",
    "july", "august",  "september", "october", "november", "december"};
constexpr std::array<std::string_view, 7> weekdays = {"sunday",   "monday", "tuesday", "wednesday",
                                                      "thursday", "friday", "saturday"};
constexpr std::array<std::string_view, 6> ordinals = {"",      "first",  "second",
                                                      "third", "fourth", "fifth"};
constexpr std::uint64_t all_60 = (std::uint64_t{1} << 60U) - 1;
constexpr std::uint64_t all_hours = 0xFF'FFFF;
constexpr std::uint64_t all_months = 0x1FFE;
constexpr int times_listed_max = 6;

using words = std::vector<std::string>;

std::string joined(const words& list) {
  std::string out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += i + 1 == list.size() ? " and " : ", ";
    out += list[i];
  }
  return out;
}

std::string two_digits(unsigned n) {
  return {static_cast<char>('0' + n / 10), static_cast<char>('0' + n % 10)};
}

// "1, 3 to 5 and 9"; adjacent values become ranges.
template <class Name>
words ranges(std::uint64_t set, Name name) {
  words out;
  while (set != 0) {
    const auto from = static_cast<unsigned>(std::countr_zero(set));
    const auto count = static_cast<unsigned>(std::countr_one(set >> from));
    if (count > 2) {
      out.push_back(name(from) + " to " + name(from + count - 1));
    } else {
      for (unsigned i = 0; i < count; ++i) out.push_back(name(from + i));
    }
    set &= ~(((std::uint64_t{1} << count) - 1) << from);
  }
  return out;
}

std::string numbers(std::uint64_t set) {
  return joined(ranges(set, [](unsigned n) { return std::to_string(n); }));
}

// Returns n if the set is 0, n, 2n and so on below `size`, else 0.
unsigned step_of(std::uint64_t set, unsigned size) {
  if ((set & 1U) == 0 || std::popcount(set) < 2) return 0;
  const auto step = static_cast<unsigned>(std::countr_zero(set & ~std::uint64_t{1}));
  std::uint64_t expected = 0;
  for (unsigned v = 0; v < size; v += step) expected |= std::uint64_t{1} << v;
  return set == expected && size % step == 0 ? step : 0;
}

std::string every(unsigned step, std::string_view unit) {
  if (step == 1) return "every " + std::string(unit);
  return "every " + std::to_string(step) + " " + std::string(unit) + "s";
}

// "at 09:30 and 17:30"; empty if there are too many times.
std::string clock_times(const cron_fields& f) {
  const int count = std::popcount(f.hours) * std::popcount(f.minutes) * std::popcount(f.seconds);
  if (count > times_listed_max) return "";
  words times;
  for (auto h = std::uint64_t{f.hours}; h != 0; h &= h - 1) {
    for (auto m = f.minutes; m != 0; m &= m - 1) {
      for (auto s = f.seconds; s != 0; s &= s - 1) {
        std::string time = two_digits(static_cast<unsigned>(std::countr_zero(h))) + ":" +
                           two_digits(static_cast<unsigned>(std::countr_zero(m)));
        if (f.seconds != 1) time += ":" + two_digits(static_cast<unsigned>(std::countr_zero(s)));
        times.push_back(std::move(time));
      }
    }
  }
  return "at " + joined(times);
}

std::string hours_of(std::uint64_t hours) {
  if (hours == all_hours) return "";
  if (const unsigned step = step_of(hours, 24); step > 0) return " of " + every(step, "hour");
  return std::string(std::popcount(hours) == 1 ? " of hour " : " of hours ") + numbers(hours);
}

std::string time_part(const cron_fields& f) {
  if (std::string listed = clock_times(f); !listed.empty()) return listed;
  std::string seconds;
  if (f.seconds != 1) {
    const unsigned step = step_of(f.seconds, 60);
    seconds = step > 0 ? every(step, "second") : "at second " + numbers(f.seconds);
    if (f.minutes == all_60) return seconds + hours_of(f.hours);
    seconds += " of ";
  }
  if (const unsigned step = step_of(f.minutes, 60); step > 0) {
    return seconds + every(step, "minute") + hours_of(f.hours);
  }
  if (seconds.empty() && f.minutes == 1) {
    if (const unsigned step = step_of(f.hours, 24); step > 0) return every(step, "hour");
  }
  const std::string hours = f.hours == all_hours ? " of every hour" : hours_of(f.hours);
  return (seconds.empty() ? "at " : seconds) + "minute " + numbers(f.minutes) + hours;
}

std::string dates(const cron_fields& f) {
  words out;
  if (f.days != 0) {
    out.push_back((std::popcount(f.days) == 1 ? "day " : "days ") + numbers(f.days));
  }
  for (auto d = f.nearest; d != 0; d &= d - 1) {
    out.push_back("the weekday nearest to day " + std::to_string(std::countr_zero(d)));
  }
  if (f.last_day) out.emplace_back("the last day");
  if (f.last_nearest) out.emplace_back("the last weekday");
  return joined(out) + " of the month";
}

std::string days_of_week(const cron_fields& f) {
  const auto name = [](unsigned n) { return std::string(weekdays[n % 7]); };
  // With Monday first, Saturday and Sunday are adjacent.
  const unsigned from_monday = (f.weekdays >> 1U) | ((f.weekdays & 1U) << 6U);
  words out = ranges(from_monday, [&](unsigned n) { return name(n + 1); });
  for (std::size_t nth = 1; nth < f.nth_weekdays.size(); ++nth) {
    for (unsigned d = 0; d < 7; ++d) {
      if ((f.nth_weekdays[nth] >> d & 1U) == 0) continue;
      out.push_back("the " + std::string(ordinals[nth]) + " " + name(d) + " of the month");
    }
  }
  for (unsigned d = 0; d < 7; ++d) {
    if ((f.last_weekdays >> d & 1U) != 0) out.push_back("the last " + name(d) + " of the month");
  }
  return joined(out);
}

std::string day_part(const cron_fields& f) {
  const bool by_date = !f.any_day || (f.days & 0xFFFF'FFFEU) != 0xFFFF'FFFEU;
  const bool by_weekday = !f.any_weekday || f.weekdays != 0x7F;
  std::string out;
  if (by_date) out += " on " + dates(f);
  if (by_date && by_weekday) out += f.any_day || f.any_weekday ? " if on " : " and";
  if (by_weekday) out += (out.ends_with("if on ") ? "" : " on ") + days_of_week(f);
  if (f.months != all_months) {
    out += " in " + joined(ranges(f.months, [](unsigned n) { return std::string(months[n]); }));
  }
  return out;
}

std::string duration(std::chrono::milliseconds d) {
  std::int64_t left = d.count() / 1000;
  words out;
  const auto take = [&](std::int64_t unit, std::string_view name) {
    if (const std::int64_t n = left / unit; n > 0) {
      out.push_back(std::to_string(n) + " " + std::string(name) + (n == 1 ? "" : "s"));
    }
    left %= unit;
  };
  take(86'400, "day");
  take(3600, "hour");
  take(60, "minute");
  take(1, "second");
  return joined(out);
}

}  // namespace

std::string cron_schedule::describe() const {
  if (line_.every > milliseconds(0)) return "every " + duration(line_.every);
  return time_part(line_.fields) + day_part(line_.fields) + ", " + zone();
}

}  // namespace sluice::jobs
