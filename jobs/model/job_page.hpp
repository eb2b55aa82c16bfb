#pragma once

// A part of a list of jobs: nothing that lists jobs does so without a limit.

#include <optional>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

struct job_page {
  std::vector<job> jobs{};         // by id, upwards
  std::optional<job_id> cursor{};  // where to go on; none: that was the end. A page may have fewer
                                   // jobs than asked for, even none, and yet a cursor: the work of
                                   // a page is bounded too
};

}  // namespace sluice::jobs
