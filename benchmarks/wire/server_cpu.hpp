#pragma once

// The CPU time that servers took for a job, printed after the tables: a throughput alone does not
// say whether a server was busy or waited for its disk.

#include <ostream>
#include <string>

namespace sluice::bench {

void note_server_cpu(const std::string& workload, const std::string& who, double us_a_job);

// The medians, a line a workload; nothing when nothing was noted.
void print_server_cpu(std::ostream& out);

}  // namespace sluice::bench
