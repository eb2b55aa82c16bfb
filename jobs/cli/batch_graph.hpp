#pragma once

// Draws the dependencies of a batch's jobs as lines: each job below the last job it waits for.
//
//     8 flight           done
//     9 hotel            done
//       `- 10 mail       running   after flight, hotel

#include <string>
#include <vector>

#include "jobs/cli/table.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::cli {

// `jobs` must be ordered by id. Returns one line per job, also if dependencies are circular; a job
// that waits for jobs outside `jobs` is marked.
std::string batch_graph(const std::vector<job>& jobs, const text_style& style);

}  // namespace sluice::jobs::cli
