#include "benchmarks/wire/server_cpu.hpp"

#include <iomanip>
#include <map>
#include <utility>
#include <vector>

#include "benchmarks/report.hpp"

namespace sluice::bench {
namespace {

using by_contender = std::map<std::string, std::vector<double>>;

struct noted {
  std::string workload;
  by_contender us_a_job = {};
};

std::vector<noted>& ledger() {
  static std::vector<noted> all;  // in the order of the tables
  return all;
}

}  // namespace

void note_server_cpu(const std::string& workload, const std::string& who, double us_a_job) {
  if (ledger().empty() || ledger().back().workload != workload) ledger().push_back({workload});
  ledger().back().us_a_job[who].push_back(us_a_job);
}

void print_server_cpu(std::ostream& out) {
  if (ledger().empty()) return;
  out << "\nCPU time of the server for a job, all its threads\n";
  for (const noted& row : ledger()) {
    out << "  " << std::left << std::setw(21) << row.workload;
    const char* between = "";
    for (const auto& [who, values] : row.us_a_job) {
      out << std::exchange(between, ", ") << who << ' ' << format_value(median(values)) << " us";
    }
    out << '\n';
  }
}

}  // namespace sluice::bench
