#pragma once

// A job that is pushed again and again, at times that a cron line names.
//
// Each run is pushed in the transaction that moves the entry on to its next time: it happens once,
// whatever restarts. Runs whose time passed while no server was there are made up for as `missed`
// says. A run is pushed even into a queue that is full.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

// Runs that nobody was there for.
enum class missed_runs : std::uint8_t {
  skip = 0,  // are left out
  one = 1,   // are made up for by one
  all = 2,   // are all made up for, the last limits::cron_missed_max of them
};
std::string_view to_string(missed_runs m) noexcept;
std::optional<missed_runs> missed_runs_from(std::string_view word) noexcept;

struct cron_spec {
  std::string name{};      // as of a queue; one entry each
  std::string schedule{};  // cron_schedule.hpp
  std::string zone = "UTC";
  missed_runs missed = missed_runs::one;
  bool paused = false;
  job_spec job{};  // pushed at each time; a unique key keeps a run from overlapping the one before

  friend bool operator==(const cron_spec&, const cron_spec&) = default;
};

// As it is stored.
struct cron_entry {
  cron_spec spec{};
  unix_time next_at{};  // zero: never again
  unix_time last_at{};  // the time of the last run, as scheduled; zero: none
  job_id last_job = 0;  // that it pushed; zero: none
  std::uint64_t runs = 0;
  std::uint64_t missed = 0;  // that were left out

  friend bool operator==(const cron_entry&, const cron_entry&) = default;
};

struct cron_info {
  cron_entry entry{};
  std::vector<unix_time> upcoming{};  // the next five
};

// Only what is set is changed.
struct cron_patch {
  std::optional<bool> paused{};
};

// Name, schedule, zone and job; an error names the field, and in a schedule the column.
void_result validate(const cron_spec& spec);

}  // namespace sluice::jobs
