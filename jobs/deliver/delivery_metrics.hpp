#pragma once

// Formats the counts of a deliverer as Prometheus text, for /metrics.
// docs/reference/delivery.md has the names.

#include <string>
#include <vector>

#include "jobs/deliver/deliverer.hpp"

namespace sluice::jobs {

void append_metrics(std::string& out, const std::vector<delivery_stats>& all);

}  // namespace sluice::jobs
