#pragma once

// Short forms of numbers and durations, for sentences and the labels of an axis.

#include <string>

#include "jobs/model/plan.hpp"

namespace sluice::jobs::detail {

// "0", "950", "12.5k", "3.4M": at most three significant digits.
std::string short_number(double value);
// "0s", "250ms", "1.5s", "1m30s", "2h05m", "3d04h".
std::string short_duration(plan_seconds d);

}  // namespace sluice::jobs::detail
