#pragma once

// What a job waits for as the text of one column: an array of objects, in the order of the spec.
//
//   [{"on":17,"when":"end","step":"flight"},{"on":18}]
//
// `when` is left out for success, `step` when it is empty; one that is not UTF-8 is step_base64.

#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

std::string after_to_json(const std::vector<dependency>& after);
// A text that is not of this form gives none: what holds the job is in its edges.
std::vector<dependency> after_from_json(std::string_view text);

}  // namespace sluice::jobs::detail
