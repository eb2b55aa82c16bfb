#include "jobs/model/cron_schedule.hpp"

#include <algorithm>
#include <utility>

#include "jobs/model/detail/cron_parse.hpp"

namespace sluice::jobs {
namespace {

using detail::hour_form;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

constexpr sys_seconds earliest = sys_days(year(1) / 1 / 1);
constexpr sys_seconds latest = sys_days(year(9999) / 1 / 1);
constexpr std::chrono::days search_max(36'525);
// No two clocks of a zone are further apart than this.
constexpr std::chrono::hours offsets_apart_max(52);

// Returns the local time that the clock had reached when the period began. Earlier local times are
// repeated; local times between it and the period's first local time are skipped.
local_seconds shown_before(const time_zone& zone, const time_zone::period& p) {
  time_zone::period before = zone.period_at(p.begin - seconds(1));
  if (before.end > p.begin) return p.local_begin();  // `p` is the first period
  local_seconds mark = before.local_end();
  while (before.begin > p.begin - offsets_apart_max) {
    const time_zone::period earlier = zone.period_at(before.begin - seconds(1));
    if (earlier.begin >= before.begin) break;
    before = earlier;
    mark = std::max(mark, before.local_end());
  }
  return mark;
}

std::optional<unix_time> next_multiple(milliseconds every, unix_time t) {
  const std::int64_t step = every.count();
  std::int64_t whole = t.ms / step;
  if (t.ms % step < 0) --whole;  // towards the past, also before 1970
  const sys_seconds at = to_seconds({whole * step}) + std::chrono::duration_cast<seconds>(every);
  if (at < earliest || at >= latest) return std::nullopt;
  return to_unix_time(at);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(space), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(space) + 1);
}

}  // namespace

cron_schedule::cron_schedule(std::string_view text, time_zone zone, const detail::cron_line& line)
    : text_(text), zone_(std::move(zone)), line_(line) {}

result<cron_schedule> cron_schedule::parse(std::string_view text, std::string_view zone) {
  auto found = time_zone::find(zone);
  if (!found) return found.error();
  return parse(text, std::move(*found));
}

result<cron_schedule> cron_schedule::parse(std::string_view text, time_zone zone) {
  if (text.size() > text_bytes_max) {
    return detail::cron_error(text, 0,
                              "is longer than " + std::to_string(text_bytes_max) + " characters");
  }
  text = trimmed(text);
  auto line = detail::parse_cron(text);
  if (!line) return line.error();
  return cron_schedule(text, std::move(zone), *line);
}

std::optional<unix_time> cron_schedule::next_after(unix_time t) const {
  if (t >= to_unix_time(latest)) return std::nullopt;
  t = std::max(t, to_unix_time(earliest - seconds(1)));
  if (line_.every > milliseconds(0)) return next_multiple(line_.every, t);

  const detail::cron_fields& fields = line_.fields;
  const sys_seconds from = to_seconds(t) + seconds(1);
  const sys_seconds end = std::min<sys_seconds>(from + search_max, latest);
  // One period at a time: within a period, local time and UTC differ by a constant.
  for (auto p = zone_.period_at(from);; p = zone_.period_at(p.end)) {
    const sys_seconds begin = std::max(from, p.begin);
    local_seconds at = p.to_local(begin);
    if (fields.hours_as != hour_form::every) {
      const local_seconds mark = shown_before(zone_, p);
      const bool skips = p.begin >= from && mark < p.local_begin();
      if (skips && fields.next_match(mark, p.local_begin())) return to_unix_time(p.begin);
      if (fields.hours_as == hour_form::fixed) at = std::max(at, mark);
    }
    const local_seconds local_end = p.to_local(std::min(p.end, end));
    if (at < local_end) {
      if (const auto found = fields.next_match(at, local_end))
        return to_unix_time(p.to_utc(*found));
    }
    if (p.end >= end) return std::nullopt;  // `end` is before the last period ends
  }
}

std::vector<unix_time> cron_schedule::upcoming(unix_time after, std::size_t count) const {
  std::vector<unix_time> runs;
  count = std::min(count, upcoming_max);
  while (runs.size() < count) {
    const auto next = next_after(after);
    if (!next) break;
    runs.push_back(*next);
    after = *next;
  }
  return runs;
}

}  // namespace sluice::jobs
