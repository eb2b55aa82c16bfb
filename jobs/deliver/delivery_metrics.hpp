#pragma once

// The counts of a deliverer in the text form of Prometheus, for /metrics.
// docs/reference/delivery.md has the names.

#include <string>
#include <vector>

#include "jobs/deliver/deliverer.hpp"

namespace sluice::jobs {

void append_metrics(std::string& out, const std::vector<delivery_stats>& all);

}  // namespace sluice::jobs
