#include "jobs/model/cron_schedule.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace sluice::jobs::cron_schedule_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr unix_time at(std::chrono::year_month_day day, std::chrono::seconds time = 0s) {
  return to_unix_time(sys_days(day) + time);
}

cron_schedule cron(std::string_view text, std::string_view zone = "UTC") {
  auto parsed = cron_schedule::parse(text, zone);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : *cron_schedule::parse("@yearly");
}

std::string message_of(std::string_view text, std::string_view zone = "UTC") {
  const auto parsed = cron_schedule::parse(text, zone);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, error_code::invalid);
  return parsed.error().message;
}

// "2026-03-29 01:00:00", in UTC.
std::string shown(unix_time t) {
  const auto seconds = to_seconds(t);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(seconds - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

std::vector<std::string> runs(const cron_schedule& c, unix_time after, std::size_t count) {
  std::vector<std::string> out;
  for (const unix_time t : c.upcoming(after, count)) out.push_back(shown(t));
  return out;
}

using times = std::vector<std::string>;

TEST(CronSchedule, RunsAtATimeOfDay) {
  EXPECT_EQ(runs(cron("30 9 * * *"), at(2026y / 1 / 1, 9h + 30min), 2),
            (times{"2026-01-02 09:30:00", "2026-01-03 09:30:00"}));
}

TEST(CronSchedule, NextIsStrictlyAfter) {
  const auto c = cron("* * * * * *");
  EXPECT_EQ(c.next_after({1000})->ms, 2000);
  EXPECT_EQ(c.next_after({999})->ms, 1000);
  EXPECT_EQ(c.next_after({1001})->ms, 2000);
  EXPECT_EQ(c.next_after({-1})->ms, 0);
  EXPECT_EQ(c.next_after({-1001})->ms, -1000);
}

TEST(CronSchedule, ReadsListsRangesAndSteps) {
  EXPECT_EQ(runs(cron("5,10-12,50-58/4 0 1 1 *"), at(2026y / 1 / 1), 7),
            (times{"2026-01-01 00:05:00", "2026-01-01 00:10:00", "2026-01-01 00:11:00",
                   "2026-01-01 00:12:00", "2026-01-01 00:50:00", "2026-01-01 00:54:00",
                   "2026-01-01 00:58:00"}));
  EXPECT_EQ(runs(cron("*/20 */12 * * *"), at(2026y / 1 / 1), 4),
            (times{"2026-01-01 00:20:00", "2026-01-01 00:40:00", "2026-01-01 12:00:00",
                   "2026-01-01 12:20:00"}));
  EXPECT_EQ(runs(cron("15-20/5,40 30 3 * * ?"), at(2026y / 1 / 1), 4),
            (times{"2026-01-01 03:30:15", "2026-01-01 03:30:20", "2026-01-01 03:30:40",
                   "2026-01-02 03:30:15"}));
}

TEST(CronSchedule, ReadsNamesInAnyCase) {
  EXPECT_EQ(runs(cron("0 0 * FEB Mon"), at(2026y / 1 / 1), 2),
            (times{"2026-02-02 00:00:00", "2026-02-09 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 1 jan-mar,Dec *"), at(2026y / 1 / 1), 4),
            (times{"2026-02-01 00:00:00", "2026-03-01 00:00:00", "2026-12-01 00:00:00",
                   "2027-01-01 00:00:00"}));
}

TEST(CronSchedule, KnowsSundayAsZeroAndSeven) {
  const times sundays{"2026-01-04 00:00:00", "2026-01-11 00:00:00"};
  for (const char* text : {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * 7-7", "0 0 * * 0-0"}) {
    EXPECT_EQ(runs(cron(text), at(2026y / 1 / 1), 2), sundays) << text;
  }
  EXPECT_EQ(runs(cron("0 0 * * sat-sun"), at(2026y / 1 / 1), 3),
            (times{"2026-01-03 00:00:00", "2026-01-04 00:00:00", "2026-01-10 00:00:00"}));
}

TEST(CronSchedule, MatchesEitherDayFieldWhenBothAreGiven) {
  EXPECT_EQ(runs(cron("0 0 13 * fri"), at(2026y / 1 / 9), 3),
            (times{"2026-01-13 00:00:00", "2026-01-16 00:00:00", "2026-01-23 00:00:00"}));
}

TEST(CronSchedule, MatchesBothDayFieldsWhenOneBeginsWithAStar) {
  EXPECT_EQ(runs(cron("0 0 */2 * fri"), at(2026y / 1 / 1), 3),
            (times{"2026-01-09 00:00:00", "2026-01-23 00:00:00", "2026-02-13 00:00:00"}));
}

TEST(CronSchedule, KnowsTheLastDayOfAMonth) {
  EXPECT_EQ(runs(cron("0 0 L * *"), at(2028y / 1 / 1), 3),
            (times{"2028-01-31 00:00:00", "2028-02-29 00:00:00", "2028-03-31 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 1,l * *"), at(2026y / 1 / 1), 2),
            (times{"2026-01-31 00:00:00", "2026-02-01 00:00:00"}));
}

TEST(CronSchedule, KnowsTheLastAndTheNthWeekday) {
  EXPECT_EQ(runs(cron("0 0 * * 5L"), at(2026y / 1 / 1), 2),
            (times{"2026-01-30 00:00:00", "2026-02-27 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 * * friL"), at(2026y / 1 / 1), 1), (times{"2026-01-30 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 * * 1#2"), at(2026y / 1 / 1), 2),
            (times{"2026-01-12 00:00:00", "2026-02-09 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 * * mon#1,7#5"), at(2026y / 1 / 1), 3),
            (times{"2026-01-05 00:00:00", "2026-02-02 00:00:00", "2026-03-02 00:00:00"}));
}

TEST(CronSchedule, KnowsTheNearestWeekday) {
  // The 15th: a Sunday in February 2026 and March, a Saturday in August.
  EXPECT_EQ(runs(cron("0 0 15W 1,2,8 *"), at(2026y / 1 / 1), 3),
            (times{"2026-01-15 00:00:00", "2026-02-16 00:00:00", "2026-08-14 00:00:00"}));
  // The result is in the same month: 1 August 2026 is a Saturday, 31 May a Sunday.
  EXPECT_EQ(runs(cron("0 0 1W 8 *"), at(2026y / 1 / 1), 1), (times{"2026-08-03 00:00:00"}));
  EXPECT_EQ(runs(cron("0 0 31w,LW 5 *"), at(2026y / 1 / 1), 2),
            (times{"2026-05-29 00:00:00", "2027-05-31 00:00:00"}));
}

TEST(CronSchedule, KnowsTheShortNames) {
  const auto first = [](std::string_view text) {
    return runs(cron(text), at(2026y / 1 / 1, 1s), 1).at(0);
  };
  EXPECT_EQ(first("@yearly"), "2027-01-01 00:00:00");
  EXPECT_EQ(first("@annually"), "2027-01-01 00:00:00");
  EXPECT_EQ(first("@monthly"), "2026-02-01 00:00:00");
  EXPECT_EQ(first("@weekly"), "2026-01-04 00:00:00");
  EXPECT_EQ(first("@daily"), "2026-01-02 00:00:00");
  EXPECT_EQ(first("@Midnight"), "2026-01-02 00:00:00");
  EXPECT_EQ(first("@hourly"), "2026-01-01 01:00:00");
}

TEST(CronSchedule, CountsEveryFromTheBeginningOf1970) {
  const auto c = cron("@every 90s");
  EXPECT_EQ(c.next_after({0})->ms, 90'000);
  EXPECT_EQ(c.next_after({89'999})->ms, 90'000);
  EXPECT_EQ(c.next_after({90'000})->ms, 180'000);
  EXPECT_EQ(c.next_after({-1})->ms, 0);
  EXPECT_EQ(c.next_after({-90'000})->ms, 0);
  EXPECT_EQ(c.next_after({-90'001})->ms, -90'000);
  EXPECT_EQ(cron("@every 1d2h3m4s").next_after({0})->ms, 93'784'000);
  EXPECT_EQ(cron("@every  366d").next_after({0})->ms, 366LL * 86'400'000);
}

TEST(CronSchedule, FindsRareDays) {
  EXPECT_EQ(runs(cron("0 0 29 2 *"), at(2096y / 3 / 1), 2),
            (times{"2104-02-29 00:00:00", "2108-02-29 00:00:00"}));
  // A fifth Monday in February: in leap years that begin on a Thursday.
  EXPECT_EQ(runs(cron("0 0 * 2 1#5"), at(2072y / 1 / 1), 2),
            (times{"2072-02-29 00:00:00", "2112-02-29 00:00:00"}));
}

TEST(CronSchedule, EndsBeforeTheEndOfTheCalendar) {
  const auto c = cron("0 0 1 1 *");
  EXPECT_EQ(shown(*c.next_after(at(9997y / 1 / 1))), "9998-01-01 00:00:00");
  EXPECT_EQ(c.next_after(at(9998y / 1 / 1)), std::nullopt);
  EXPECT_EQ(c.next_after({INT64_MAX}), std::nullopt);
  EXPECT_EQ(shown(*c.next_after({INT64_MIN})), "0001-01-01 00:00:00");
  EXPECT_EQ(cron("@every 1s").next_after({INT64_MAX}), std::nullopt);
  EXPECT_EQ(cron("@every 1s").upcoming(at(9998y / 12 / 31, 24h - 3s), 5).size(), 2u);
}

TEST(CronSchedule, ReturnsTheRequestedNumberOfRuns) {
  EXPECT_EQ(cron("* * * * *").upcoming({0}, 0).size(), 0u);
  EXPECT_EQ(cron("* * * * *").upcoming({0}, 5).size(), 5u);
  EXPECT_EQ(cron("* * * * *").upcoming({0}, 1'000'000).size(), cron_schedule::upcoming_max);
}

// In Berlin 02:00 became 03:00 (01:00 UTC) on 2026-03-29.
TEST(CronSchedule, RunsASkippedTimeOnceAfterTheGap) {
  EXPECT_EQ(runs(cron("30 2 * * *", "Europe/Berlin"), at(2026y / 3 / 28), 3),
            (times{"2026-03-28 01:30:00", "2026-03-29 01:00:00", "2026-03-30 00:30:00"}));
  EXPECT_EQ(runs(cron("*/15 2 * * *", "Europe/Berlin"), at(2026y / 3 / 28, 2h), 2),
            (times{"2026-03-29 01:00:00", "2026-03-30 00:00:00"}));
}

TEST(CronSchedule, RunsASkippedTimeFromEveryStartingMoment) {
  const auto c = cron("30 2 * * *", "Europe/Berlin");
  const unix_time after_gap = at(2026y / 3 / 29, 1h);
  EXPECT_EQ(c.next_after(after_gap - 1ms), after_gap);
  EXPECT_EQ(c.next_after(after_gap - 1s), after_gap);
  EXPECT_EQ(c.next_after(after_gap), at(2026y / 3 / 30, 30min));
}

TEST(CronSchedule, DoesNotRunTwiceWhenASkippedTimeMeetsAnother) {
  EXPECT_EQ(runs(cron("0 2,3 * * *", "Europe/Berlin"), at(2026y / 3 / 28, 12h), 2),
            (times{"2026-03-29 01:00:00", "2026-03-30 00:00:00"}));
}

TEST(CronSchedule, RunsAStepThatIsSkippedOnceAfterTheGap) {
  EXPECT_EQ(runs(cron("30 */2 * * *", "Europe/Berlin"), at(2026y / 3 / 28, 23h), 3),
            (times{"2026-03-28 23:30:00", "2026-03-29 01:00:00", "2026-03-29 02:30:00"}));
}

TEST(CronSchedule, RunsEveryRealHourAcrossAGap) {
  EXPECT_EQ(runs(cron("30 * * * *", "Europe/Berlin"), at(2026y / 3 / 29), 3),
            (times{"2026-03-29 00:30:00", "2026-03-29 01:30:00", "2026-03-29 02:30:00"}));
  EXPECT_EQ(runs(cron("30 0-23 * * *", "Europe/Berlin"), at(2026y / 3 / 29), 2),
            (times{"2026-03-29 00:30:00", "2026-03-29 01:30:00"}));
}

// In Berlin 03:00 became 02:00 (01:00 UTC) on 2026-10-25.
TEST(CronSchedule, RunsARepeatedTimeOnlyTheFirstTime) {
  EXPECT_EQ(runs(cron("30 2 * * *", "Europe/Berlin"), at(2026y / 10 / 24, 12h), 2),
            (times{"2026-10-25 00:30:00", "2026-10-26 01:30:00"}));
  EXPECT_EQ(runs(cron("*/30 2 * * *", "Europe/Berlin"), at(2026y / 10 / 24, 12h), 3),
            (times{"2026-10-25 00:00:00", "2026-10-25 00:30:00", "2026-10-26 01:00:00"}));
  // From the middle of the repeated hour.
  EXPECT_EQ(runs(cron("30 2 * * *", "Europe/Berlin"), at(2026y / 10 / 25, 1h + 10min), 1),
            (times{"2026-10-26 01:30:00"}));
}

TEST(CronSchedule, RunsEveryHourAndStepsInBothRepeats) {
  EXPECT_EQ(runs(cron("30 * * * *", "Europe/Berlin"), at(2026y / 10 / 25), 3),
            (times{"2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 02:30:00"}));
  EXPECT_EQ(runs(cron("30 */2 * * *", "Europe/Berlin"), at(2026y / 10 / 25), 3),
            (times{"2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 03:30:00"}));
}

TEST(CronSchedule, RunsOnceForASkippedDay) {
  // Apia went from the end of the 29th of December 2011 to the 31st, at 10:00 UTC.
  EXPECT_EQ(runs(cron("0 9 * * *", "Pacific/Apia"), at(2011y / 12 / 29), 4),
            (times{"2011-12-29 19:00:00", "2011-12-30 10:00:00", "2011-12-30 19:00:00",
                   "2011-12-31 19:00:00"}));
  EXPECT_EQ(runs(cron("0 9 30 12 *", "Pacific/Apia"), at(2011y / 12 / 1), 1),
            (times{"2011-12-30 10:00:00"}));
}

TEST(CronSchedule, KeepsItsTextAndZone) {
  const auto c = cron("  @daily ", "Europe/Berlin");
  EXPECT_EQ(c.text(), "@daily");
  EXPECT_EQ(c.zone(), "Europe/Berlin");
  EXPECT_EQ(c, cron("@daily", "Europe/Berlin"));
  EXPECT_NE(c, cron("@daily", "UTC"));
}

TEST(CronSchedule, NamesTheFieldTheColumnAndTheAllowedValues) {
  EXPECT_EQ(message_of("61 * * * *"),
            "cron '61 * * * *': column 1: minute '61': must be from 0 to 59");
  EXPECT_EQ(message_of("0  24 * * *"),
            "cron '0  24 * * *': column 4: hour '24': must be from 0 to 23");
  EXPECT_EQ(message_of("0 0 0 * *"),
            "cron '0 0 0 * *': column 5: day of month '0': must be from 1 to 31");
  EXPECT_EQ(message_of("0 0 1,32 * *"),
            "cron '0 0 1,32 * *': column 7: day of month '32': must be from 1 to 31");
  EXPECT_EQ(message_of("0 0 * foo *"),
            "cron '0 0 * foo *': column 7: month 'foo': must be from 1 to 12, or jan to dec");
  EXPECT_EQ(message_of("0 0 * * 1-8"),
            "cron '0 0 * * 1-8': column 11: day of week '8': must be from 0 to 7, or sun to sat");
  EXPECT_EQ(message_of("60 * * * * *"),
            "cron '60 * * * * *': column 1: second '60': must be from 0 to 59");
  EXPECT_EQ(message_of("-1 * * * *"),
            "cron '-1 * * * *': column 1: minute '': must be from 0 to 59");
  EXPECT_EQ(message_of("L * * * *"),
            "cron 'L * * * *': column 1: minute 'L': must be from 0 to 59");
}

TEST(CronSchedule, DescribesErrorsOfListsRangesAndSteps) {
  EXPECT_EQ(message_of("1,,2 * * * *"),
            "cron '1,,2 * * * *': column 3: minute '1,,2': a value is missing");
  EXPECT_EQ(message_of("1, * * * *"),
            "cron '1, * * * *': column 3: minute '1,': a value is missing");
  EXPECT_EQ(message_of("0 22-2 * * *"),
            "cron '0 22-2 * * *': column 3: hour '22-2': the range runs backwards; write "
            "22-23,0-2");
  EXPECT_EQ(message_of("*/0 * * * *"),
            "cron '*/0 * * * *': column 1: minute '*/0': the step after / must be from 1 to 59; "
            "use @every for a longer one");
  EXPECT_NE(message_of("*/90 * * * *").find("use @every"), std::string::npos);
  EXPECT_NE(message_of("*/ * * * *").find("the step after /"), std::string::npos);
  EXPECT_NE(message_of("1-5/x * * * *").find("the step after /"), std::string::npos);
  EXPECT_EQ(message_of("5/10 * * * *"),
            "cron '5/10 * * * *': column 1: minute '5/10': a step follows * or a range, as in "
            "5-59/10");
}

TEST(CronSchedule, DescribesErrorsOfTheSpecialDays) {
  EXPECT_EQ(message_of("0 0 * * L"),
            "cron '0 0 * * L': column 9: day of week 'L': L needs a weekday before it: 5L is the "
            "last Friday of the month");
  EXPECT_EQ(message_of("0 0 * * 1#6"),
            "cron '0 0 * * 1#6': column 9: day of week '1#6': after # must be a number from 1 to "
            "5: 1#2 is the second Monday");
  EXPECT_EQ(message_of("0 0 * * 8#1"),
            "cron '0 0 * * 8#1': column 9: day of week '8': must be from 0 to 7, or sun to sat");
  EXPECT_EQ(message_of("0 0 32W * *"),
            "cron '0 0 32W * *': column 5: day of month '32': must be from 1 to 31");
}

TEST(CronSchedule, NamesTheRequiredFields) {
  EXPECT_EQ(message_of("* * *"),
            "cron '* * *': has 3 fields; there must be five (minute, hour, day of month, month, "
            "day of week), or six with the second first");
  EXPECT_NE(message_of("*").find("has 1 field;"), std::string::npos);
  EXPECT_NE(message_of("* * * * * * *").find("has 7 fields;"), std::string::npos);
  EXPECT_EQ(message_of("  "), "cron '': is empty; write five fields such as 30 9 * * *");
}

TEST(CronSchedule, RejectsLinesThatNeverRun) {
  EXPECT_EQ(message_of("0 0 31 2 *"),
            "cron '0 0 31 2 *': column 5: never occurs: day of month '31' in month '2'");
  EXPECT_EQ(message_of("0 0 0 31 apr,jun *"),
            "cron '0 0 0 31 apr,jun *': column 7: never occurs: day of month '31' in month "
            "'apr,jun'");
  EXPECT_EQ(message_of("0 0 */31 * 1#2"),
            "cron '0 0 */31 * 1#2': column 5: never occurs: day of month '*/31' in month '*' on "
            "day of week '1#2'");
  EXPECT_EQ(message_of("0 0 31 2 mon"), "");  // on Mondays
}

TEST(CronSchedule, ListsTheShortNames) {
  EXPECT_EQ(message_of("@reboot"),
            "cron '@reboot': column 1: '@reboot' is unknown; valid names are @yearly, @annually, "
            "@monthly, @weekly, @daily, @midnight, @hourly, and @every with a duration");
  EXPECT_EQ(message_of("@daily 5"), "cron '@daily 5': column 8: nothing may follow @daily");
  EXPECT_EQ(message_of("@every"),
            "cron '@every': column 1: after @every must be one duration from 1s to 366d, such as "
            "90s, 15m or 1h30m");
  for (const char* wrong :
       {"0s", "5", "5x", "s", "367d", "1m1h", "1s1s", "-5s", "1.5h", "9999999999s"}) {
    EXPECT_EQ(message_of("@every " + std::string(wrong)),
              "cron '@every " + std::string(wrong) + "': column 8: '" + wrong +
                  "': must be one duration from 1s to 366d, such as 90s, 15m or 1h30m");
  }
}

TEST(CronSchedule, RejectsLongTextAndShowsOnlyPrintableCharacters) {
  const std::string message = message_of(std::string(300, '*'));
  EXPECT_NE(message.find("is longer than 256 characters"), std::string::npos);
  EXPECT_LT(message.size(), 150u);
  EXPECT_EQ(message_of("\x1b * \xff * *"),
            "cron '? * ? * *': column 1: minute '?': must be from 0 to 59");
  EXPECT_EQ(message_of("5/1\xff * * * *"),
            "cron '5/1? * * * *': column 1: minute '5/1?': a step follows * or a range, as in "
            "5-59/1?");
}

TEST(CronSchedule, ReturnsTheErrorOfTheZone) {
  EXPECT_EQ(message_of("* * * * *", "Europe/Berlni"),
            "time zone 'Europe/Berlni': unknown zone; did you mean 'Europe/Berlin'?");
}

TEST(CronSchedule, DescribesItsRunsInWords) {
  const auto words = [](std::string_view text) {
    std::string all = cron(text).describe();
    return all.ends_with(", UTC") ? all.substr(0, all.size() - 5) : all;
  };
  EXPECT_EQ(cron("30 9 * * mon-fri", "Europe/Berlin").describe(),
            "at 09:30 on monday to friday, Europe/Berlin");
  EXPECT_EQ(words("* * * * *"), "every minute");
  EXPECT_EQ(words("*/5 * * * *"), "every 5 minutes");
  EXPECT_EQ(words("*/5 9-17 * * *"), "every 5 minutes of hours 9 to 17");
  EXPECT_EQ(words("@hourly"), "every hour");
  EXPECT_EQ(words("0 */6 * * *"), "at 00:00, 06:00, 12:00 and 18:00");
  EXPECT_EQ(words("0 */2 * * *"), "every 2 hours");
  EXPECT_EQ(words("30 * * * *"), "at minute 30 of every hour");
  EXPECT_EQ(words("* * * * * *"), "every second");
  EXPECT_EQ(words("*/10 0 * * * *"), "every 10 seconds of minute 0 of every hour");
  EXPECT_EQ(words("15 30 9 * * *"), "at 09:30:15");
  EXPECT_EQ(words("0 0 1,15 * *"), "at 00:00 on days 1 and 15 of the month");
  EXPECT_EQ(words("0 0 L 2 *"), "at 00:00 on the last day of the month in february");
  EXPECT_EQ(words("0 0 13 * fri"), "at 00:00 on day 13 of the month and on friday");
  EXPECT_EQ(words("0 0 */2 * fri"),
            "at 00:00 on days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the "
            "month if on friday");
  EXPECT_EQ(words("0 0 * * sat,sun"), "at 00:00 on saturday and sunday");
  EXPECT_EQ(words("0 0 15W * 5L,1#2"),
            "at 00:00 on the weekday nearest to day 15 of the month and on the second monday of "
            "the month and the last friday of the month");
  EXPECT_EQ(words("@every 90s"), "every 1 minute and 30 seconds");
}

}  // namespace
}  // namespace sluice::jobs::cron_schedule_test
