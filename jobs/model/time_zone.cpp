#include "jobs/model/time_zone.hpp"

#include <algorithm>
#include <utility>

#include "jobs/model/detail/tzif.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {

using detail::time_max;
using detail::time_min;
using detail::tzif;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

struct time_zone::rules {
  std::string name{};
  tzif table{};
};

namespace {

time_zone::offset offset_of(const tzif::local_type& type) {
  return {type.from_utc, type.is_dst, type.abbreviation};
}

}  // namespace

time_zone time_zone::utc(std::string_view name) {
  return time_zone(std::make_shared<const rules>(
      rules{.name = std::string(name), .table = {.types = {{.abbreviation = "UTC"}}}}));
}

result<time_zone> time_zone::read(std::string_view name, std::string_view bytes) {
  auto table = tzif::parse(bytes);
  if (!table) {
    return error{table.error().code, "time zone '" + std::string(name) +
                                         "': its file is damaged: " + table.error().message};
  }
  return time_zone(
      std::make_shared<const rules>(rules{.name = std::string(name), .table = std::move(*table)}));
}

const std::string& time_zone::name() const noexcept {
  return rules_->name;
}

time_zone::period time_zone::period_at(sys_seconds t) const {
  const tzif& table = rules_->table;
  t = std::clamp(t, time_min, time_max - seconds(1));
  const auto next = std::ranges::upper_bound(table.changes, t, {}, &tzif::change::when);
  if (next == table.changes.end() && table.after) return period_of_rule(t);
  return period_of_table(static_cast<std::size_t>(next - table.changes.begin()));
}

// The period before the change `next`.
time_zone::period time_zone::period_of_table(std::size_t next) const {
  const auto& [types, changes, after] = rules_->table;
  const std::size_t type = next == 0 ? 0 : changes[next - 1].type;
  return {.begin = next == 0 ? time_min : changes[next - 1].when,
          .end = next == changes.size() ? time_max : changes[next].when,
          .offset = offset_of(types[type])};
}

// The period of a time at or after the last change of the table.
time_zone::period time_zone::period_of_rule(sys_seconds t) const {
  const auto& [types, changes, after] = rules_->table;
  const sys_seconds begin = changes.empty() ? time_min : changes.back().when;
  if (!after->dst) {
    return {begin, time_max, {after->from_utc, false, after->abbreviation}};
  }
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(t));
  const auto around = after->changes_around(date.year());
  const auto next = std::ranges::upper_bound(around, t, {}, &detail::posix_tz::change::when);
  check(next != around.begin() && next != around.end(), "sluice::jobs::time_zone",
        "a change of the clock before and after every moment");
  const auto& last = *std::prev(next);
  const sys_seconds end = std::min(next->when, time_max);
  // Until the rule's first change, the table's last offset applies.
  if (last.when <= begin && !changes.empty()) {
    return {begin, end, offset_of(types[changes.back().type])};
  }
  if (last.to_dst) {
    return {
        std::max(last.when, begin), end, {after->dst->from_utc, true, after->dst->abbreviation}};
  }
  return {std::max(last.when, begin), end, {after->from_utc, false, after->abbreviation}};
}

time_zone::moments time_zone::resolve(local_seconds t) const {
  const seconds since =
      std::clamp(t.time_since_epoch(), time_min.time_since_epoch(), time_max.time_since_epoch());
  t = local_seconds(since);
  // The largest offset from UTC: the moments searched for are within it.
  const sys_seconds from(since - detail::utc_offset_max);
  const sys_seconds latest(since + detail::utc_offset_max);
  moments found{.kind = shown::never};
  sys_seconds after_gap = latest;
  period p = period_at(from);
  while (true) {
    const sys_seconds when = p.to_utc(t);
    // The first and the last period are unbounded.
    const bool begun = when >= p.begin || p.begin == time_min;
    const bool ended = when >= p.end && p.end != time_max;
    if (begun && !ended) {
      if (found.kind == shown::never) found = {shown::once, when, when};
      if (found.first != when) found = {shown::twice, found.first, when};
    }
    if (p.end > latest || p.end >= time_max) break;
    const period next = period_at(p.end);
    if (p.local_end() <= t && t < next.local_begin()) after_gap = std::min(after_gap, next.begin);
    p = next;
  }
  if (found.kind == shown::never) found.first = found.second = after_gap;
  return found;
}

}  // namespace sluice::jobs
