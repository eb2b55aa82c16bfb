#pragma once

// The CPU time of servers for a job, printed after the tables: it shows whether a server was busy
// or waited for its disk.

#include <ostream>
#include <string>

namespace sluice::bench {

void note_server_cpu(const std::string& workload, const std::string& who, double us_a_job);

// Prints the medians, one line for each workload; nothing without measurements.
void print_server_cpu(std::ostream& out);

}  // namespace sluice::bench
