#pragma once

// The finished attempts of a job as the text of one column: an array of objects, the newest last.
//
//   [{"attempt":1,"began":1767225600000,"ended":1767225600900,"worker":"w1","outcome":"failed"}]
//
// An empty worker is left out; a worker that is not UTF-8 is worker_base64.

#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

std::string history_to_json(const std::vector<attempt_record>& history);
// Returns an empty list for other text: the job itself stays readable.
std::vector<attempt_record> history_from_json(std::string_view text);

}  // namespace sluice::jobs::detail
