#include "jobs/model/time_zone.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "jobs/model/detail/posix_tz.hpp"
#include "jobs/model/detail/tzif.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::time_zone_test {
namespace {

using namespace std::chrono_literals;
using detail::posix_tz;
using detail::tzif;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using shown = time_zone::shown;
namespace fs = std::filesystem;

const fs::path system_folder = "/usr/share/zoneinfo";

time_zone zone(std::string_view name) {
  auto found = time_zone::find(name, {.folder = system_folder});
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : time_zone();
}

std::string message_of(std::string_view name, const time_zone::options& where = {system_folder}) {
  const auto found = time_zone::find(name, where);
  return found ? "" : found.error().message;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The names of all zones of the system.
std::vector<std::string> all_zones() {
  std::vector<std::string> names;
  for (fs::recursive_directory_iterator it(system_folder), end; it != end; ++it) {
    const std::string name = it->path().lexically_relative(system_folder).generic_string();
    if (name == "right" || name == "posix") it.disable_recursion_pending();
    if (it->is_regular_file() && bytes_of(it->path()).starts_with("TZif")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// A hand-made file, whose parts can be damaged one at a time.
struct made_file {
  struct type {
    std::int32_t from_utc;
    std::uint8_t is_dst;
    std::uint8_t abbreviation;
  };
  char version = '2';
  std::vector<std::pair<std::int64_t, std::uint8_t>> changes{};
  std::vector<type> types{{0, 0, 0}};
  std::string characters = std::string("AAA\0BBB\0", 8);
  std::uint32_t leap_seconds = 0;
  std::string footer = "\nAAA0\n";

  static void put(std::string& out, std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>((value >> (8 * i)) & 0xFFU);
  }
  std::string block(int time_bytes) const {
    std::string out = "TZif";
    out += version;
    out.append(15, '\0');
    put(out, 0, 4);
    put(out, 0, 4);
    put(out, leap_seconds, 4);
    put(out, changes.size(), 4);
    put(out, types.size(), 4);
    put(out, characters.size(), 4);
    for (const auto& [when, index] : changes) {
      put(out, static_cast<std::uint64_t>(when), time_bytes);
    }
    for (const auto& [when, index] : changes) out += static_cast<char>(index);
    for (const auto& t : types) {
      put(out, static_cast<std::uint32_t>(t.from_utc), 4);
      out += static_cast<char>(t.is_dst);
      out += static_cast<char>(t.abbreviation);
    }
    out += characters;
    out.append(leap_seconds * static_cast<std::size_t>(time_bytes + 4), '\0');
    return out;
  }
  std::string bytes() const { return version == '\0' ? block(4) : block(4) + block(8) + footer; }
  std::string message_of() const {
    const auto read = time_zone::read("Made/Zone", bytes());
    if (read) return "";
    EXPECT_EQ(read.error().code, error_code::corrupt);
    const std::string before = "time zone 'Made/Zone': its file is damaged: ";
    EXPECT_TRUE(read.error().message.starts_with(before)) << read.error().message;
    return read.error().message.substr(before.size());
  }
};

TEST(TimeZone, IsUtcByDefault) {
  const time_zone utc;
  EXPECT_EQ(utc.name(), "UTC");
  EXPECT_EQ(utc.at({1'774'746'000'000}).from_utc, 0s);
  EXPECT_EQ(utc.at({-1}).abbreviation, "UTC");
  const auto at = utc.resolve(local_days(2026y / 3 / 29) + 2h);
  EXPECT_EQ(at.kind, shown::once);
  EXPECT_EQ(at.first, sys_days(2026y / 3 / 29) + 2h);
}

TEST(TimeZone, NeedsNoFileForUtc) {
  EXPECT_EQ(message_of("UTC", {.folder = "/nowhere"}), "");
  EXPECT_EQ(message_of("Etc/UTC", {.folder = "/nowhere"}), "");
  EXPECT_EQ(time_zone::find("Etc/UTC")->name(), "Etc/UTC");
  EXPECT_NE(message_of("Europe/Berlin", {.folder = "/nowhere"}), "");
}

TEST(TimeZone, KnowsBothSidesOfAClockChange) {
  const time_zone berlin = zone("Europe/Berlin");
  const sys_seconds change = sys_days(2026y / 3 / 29) + 1h;
  const auto winter = berlin.period_at(change - 1s);
  EXPECT_EQ(winter.offset.from_utc, 1h);
  EXPECT_EQ(winter.offset.abbreviation, "CET");
  EXPECT_FALSE(winter.offset.is_dst);
  EXPECT_EQ(winter.begin, sys_days(2025y / 10 / 26) + 1h);
  EXPECT_EQ(winter.end, change);
  const auto summer = berlin.period_at(change);
  EXPECT_EQ(summer.offset.from_utc, 2h);
  EXPECT_EQ(summer.offset.abbreviation, "CEST");
  EXPECT_TRUE(summer.offset.is_dst);
  EXPECT_EQ(summer.begin, change);
  EXPECT_EQ(summer.end, sys_days(2026y / 10 / 25) + 1h);
  EXPECT_EQ(summer.local_begin(), local_days(2026y / 3 / 29) + 3h);
}

TEST(TimeZone, FindsTheMomentAfterATimeThatIsSkipped) {
  const auto at = zone("Europe/Berlin").resolve(local_days(2026y / 3 / 29) + 2h + 30min);
  EXPECT_EQ(at.kind, shown::never);
  EXPECT_EQ(at.first, sys_days(2026y / 3 / 29) + 1h);
  EXPECT_EQ(at.second, at.first);
}

TEST(TimeZone, FindsBothMomentsOfATimeThatIsRepeated) {
  const time_zone berlin = zone("Europe/Berlin");
  const auto at = berlin.resolve(local_days(2026y / 10 / 25) + 2h + 30min);
  EXPECT_EQ(at.kind, shown::twice);
  EXPECT_EQ(at.first, sys_days(2026y / 10 / 25) + 30min);
  EXPECT_EQ(at.second, sys_days(2026y / 10 / 25) + 1h + 30min);
  // The start of the repeated hour belongs to it, its end to the following time.
  EXPECT_EQ(berlin.resolve(local_days(2026y / 10 / 25) + 2h).kind, shown::twice);
  EXPECT_EQ(berlin.resolve(local_days(2026y / 10 / 25) + 3h).kind, shown::once);
}

TEST(TimeZone, HandlesAHalfHourChangeASkippedDayAndARepeatedDay) {
  const time_zone lord_howe = zone("Australia/Lord_Howe");
  const auto spring = lord_howe.resolve(local_days(2026y / 10 / 4) + 2h + 15min);
  EXPECT_EQ(spring.kind, shown::never);
  EXPECT_EQ(spring.first, sys_days(2026y / 10 / 3) + 15h + 30min);
  EXPECT_EQ(lord_howe.resolve(local_days(2026y / 10 / 4) + 2h + 30min).kind, shown::once);

  const auto apia = zone("Pacific/Apia").resolve(local_days(2011y / 12 / 30) + 12h);
  EXPECT_EQ(apia.kind, shown::never);
  EXPECT_EQ(apia.first, sys_days(2011y / 12 / 30) + 10h);

  // In Kwajalein 30 September 1969 occurred twice.
  const auto kwajalein = zone("Pacific/Kwajalein").resolve(local_days(1969y / 9 / 30) + 12h);
  EXPECT_EQ(kwajalein.kind, shown::twice);
  EXPECT_EQ(kwajalein.second - kwajalein.first, 23h);
}

TEST(TimeZone, AppliesItsRuleAfterItsTable) {
  const time_zone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.period_at(sys_days(2500y / 7 / 1)).offset.from_utc, 2h);
  EXPECT_EQ(berlin.period_at(sys_days(9999y / 7 / 1)).offset.from_utc, 2h);
  EXPECT_EQ(berlin.period_at(sys_days(9999y / 12 / 31)).offset.from_utc, 1h);
  EXPECT_EQ(berlin.period_at(sys_seconds::max()).offset.from_utc, 1h);
  EXPECT_EQ(berlin.period_at(sys_seconds::min()).offset.abbreviation, "LMT");
  EXPECT_EQ(berlin.resolve(local_seconds::max()).kind, shown::once);
  EXPECT_EQ(berlin.resolve(local_seconds::min()).kind, shown::once);
  EXPECT_EQ(berlin.at({INT64_MIN}).abbreviation, "LMT");
  EXPECT_EQ(berlin.at({INT64_MAX}).abbreviation, "CET");
}

// The C library reads the same files independently.
TEST(TimeZone, AgreesWithTheSystemInEveryZone) {
  const char* before = std::getenv("TZ");
  const std::string kept = before == nullptr ? "" : before;
  random dice(2026);
  std::size_t compared = 0;
  const auto names = all_zones();
  ASSERT_GT(names.size(), 300u);
  for (const std::string& name : names) {
    const time_zone here = zone(name);
    ASSERT_EQ(setenv("TZ", (":" + name).c_str(), 1), 0);
    tzset();
    std::vector<std::int64_t> times;
    for (int i = 0; i < 100; ++i) {  // years 1880 to 2400
      times.push_back(-2'840'140'800 + std::int64_t{4} * dice.below(4'102'500'000U));
    }
    for (int i = 0; i < 20; ++i) {  // both sides of a change
      const auto p = here.period_at(sys_seconds(seconds(times[static_cast<std::size_t>(i)])));
      if (p.end.time_since_epoch() > 13'569'465'600s) continue;
      times.push_back(p.end.time_since_epoch().count());
      times.push_back(p.end.time_since_epoch().count() - 1);
    }
    for (const std::int64_t when : times) {
      const time_t t = static_cast<time_t>(when);
      tm system{};
      ASSERT_NE(localtime_r(&t, &system), nullptr);
      const auto ours = here.at(to_unix_time(sys_seconds(seconds(when))));
      ASSERT_EQ(ours.from_utc.count(), system.tm_gmtoff) << name << " at " << when;
      ASSERT_EQ(ours.is_dst, system.tm_isdst > 0) << name << " at " << when;
      ASSERT_EQ(ours.abbreviation, system.tm_zone) << name << " at " << when;
      ++compared;
    }
  }
  before == nullptr ? unsetenv("TZ") : setenv("TZ", kept.c_str(), 1);
  tzset();
  std::printf("[   ZONES  ] %zu zones, %zu times compared\n", names.size(), compared);
}

// Returns every moment with the local time t, by a search of all offsets in use around it.
std::set<sys_seconds> moments_by_trial(const time_zone& here, local_seconds t) {
  std::set<seconds> offsets;
  const sys_seconds around(t.time_since_epoch());
  for (auto u = around - 27h; u <= around + 27h; u += 5min) {
    offsets.insert(here.period_at(u).offset.from_utc);
  }
  std::set<sys_seconds> found;
  for (const seconds o : offsets) {
    const sys_seconds u = around - o;
    if (here.period_at(u).offset.from_utc == o) found.insert(u);
  }
  return found;
}

TEST(TimeZone, ResolvesAroundEveryChangeLikeASearchOfAllOffsets) {
  random dice(7);
  std::size_t compared = 0;
  for (const char* name : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                           "Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca",
                           "Asia/Kathmandu", "America/Juneau", "Antarctica/Troll"}) {
    const time_zone here = zone(name);
    auto p = here.period_at(sys_days(1960y / 1 / 1));
    for (; p.end < sys_days(2045y / 1 / 1); p = here.period_at(p.end)) {
      for (int i = 0; i < 3; ++i) {
        const local_seconds t = p.local_end() + seconds(dice.below(4 * 3600)) - 2h;
        const auto ours = here.resolve(t);
        const auto all = moments_by_trial(here, t);
        ++compared;
        if (all.empty()) {
          ASSERT_EQ(ours.kind, shown::never) << name << " " << t.time_since_epoch().count();
          ASSERT_EQ(ours.first, p.end);
          continue;
        }
        ASSERT_EQ(ours.kind, all.size() == 1 ? shown::once : shown::twice) << name;
        ASSERT_EQ(ours.first, *all.begin()) << name;
        ASSERT_EQ(ours.second, *all.rbegin()) << name;
      }
    }
  }
  EXPECT_GT(compared, 2000u);
}

TEST(TimeZone, PeriodsFollowEachOtherWithoutAGap) {
  for (const char* name : {"Europe/Berlin", "Africa/Casablanca", "America/Godthab", "UTC"}) {
    const time_zone here = zone(name);
    auto p = here.period_at(sys_seconds::min());
    std::size_t periods = 1;
    while (p.end < sys_days(2600y / 1 / 1)) {
      const auto next = here.period_at(p.end);
      ASSERT_EQ(next.begin, p.end) << name;
      ASSERT_LT(next.begin, next.end) << name;
      p = next;
      ++periods;
    }
    if (std::string_view(name) == "Europe/Berlin") {
      EXPECT_GT(periods, 1000u);
    }
  }
}

TEST(TimeZone, RejectsInvalidNames) {
  for (const std::string name : {"", "../x", "Europe/../Europe/Berlin", "/etc/passwd", "Europe/",
                                 "Europe//Berlin", ".", "a b", "Europe/Berlin\n", "zone.tab"}) {
    const auto found = time_zone::find(name, {.folder = system_folder});
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, error_code::invalid);
    EXPECT_NE(found.error().message.find("a name has up to 64 letters"), std::string::npos);
  }
  EXPECT_EQ(message_of("\x1b[2J\xff"),
            "time zone '?[2J?': a name has up to 64 letters, digits, _, - and +, in words with / "
            "between, as in Europe/Berlin");
  EXPECT_EQ(message_of(std::string(10'000, 'a')).size(), message_of("\x1b").size() + 64 + 3 - 1);
}

TEST(TimeZone, SuggestsASimilarName) {
  EXPECT_EQ(message_of("europe/berlin"),
            "time zone 'europe/berlin': unknown zone; did you mean 'Europe/Berlin'?");
  EXPECT_NE(message_of("Europe/Berlni").find("'Europe/Berlin'?"), std::string::npos);
  EXPECT_NE(message_of("Berlin").find("'Europe/Berlin'?"), std::string::npos);
  EXPECT_EQ(message_of("Mars/Olympus_Mons"),
            "time zone 'Mars/Olympus_Mons': unknown zone; names are like Europe/Berlin");
  EXPECT_EQ(message_of("Europe"),
            "time zone 'Europe': this is a region; names are like Europe/Berlin");
  EXPECT_EQ(message_of("Europe/Berlin", {.folder = "/nowhere"}),
            "time zone 'Europe/Berlin': the folder of time zones '/nowhere' does not exist: "
            "install tzdata, or set TZDIR to the folder");
}

TEST(TimeZone, ReadsTheFolderThatTheEnvironmentNames) {
  const fs::path folder = fs::path(::testing::TempDir()) / "sluice_zones";
  fs::create_directories(folder / "Made");
  std::ofstream(folder / "Made" / "Zone", std::ios::binary)
      << made_file{.types = {{7200, 0, 4}}, .footer = "\nBBB-2\n"}.bytes();
  ASSERT_EQ(setenv("TZDIR", folder.c_str(), 1), 0);
  const auto made = time_zone::find("Made/Zone");
  const auto berlin = time_zone::find("Europe/Berlin");
  unsetenv("TZDIR");
  fs::remove_all(folder);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->at({0}).from_utc, 2h);
  EXPECT_FALSE(berlin);
}

TEST(TimeZone, ReadsAFileOfVersionOne) {
  made_file file{
      .version = '\0', .changes = {{-100, 1}, {100, 0}}, .types = {{0, 0, 0}, {3600, 1, 4}}};
  const auto read = time_zone::read("Old", file.bytes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at({-101'000}).abbreviation, "AAA");
  EXPECT_EQ(read->at({-100'000}).abbreviation, "BBB");
  EXPECT_EQ(read->at({99'999}).from_utc, 1h);
  EXPECT_EQ(read->at({100'000}).from_utc, 0s);
  EXPECT_EQ(read->at({INT64_MAX}).from_utc, 0s);
}

TEST(TimeZone, DescribesTheDamageOfAFile) {
  EXPECT_EQ(made_file{}.message_of(), "");
  EXPECT_EQ(made_file{.version = '9'}.message_of(), "its version is unknown");
  EXPECT_EQ(made_file{.types = {}}.message_of(), "it must have from 1 to 256 local time types");
  EXPECT_EQ((made_file{.types = {{100'000, 0, 0}}}.message_of()),
            "an offset from UTC is more than 26 hours");
  EXPECT_EQ((made_file{.types = {{0, 2, 0}}}.message_of()), "a local time type is not valid");
  EXPECT_EQ((made_file{.types = {{0, 0, 8}}}.message_of()), "a local time type is not valid");
  EXPECT_EQ(made_file{.characters = "AAA"}.message_of(), "a local time type is not valid");
  EXPECT_EQ((made_file{.changes = {{0, 1}}}.message_of()), "a change refers to a missing type");
  EXPECT_EQ((made_file{.changes = {{5, 0}, {5, 0}}}.message_of()),
            "its changes are not in order of time");
  EXPECT_EQ(made_file{.leap_seconds = 1}.message_of(),
            "it counts leap seconds, which are not supported");
  EXPECT_EQ(made_file{.footer = ""}.message_of(), "it has no rule after its table");
  EXPECT_EQ(made_file{.footer = "\nAAA0"}.message_of(), "it ends inside the rule after its table");
  EXPECT_EQ(made_file{.footer = "\nAA0\n"}.message_of(),
            "the rule after its table is not valid: expected a zone abbreviation of three or more "
            "characters at character 3");
  EXPECT_EQ(time_zone::read("Z", "hello").error().message,
            "time zone 'Z': its file is damaged: it has no header of a time zone file");
  EXPECT_NE(time_zone::read("Z", std::string(300'000, 'x')).error().message.find("longer than"),
            std::string::npos);
}

TEST(TimeZone, RejectsEveryTruncatedFile) {
  const std::string whole = bytes_of(system_folder / "Europe/Berlin");
  ASSERT_TRUE(time_zone::read("Z", whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(time_zone::read("Z", std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(TimeZone, SurvivesDamagedBytes) {
  const std::string whole = bytes_of(system_folder / "Europe/Berlin");
  random dice(11);
  std::size_t survived = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    for (std::uint32_t n = dice.below(4) + 1; n > 0; --n) {
      bytes[dice.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<char>(dice.next());
    }
    const auto read = time_zone::read("Z", bytes);
    if (!read) continue;
    ++survived;
    const local_seconds t(seconds(static_cast<std::int64_t>(dice.next()) >> dice.below(40)));
    const auto at = read->resolve(t);
    ASSERT_LE(at.first, at.second);
  }
  EXPECT_GT(survived, 1000u);
}

TEST(PosixTz, ReadsEveryFormOfARule) {
  const auto moment = [](std::string_view text, std::chrono::year y) {
    const auto tz = posix_tz::parse("STD0DST," + std::string(text) + ",J365");
    EXPECT_TRUE(tz) << tz.error().message;
    return tz->dst->begins.in(y);
  };
  EXPECT_EQ(moment("M3.5.0", 2026y), sys_days(2026y / 3 / 29) + 2h);
  EXPECT_EQ(moment("M3.2.0", 2026y), sys_days(2026y / 3 / 8) + 2h);
  EXPECT_EQ(moment("M2.5.6/0", 2028y), sys_days(2028y / 2 / 26));
  EXPECT_EQ(moment("J60/0", 2028y), sys_days(2028y / 3 / 1));
  EXPECT_EQ(moment("J59/0", 2028y), sys_days(2028y / 2 / 28));
  EXPECT_EQ(moment("59/0", 2028y), sys_days(2028y / 2 / 29));
  EXPECT_EQ(moment("0/-167", 2026y), sys_days(2026y / 1 / 1) - 167h);
  EXPECT_EQ(moment("M1.1.1/167:59:59", 2026y), sys_days(2026y / 1 / 5) + 167h + 59min + 59s);
}

TEST(PosixTz, ReadsOffsetsAndNames) {
  const auto nepal = posix_tz::parse("<+0545>-5:45");
  ASSERT_TRUE(nepal);
  EXPECT_EQ(nepal->abbreviation, "+0545");
  EXPECT_EQ(nepal->from_utc, 5h + 45min);
  EXPECT_FALSE(nepal->dst);
  const auto lord_howe = posix_tz::parse("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0");
  ASSERT_TRUE(lord_howe);
  EXPECT_EQ(lord_howe->dst->from_utc, 11h);
  EXPECT_EQ(posix_tz::parse("CET-1CEST,M3.5.0,M10.5.0/3")->dst->from_utc, 2h);
}

TEST(PosixTz, NamesTheExpectedText) {
  const auto error_message = [](std::string_view text) {
    const auto tz = posix_tz::parse(text);
    return tz ? std::string() : tz.error().message;
  };
  EXPECT_EQ(error_message("AAA"), "expected hours from 0 to 24 at character 4");
  EXPECT_EQ(error_message("AAA25"), "expected hours from 0 to 24 at character 4");
  EXPECT_EQ(error_message("<AAA0"), "expected '>' at character 6");
  EXPECT_EQ(error_message("AAA0BBB"), "expected hours from 0 to 24 at character 8");
  EXPECT_EQ(error_message("AAA0BBB,"), "expected a day from 0 to 365 at character 9");
  EXPECT_EQ(error_message("AAA0BBB,M13.1.0,0"), "expected a month from 1 to 12 at character 10");
  EXPECT_EQ(error_message("AAA0BBB,M1.6.0,0"), "expected a week from 1 to 5 at character 12");
  EXPECT_EQ(error_message("AAA0BBB,M1.1.7,0"), "expected a weekday from 0 to 6 at character 14");
  EXPECT_EQ(error_message("AAA0BBB,J0,0"), "expected a day from 1 to 365 at character 10");
  EXPECT_EQ(error_message("AAA0BBB,0/168,0"), "expected hours from 0 to 167 at character 11");
  EXPECT_EQ(error_message("AAA0BBB,0,0/1:60"), "expected minutes from 0 to 59 at character 15");
  EXPECT_EQ(error_message("AAA0BBB,0,0x"), "expected the end of the rule at character 12");
  EXPECT_EQ(error_message(std::string(300, 'A')), "longer than 256 characters");
}

TEST(PosixTz, KeepsDaylightSavingTimeThatNeverEnds) {
  const made_file file{.version = '3', .footer = "\nXXA3XXB,0/0,J365/23\n"};
  const auto here = time_zone::read("Made/Zone", file.bytes());
  ASSERT_TRUE(here) << here.error().message;
  for (auto t = sys_days(2026y / 12 / 25); t < sys_days(2027y / 1 / 10);
       t += std::chrono::days(1)) {
    EXPECT_TRUE(here->period_at(t).offset.is_dst);
    EXPECT_EQ(here->period_at(t).offset.from_utc, -2h);
  }
}

}  // namespace
}  // namespace sluice::jobs::time_zone_test
