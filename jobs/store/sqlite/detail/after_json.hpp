#pragma once

// The dependencies of a job as the text of one column: an array of objects, in the order of the
// spec.
//
//   [{"on":17,"when":"end","step":"flight"},{"on":18}]
//
// `when` is omitted for success, `step` if it is empty; a step that is not UTF-8 is step_base64.

#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

std::string after_to_json(const std::vector<dependency>& after);
// Returns an empty list for other text: the job is held by its edges, not by this column.
std::vector<dependency> after_from_json(std::string_view text);

}  // namespace sluice::jobs::detail
