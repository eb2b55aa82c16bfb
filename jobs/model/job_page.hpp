#pragma once

// A page of a list of jobs: every call that lists jobs has a limit.

#include <optional>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

struct job_page {
  std::vector<job> jobs{};         // in ascending order of id
  std::optional<job_id> cursor{};  // `after` of the next page; none: this is the last page. A page
                                   // with a cursor may have fewer jobs than requested, even none:
                                   // the work per page is bounded
};

}  // namespace sluice::jobs
