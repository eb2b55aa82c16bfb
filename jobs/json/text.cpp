#include "jobs/json/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "jobs/model/digit.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

struct unit {
  std::string_view name;
  std::int64_t ms;
};
// In descending order. All letters after a number are its unit, so "ms" is never read as "m".
constexpr std::array<unit, 5> units = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};

// Longer than every limit of the server, and far from an overflow of sums.
constexpr double longest_ms = 100.0 * 366 * 86'400'000;

error not_a_duration() {
  return {error_code::invalid,
          R"(expected a duration like "500ms", "30s", "5m", "1h" or "7d", or a number of seconds)"};
}

error not_a_time() {
  return {error_code::invalid,
          R"(expected a time like "2026-01-31T12:00:00Z" (RFC 3339, with Z or an offset))"};
}

// Takes digits with at most one point between them; false without a number, and for a number with a
// sign or an exponent.
bool take_number(std::string_view& text, double& value) {
  const std::size_t end = std::min(text.size(), text.find_first_not_of("0123456789."));
  const auto [stop, failed] =
      std::from_chars(text.data(), text.data() + end, value, std::chars_format::fixed);
  if (failed != std::errc{} || stop != text.data() + end || !is_digit(text[0]) ||
      !is_digit(text[end - 1])) {
    return false;
  }
  text.remove_prefix(end);
  return true;
}

// Takes exactly `count` digits.
bool take_digits(std::string_view& text, std::size_t count, int& value) {
  if (text.size() < count ||
      !std::all_of(text.begin(), text.begin() + static_cast<int>(count), is_digit)) {
    return false;
  }
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Rounds up, to 1000 at most: a due time must not be early.
bool take_fraction(std::string_view& text, int& ms) {
  ms = 0;
  if (!take(text, ".")) return true;
  if (text.empty() || !is_digit(text.front())) return false;
  bool has_more = false;  // than whole milliseconds
  for (int scale = 100; !text.empty() && is_digit(text.front()); scale /= 10) {
    ms += scale * (text.front() - '0');  // zero from the fourth digit on
    has_more = has_more || (scale == 0 && text.front() != '0');
    text.remove_prefix(1);
  }
  ms += has_more ? 1 : 0;
  return true;
}

bool take_offset(std::string_view& text, int& minutes) {
  minutes = 0;
  if (take(text, "Zz")) return true;
  if (text.empty()) return false;
  const int sign = text.front() == '-' ? -1 : 1;
  int hours = 0;
  if (!take(text, "+-") || !take_digits(text, 2, hours) || !take(text, ":") ||
      !take_digits(text, 2, minutes) || hours > 23 || minutes > 59) {
    return false;
  }
  minutes = sign * (hours * 60 + minutes);
  return true;
}

void append_digits(std::string& out, std::int64_t value, std::size_t width) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const auto length = static_cast<std::size_t>(end - digits.data());
  out.append(width > length ? width - length : 0, '0');
  out.append(digits.data(), length);
}

}  // namespace

result<milliseconds> duration_of_seconds(double seconds) {
  const double ms = seconds * 1000;
  if (!(ms >= 0 && ms <= longest_ms)) return not_a_duration();
  // Rounded up, without the error that the multiplication may have added.
  const double added = std::min(ms * 1e-12, 1e-3);
  return milliseconds(static_cast<std::int64_t>(std::ceil(ms - added)));
}

result<milliseconds> parse_duration(std::string_view text) {
  double value = 0;
  double total = 0;
  auto allowed = units.begin();  // units must be in descending order
  if (text.empty()) return not_a_duration();
  while (!text.empty()) {
    if (!take_number(text, value)) return not_a_duration();
    if (text.empty() && allowed == units.begin()) return duration_of_seconds(value);
    const auto name = text.substr(0, std::min(text.size(), text.find_first_of("0123456789.")));
    const auto found = std::find_if(allowed, units.end(), [&](unit u) { return u.name == name; });
    if (found == units.end()) return not_a_duration();
    total += value * static_cast<double>(found->ms);
    text.remove_prefix(name.size());
    allowed = found + 1;
  }
  return duration_of_seconds(total / 1000);
}

std::string format_duration(milliseconds d) {
  check(d >= milliseconds(0), "sluice::jobs::format_duration", "a duration that is not negative");
  if (d == milliseconds(0)) return "0s";
  const auto u = std::ranges::find_if(units, [&](unit x) { return d.count() % x.ms == 0; });
  return std::to_string(d.count() / u->ms) + std::string(u->name);
}

result<unix_time> parse_time(std::string_view text) {
  using namespace std::chrono;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0, offset = 0;
  const bool read = take_digits(text, 4, year) && take(text, "-") && take_digits(text, 2, month) &&
                    take(text, "-") && take_digits(text, 2, day) && take(text, "Tt ") &&
                    take_digits(text, 2, hour) && take(text, ":") && take_digits(text, 2, minute) &&
                    take(text, ":") && take_digits(text, 2, second) && take_fraction(text, ms) &&
                    take_offset(text, offset) && text.empty();
  const year_month_day date(std::chrono::year(year),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day)));
  // Second 60, a leap second, is read as 59: stored times have no leap seconds.
  if (!read || !date.ok() || hour > 23 || minute > 59 || second > 60) return not_a_time();
  const auto t = sys_days(date).time_since_epoch() + hours(hour) + minutes(minute - offset) +
                 seconds(std::min(second, 59)) + std::chrono::milliseconds(ms);
  return unix_time{duration_cast<milliseconds>(t).count()};
}

std::string format_time(unix_time t) {
  using namespace std::chrono;
  constexpr std::int64_t first = -62'167'219'200'000, last = 253'402'300'799'999;
  const sys_time<milliseconds> when{milliseconds(std::clamp(t.ms, first, last))};
  const auto midnight = floor<days>(when);
  const year_month_day date(midnight);
  const hh_mm_ss clock(when - midnight);
  std::string out;
  out.reserve(24);
  append_digits(out, int(date.year()), 4);
  out += '-';
  append_digits(out, unsigned(date.month()), 2);
  out += '-';
  append_digits(out, unsigned(date.day()), 2);
  out += 'T';
  append_digits(out, clock.hours().count(), 2);
  out += ':';
  append_digits(out, clock.minutes().count(), 2);
  out += ':';
  append_digits(out, clock.seconds().count(), 2);
  out += '.';
  append_digits(out, clock.subseconds().count(), 3);
  out += 'Z';
  return out;
}

}  // namespace sluice::jobs
