#pragma once

// Which jobs of a batch wait for which, as lines: each job below the last of those it waits for.
//
//     8 flight           done
//     9 hotel            done
//       `- 10 mail       running   after flight, hotel

#include <string>
#include <vector>

#include "jobs/cli/table.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::cli {

// Jobs by id, as a list gives them. Every job has one line, whatever waits for what; one that waits
// for jobs that are not among these says so.
std::string batch_graph(const std::vector<job>& jobs, const text_style& style);

}  // namespace sluice::jobs::cli
