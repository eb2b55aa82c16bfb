// Compares the runs of random cron lines with a model that walks through local time step by step,
// without periods, bit sets or months.
//
// SLUICE_SEED=n runs one seed, SLUICE_LONG=1 runs more of them.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "jobs/model/cron_schedule.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::cron_model_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array<const char*, 10> zones = {"UTC",
                                               "Europe/Berlin",
                                               "America/New_York",
                                               "Australia/Lord_Howe",
                                               "Pacific/Apia",
                                               "Asia/Kathmandu",
                                               "America/St_Johns",
                                               "Africa/Casablanca",
                                               "Asia/Pyongyang",
                                               "Antarctica/Troll"};

// A line and its meaning, generated together.
struct made_line {
  std::string text{};
  std::set<unsigned> second{0}, minute{}, hour{}, day{}, month{}, weekday{};
  bool day_star = false, weekday_star = false, last_day = false;
  unsigned last_weekday = 9;          // none
  unsigned nth = 0, nth_weekday = 9;  // none
  enum { fixed, step, every } hours_as = fixed;

  bool matches(local_seconds t) const {
    const auto date = std::chrono::floor<std::chrono::days>(t);
    const std::chrono::year_month_day ymd(date);
    const std::chrono::hh_mm_ss time(t - date);
    const auto has = [](const std::set<unsigned>& set, auto value) {
      return set.contains(static_cast<unsigned>(value));
    };
    if (!has(second, time.seconds().count()) || !has(minute, time.minutes().count()) ||
        !has(hour, time.hours().count()) || !has(month, unsigned(ymd.month()))) {
      return false;
    }
    const unsigned wd = std::chrono::weekday(date).c_encoding();
    const bool is_last =
        std::chrono::year_month_day(date + std::chrono::days(1)).month() != ymd.month();
    const bool is_last_week =
        std::chrono::year_month_day(date + std::chrono::days(7)).month() != ymd.month();
    const bool by_day = has(day, unsigned(ymd.day())) || (last_day && is_last);
    const bool by_weekday = has(weekday, wd) || (wd == last_weekday && is_last_week) ||
                            (wd == nth_weekday && (unsigned(ymd.day()) + 6) / 7 == nth);
    return day_star || weekday_star ? by_day && by_weekday : by_day || by_weekday;
  }
};

class line_maker {
 public:
  explicit line_maker(random& dice) : dice_(dice) {}

  made_line line() {
    made_line m;
    if (chance(15)) m.text = field(m.second, 0, 59, 70) + " ";
    m.text += field(m.minute, 0, 59, 80) + " ";
    const std::string hours = field(m.hour, 0, 23, 50);
    m.hours_as = m.hour.size() == 24    ? made_line::every
                 : hours.front() == '*' ? made_line::step
                                        : made_line::fixed;
    m.text += hours + " " + days(m) + " " + field(m.month, 1, 12, 10) + " " + weekdays(m);
    return m;
  }

 private:
  bool chance(unsigned percent) { return dice_.below(100) < percent; }
  unsigned from(unsigned least, unsigned most) { return least + dice_.below(most - least + 1); }

  std::string days(made_line& m) {
    std::string text = chance(10) ? "L" : field(m.day, 1, 31, 30);
    m.last_day = text == "L";
    m.day_star = text.front() == '*';
    return text;
  }

  std::string weekdays(made_line& m) {
    if (chance(5)) {
      m.last_weekday = from(0, 6);
      return std::to_string(m.last_weekday) + "L";
    }
    if (chance(5)) {
      m.nth_weekday = from(0, 6);
      m.nth = from(1, 4);
      return std::to_string(m.nth_weekday) + "#" + std::to_string(m.nth);
    }
    std::string text = field(m.weekday, 0, 7, 30);
    if (m.weekday.contains(7)) m.weekday.insert(0);
    m.weekday_star = text.front() == '*';
    return text;
  }

  // A list of one to three items; `restricted` percent are not simply *.
  std::string field(std::set<unsigned>& values, unsigned least, unsigned most,
                    unsigned restricted) {
    values.clear();
    std::string text;
    const unsigned items = chance(restricted) ? from(1, 3) : 0;
    if (items == 0) {
      for (unsigned v = least; v <= most; ++v) values.insert(v);
      return "*";
    }
    for (unsigned i = 0; i < items; ++i) {
      if (i > 0) text += ",";
      unsigned a = from(least, most);
      unsigned b = from(a, most);
      unsigned by = 1;
      if (chance(20)) {
        a = least;
        b = most;
        text += "*";
      } else {
        text += std::to_string(a);
        if (chance(50)) b = a;
        if (b != a) text += "-" + std::to_string(b);
      }
      if (b != a && (text.back() == '*' || chance(30))) {
        by = from(1, most);
        text += "/" + std::to_string(by);
      }
      for (unsigned v = a; v <= b; v += by) values.insert(v);
    }
    return text;
  }

  random& dice_;
};

// Returns all runs from `begin` to before `end`, found by visiting every step of real time.
std::vector<sys_seconds> walk(const made_line& line, const time_zone& zone, sys_seconds begin,
                              sys_seconds end, seconds step) {
  std::vector<sys_seconds> runs;
  // Starts early enough to find the local times that were shown before.
  sys_seconds t = begin - 60h;
  local_seconds shown_to = local_seconds(t.time_since_epoch() + zone.period_at(t).offset.from_utc);
  for (; t < end; t += step) {
    const local_seconds local(t.time_since_epoch() + zone.period_at(t).offset.from_utc);
    bool runs_now = line.matches(local);
    if (local < shown_to && line.hours_as == made_line::fixed) runs_now = false;
    if (line.hours_as != made_line::every) {
      for (auto skipped = shown_to; skipped < local && !runs_now; skipped += step) {
        runs_now = line.matches(skipped);
      }
    }
    shown_to = std::max(shown_to, local + step);
    if (runs_now && t >= begin) runs.push_back(t);
  }
  return runs;
}

std::vector<sys_seconds> ask(const cron_schedule& cron, sys_seconds begin, sys_seconds end) {
  std::vector<sys_seconds> runs;
  auto next = cron.next_after(to_unix_time(begin - 1s));
  while (next && to_seconds(*next) < end) {
    runs.push_back(to_seconds(*next));
    // Every starting moment in between has the same next run.
    EXPECT_EQ(cron.next_after(*next - milliseconds(1)), next) << cron.text() << " " << next->ms;
    next = cron.next_after(*next);
  }
  return runs;
}

struct tally {
  std::size_t lines = 0, runs = 0;
};

void compare(const made_line& line, const time_zone& zone, sys_seconds begin, sys_seconds end,
             seconds step, tally& count) {
  const auto parsed = cron_schedule::parse(line.text, zone);
  if (!parsed) {  // such as the 31st of February
    ASSERT_NE(parsed.error().message.find("never occurs"), std::string::npos)
        << parsed.error().message;
    return;
  }
  const auto expected = walk(line, zone, begin, end, step);
  const auto found = ask(*parsed, begin, end);
  ++count.lines;
  count.runs += expected.size();
  if (found == expected) return;
  const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  const auto when = [](auto it, auto last) {
    return it == last ? std::string("none") : std::to_string(it->time_since_epoch().count());
  };
  FAIL() << "'" << line.text << "' in " << zone.name() << " from "
         << begin.time_since_epoch().count() << ": found " << when(a, found.end()) << ", expected "
         << when(b, expected.end());
}

// Minute by minute over some days, around a clock change or at random.
void compare_minutes(random& dice, tally& count) {
  line_maker maker(dice);
  for (const char* name : zones) {
    const time_zone zone = *time_zone::find(name);
    for (int i = 0; i < 12; ++i) {
      made_line line = maker.line();
      if (line.second.size() != 1 || !line.second.contains(0)) continue;
      sys_seconds begin = sys_days(std::chrono::year(1975) / 1 / 1) +
                          std::chrono::days(dice.below(36'000)) + 1min * dice.below(1440);
      const auto p = zone.period_at(begin);
      if (i % 4 != 0 && p.end < sys_days(std::chrono::year(2090) / 1 / 1)) {
        begin = p.end - 1min * (dice.below(2880));
        // The model walks in whole minutes.
        if (begin.time_since_epoch() % 60s != 0s) continue;
      }
      if (zone.period_at(begin).offset.from_utc % 60s != 0s) continue;
      ASSERT_NO_FATAL_FAILURE(compare(line, zone, begin, begin + std::chrono::days(4), 60s, count));
    }
  }
}

// Second by second over the hours around a clock change.
void compare_seconds(random& dice, tally& count) {
  line_maker maker(dice);
  for (const char* name : {"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"}) {
    const time_zone zone = *time_zone::find(name);
    const auto p = zone.period_at(sys_days(std::chrono::year(2011) / 1 / 1) +
                                  std::chrono::days(dice.below(3650)));
    if (p.end > sys_days(std::chrono::year(2090) / 1 / 1)) continue;
    const sys_seconds begin = p.end - 90min;
    ASSERT_NO_FATAL_FAILURE(compare(maker.line(), zone, begin, begin + 3h, 1s, count));
  }
}

TEST(CronModel, RunsExactlyAtTheMatchesOfAnExhaustiveWalk) {
  const auto seeds =
      sluice::testing::seeds(sluice::testing::test_name(), {.ci = 10, .full = 100, .sanitized = 2});
  tally count;
  for (std::uint64_t i = 0; i < seeds.count && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds.first + i;
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    random dice(seed);
    compare_minutes(dice, count);
    if (!HasFailure()) compare_seconds(dice, count);
  }
  std::printf("[  MODEL   ] %zu lines, %zu runs\n", count.lines, count.runs);
  EXPECT_GT(count.runs, seeds.count * 100);
}

}  // namespace
}  // namespace sluice::jobs::cron_model_test
