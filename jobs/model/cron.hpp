#pragma once

// A cron entry: a job that is pushed repeatedly, at the times of a cron line.
//
// Each run is pushed in the transaction that advances the entry to its next time, so it happens
// once, also across restarts. `missed` decides about runs that were due while no server was
// running. A run is pushed even if the queue is full.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

// The handling of runs that were due while no server was running.
enum class missed_runs : std::uint8_t {
  skip = 0,  // none is pushed
  one = 1,   // one is pushed for all of them
  all = 2,   // each is pushed, at most the last limits::cron_missed_max
};
std::string_view to_string(missed_runs m) noexcept;
std::optional<missed_runs> missed_runs_from(std::string_view word) noexcept;

struct cron_spec {
  std::string name{};      // as the name of a queue; unique
  std::string schedule{};  // cron_schedule.hpp
  std::string zone = "UTC";
  missed_runs missed = missed_runs::one;
  bool paused = false;
  job_spec job{};  // pushed at each time; a unique key prevents overlapping runs

  friend bool operator==(const cron_spec&, const cron_spec&) = default;
};

// A cron entry as the store keeps it.
struct cron_entry {
  cron_spec spec{};
  unix_time next_at{};  // zero: no further run
  unix_time last_at{};  // the time of the last run, as scheduled; zero: none
  job_id last_job = 0;  // of the last run; zero: none
  std::uint64_t runs = 0;
  std::uint64_t missed = 0;  // runs that were not pushed

  friend bool operator==(const cron_entry&, const cron_entry&) = default;
};

struct cron_info {
  cron_entry entry{};
  std::vector<unix_time> upcoming{};  // the next five
};

// Unset fields keep their value.
struct cron_patch {
  std::optional<bool> paused{};
};

// Checks name and job; the error names the field. Schedule and zone: cron_schedule::parse.
void_result validate(const cron_spec& spec);

}  // namespace sluice::jobs
