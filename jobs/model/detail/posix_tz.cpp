#include "jobs/model/detail/posix_tz.hpp"

#include <algorithm>

#include "jobs/model/digit.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::sys_days;
using std::chrono::year;

constexpr std::size_t text_bytes_max = 256;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads the text from left to right. The first error is kept and ends the parse.
class rule_reader {
 public:
  explicit rule_reader(std::string_view text) : text_(text) {}

  bool ok() const { return message_.empty(); }
  const std::string& message() const { return message_; }
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  void fail(std::string_view expected) {
    if (!ok()) return;
    message_ = "expected " + std::string(expected) + " at character " + std::to_string(at_ + 1);
    at_ = text_.size();
  }
  bool take(char c) {
    if (!ok() || peek() != c) return false;
    ++at_;
    return true;
  }
  void want(char c) {
    if (!take(c)) fail("'" + std::string(1, c) + "'");
  }

  unsigned number(unsigned least, unsigned most, std::string_view unit) {
    const std::size_t begin = at_;
    unsigned value = 0;
    while (is_digit(peek()) && at_ - begin < 4) {
      value = value * 10 + static_cast<unsigned>(text_[at_++] - '0');
    }
    if (at_ == begin || value < least || value > most) {
      at_ = begin;
      fail(std::string(unit) + " from " + std::to_string(least) + " to " + std::to_string(most));
      return least;
    }
    return value;
  }

  // At least three letters, or letters, digits, + and - between < and >.
  std::string abbreviation() {
    const bool quoted = take('<');
    const std::size_t begin = at_;
    const auto belongs = [&](char c) {
      return is_letter(c) || (quoted && (is_digit(c) || c == '+' || c == '-'));
    };
    while (belongs(peek())) ++at_;
    std::string name(text_.substr(begin, at_ - begin));
    if (name.size() < 3) fail("a zone abbreviation of three or more characters");
    if (quoted) want('>');
    return name;
  }

  // [+-]h[h][h][:mm[:ss]]
  seconds clock(unsigned hours_max) {
    const bool negative = take('-');
    if (!negative) take('+');
    seconds value = hours(number(0, hours_max, "hours"));
    if (take(':')) value += std::chrono::minutes(number(0, 59, "minutes"));
    if (take(':')) value += seconds(number(0, 59, "seconds"));
    return negative ? -value : value;
  }

  yearly_moment moment() {
    yearly_moment m;
    want(',');
    if (take('M')) {
      m.kind = yearly_moment::form::weekday;
      m.month = number(1, 12, "a month");
      want('.');
      m.week = number(1, 5, "a week");
      want('.');
      m.day = number(0, 6, "a weekday");
    } else if (take('J')) {
      m.kind = yearly_moment::form::day_not_leap;
      m.day = number(1, 365, "a day");
    } else {
      m.day = number(0, 365, "a day");
    }
    if (take('/')) m.time = clock(167);
    return m;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string message_;
};

}  // namespace

sys_seconds yearly_moment::in(year y) const {
  namespace chrono = std::chrono;
  switch (kind) {
    case form::weekday: {
      const chrono::year_month in_month = y / chrono::month(month);
      const chrono::weekday wanted(day);
      if (week == 5) return sys_days(in_month / wanted[chrono::last]) + time;
      return sys_days(in_month / wanted[week]) + time;
    }
    case form::day_not_leap: {
      const bool after_february = y.is_leap() && day > 59;
      return sys_days(y / 1 / 1) + days(day - 1 + (after_february ? 1 : 0)) + time;
    }
    case form::day_of_year:
      break;
  }
  return sys_days(y / 1 / 1) + days(day) + time;
}

result<posix_tz> posix_tz::parse(std::string_view text) {
  if (text.size() > text_bytes_max) {
    return error{error_code::invalid,
                 "longer than " + std::to_string(text_bytes_max) + " characters"};
  }
  rule_reader in(text);
  posix_tz tz;
  tz.abbreviation = in.abbreviation();
  tz.from_utc = -in.clock(24);  // POSIX counts westward
  if (in.ok() && !in.at_end()) {
    daylight dst;
    dst.abbreviation = in.abbreviation();
    dst.from_utc = tz.from_utc + hours(1);
    if (in.ok() && in.peek() != ',') dst.from_utc = -in.clock(24);
    dst.begins = in.moment();
    dst.ends = in.moment();
    tz.dst = std::move(dst);
    if (in.ok() && !in.at_end()) in.fail("the end of the rule");
  }
  if (!in.ok()) return error{error_code::invalid, in.message()};
  return tz;
}

std::array<posix_tz::change, 10> posix_tz::changes_around(year y) const {
  check(dst.has_value(), "sluice::jobs::posix_tz::changes_around", "a rule with two offsets");
  std::array<change, 10> changes;
  std::size_t at = 0;
  for (year of = y - std::chrono::years(2); of <= y + std::chrono::years(2); ++of) {
    changes[at++] = {dst->begins.in(of)-from_utc, true};
    changes[at++] = {dst->ends.in(of)-dst->from_utc, false};
  }
  // All-year daylight saving time ends at the moment at which it begins again, so it never ends.
  std::ranges::sort(changes, [](const change& a, const change& b) {
    return a.when != b.when ? a.when < b.when : a.to_dst < b.to_dst;
  });
  return changes;
}

}  // namespace sluice::jobs::detail
