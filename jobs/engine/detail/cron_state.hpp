#pragma once

// A cron entry and its next run.

#include <optional>

#include "jobs/model/cron.hpp"
#include "jobs/model/cron_schedule.hpp"

namespace sluice::jobs::detail {

struct cron_state {
  cron_entry entry;
  cron_schedule schedule;
  std::optional<unix_time> timed_at;  // its key in core::cron_times_
  bool is_staged = false;
  bool is_new = false;  // not stored yet
};

}  // namespace sluice::jobs::detail
