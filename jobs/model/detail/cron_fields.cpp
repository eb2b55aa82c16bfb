#include "jobs/model/detail/cron_fields.hpp"

#include <algorithm>
#include <bit>

namespace sluice::jobs::detail {

namespace chrono = std::chrono;
using chrono::local_days;
using chrono::local_seconds;

namespace {

constexpr std::uint32_t bit(unsigned n) {
  return std::uint32_t{1} << n;
}

// Returns the lowest bit of `set` at or above `from`, or 64.
unsigned next_bit(std::uint64_t set, unsigned from) {
  if (from >= 64) return 64;
  return static_cast<unsigned>(std::countr_zero(set & (~std::uint64_t{0} << from)));
}

// Returns the weekday (Monday to Friday) nearest to a day, within its month.
unsigned nearest_weekday(unsigned day, unsigned first_weekday, unsigned length) {
  const unsigned weekday = (first_weekday + day - 1) % 7;
  if (weekday == 6) return day > 1 ? day - 1 : day + 2;
  if (weekday == 0) return day < length ? day + 1 : day - 2;
  return day;
}

}  // namespace

std::uint32_t cron_fields::days_of(chrono::year_month month) const {
  const auto length = static_cast<unsigned>((month / chrono::last).day());
  const unsigned first = chrono::weekday(local_days(month / 1)).c_encoding();
  const std::uint32_t whole = (bit(length) - 1) << 1U;  // bits 1 to length

  std::uint32_t by_date = days & whole;
  if (last_day) by_date |= bit(length);
  if (last_nearest) by_date |= bit(nearest_weekday(length, first, length));
  for (std::uint32_t rest = nearest & whole; rest != 0; rest &= rest - 1) {
    by_date |= bit(nearest_weekday(static_cast<unsigned>(std::countr_zero(rest)), first, length));
  }

  std::uint32_t by_weekday = 0;
  for (unsigned day = 1; day <= length; ++day) {
    unsigned wanted = weekdays | nth_weekdays[(day - 1) / 7 + 1];
    if (day + 7 > length) wanted |= last_weekdays;
    if ((wanted >> ((first + day - 1) % 7) & 1U) != 0) by_weekday |= bit(day);
  }
  return any_day || any_weekday ? by_date & by_weekday : by_date | by_weekday;
}

bool cron_fields::ever() const {
  // The calendar repeats itself, weekdays included, every 400 years.
  for (auto month = chrono::year(2000) / 1; month < chrono::year(2400) / 1;
       month += chrono::months(1)) {
    const bool wanted = (months >> static_cast<unsigned>(month.month()) & 1U) != 0;
    if (wanted && days_of(month) != 0) return true;
  }
  return false;
}

// Returns the first matching time of day at or after a given one.
std::optional<chrono::seconds> cron_fields::next_time(chrono::seconds time_of_day) const {
  const chrono::hh_mm_ss at(time_of_day);
  auto hour = static_cast<unsigned>(at.hours().count());
  auto minute = static_cast<unsigned>(at.minutes().count());
  unsigned second = next_bit(seconds, static_cast<unsigned>(at.seconds().count()));
  // A part without a later match restarts and carries into the part before it.
  if (second == 64) {
    ++minute;
    second = next_bit(seconds, 0);
  }
  if (const unsigned next = next_bit(minutes, minute); next != minute) {
    second = next_bit(seconds, 0);
    minute = next;
  }
  if (minute == 64) {
    ++hour;
    minute = next_bit(minutes, 0);
  }
  if (const unsigned next = next_bit(hours, hour); next != hour) {
    minute = next_bit(minutes, 0);
    second = next_bit(seconds, 0);
    hour = next;
  }
  if (hour == 64) return std::nullopt;
  return chrono::hours(hour) + chrono::minutes(minute) + chrono::seconds(second);
}

std::optional<local_seconds> cron_fields::next_match(local_seconds from, local_seconds end) const {
  const auto today = chrono::floor<chrono::days>(from);
  const chrono::year_month_day date(today);
  chrono::year_month month = date.year() / date.month();
  const auto wanted = [&] { return (months >> static_cast<unsigned>(month.month()) & 1U) != 0; };
  const auto day = static_cast<unsigned>(date.day());

  std::uint32_t left = wanted() ? days_of(month) & ~(bit(day) - 1) : 0;
  if ((left & bit(day)) != 0) {
    if (const auto time = next_time(from - today)) {
      const local_seconds at = today + *time;
      return at < end ? std::optional(at) : std::nullopt;
    }
    left &= ~bit(day);
  }
  while (left == 0) {
    month += chrono::months(1);
    if (local_days(month / 1) >= end) return std::nullopt;
    if (wanted()) left = days_of(month);
  }
  const auto first = chrono::day(static_cast<unsigned>(std::countr_zero(left)));
  const local_seconds at = local_days(month / first) + next_time(chrono::seconds(0)).value();
  return at < end ? std::optional(at) : std::nullopt;
}

}  // namespace sluice::jobs::detail
