#pragma once

// Converts between UTC and the local time of a time zone.
//
// Zones have the names of the IANA database ("Europe/Berlin") and are read from the system's files
// (Debian: package tzdata), in the folder named by the environment variable TZDIR or ZONEINFO, else
// /usr/share/zoneinfo. "UTC" and "Etc/UTC" need no file.
//
// Guarantees: a value; copies share immutable data, so any thread may use any copy. A file may have
// any content: damage is reported as an error. A name cannot refer to a file outside of the folder.
// Beyond the table of a file its rule applies, to year 9999; before year -9999 and after 9999 the
// offset is constant.
// Cost: `find` reads one file, some 50 us. `at` is a binary search in the table, or ten dates of
// the calendar after it; neither allocates. A caller that steps through time can request a `period`
// and reuse its offset until the period ends.
// Limits: files of 256 KiB, offsets of up to 26 h, no leap seconds (as in unix time).
//
//     auto berlin = time_zone::find("Europe/Berlin");
//     if (!berlin) return berlin.error();
//     berlin->at({1'774'746'000'000}).abbreviation;   // "CEST"
//     auto at = berlin->resolve(local_days{2026y/3/29} + 2h + 30min);
//     at.kind == time_zone::shown::never;             // the clock went from 02:00 to 03:00

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

// Rounds down to whole seconds.
constexpr std::chrono::sys_seconds to_seconds(unix_time t) {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::sys_time<milliseconds>(milliseconds(t.ms)));
}
// For times within some 290 million years of 1970.
constexpr unix_time to_unix_time(std::chrono::sys_seconds t) {
  return {t.time_since_epoch().count() * 1000};
}

class time_zone {
 public:
  struct offset {
    std::chrono::seconds from_utc{};  // local time is UTC plus this
    bool is_dst = false;              // daylight saving time
    std::string_view abbreviation{};  // "CEST"; valid as long as the zone or a copy of it
  };
  // An interval of constant offset. Periods follow each other without a gap.
  struct period {
    std::chrono::sys_seconds begin{};
    std::chrono::sys_seconds end{};  // the first second of the next
    time_zone::offset offset{};

    std::chrono::local_seconds local_begin() const { return to_local(begin); }
    std::chrono::local_seconds local_end() const { return to_local(end); }
    std::chrono::local_seconds to_local(std::chrono::sys_seconds t) const {
      return std::chrono::local_seconds(t.time_since_epoch() + offset.from_utc);
    }
    std::chrono::sys_seconds to_utc(std::chrono::local_seconds t) const {
      return std::chrono::sys_seconds(t.time_since_epoch() - offset.from_utc);
    }
  };
  // How often the local clock shows a time.
  enum class shown : std::uint8_t { once, never, twice };
  struct moments {
    shown kind = shown::once;
    std::chrono::sys_seconds first{};   // never: the first moment after the gap
    std::chrono::sys_seconds second{};  // twice: the second moment; else equal to `first`
  };
  struct options {
    std::string folder{};  // empty: from the environment
  };

  time_zone() : time_zone(utc("UTC")) {}

  // Errors: `invalid`: unknown name, with similar names; `corrupt`: the file is damaged;
  // `io_error`: the file cannot be read.
  static result<time_zone> find(std::string_view name);
  static result<time_zone> find(std::string_view name, const options& where);
  // Parses the content of a zone file.
  static result<time_zone> read(std::string_view name, std::string_view bytes);

  const std::string& name() const noexcept;
  offset at(unix_time t) const { return period_at(to_seconds(t)).offset; }
  period period_at(std::chrono::sys_seconds t) const;
  moments resolve(std::chrono::local_seconds t) const;

  friend bool operator==(const time_zone& a, const time_zone& b) noexcept {
    return a.name() == b.name();
  }

 private:
  struct rules;
  explicit time_zone(std::shared_ptr<const rules> r) noexcept : rules_(std::move(r)) {}

  static time_zone utc(std::string_view name);
  period period_of_table(std::size_t next) const;
  period period_of_rule(std::chrono::sys_seconds t) const;

  std::shared_ptr<const rules> rules_;  // shared by all copies; never null
};

}  // namespace sluice::jobs
