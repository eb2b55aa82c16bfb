#pragma once

// The errors of a job as the text of one column: an array of objects, the newest last.
//
//   [{"attempt":1,"at":1767225600000,"type":"timeout","message":"...","backtrace":"..."}]
//
// Empty texts are omitted. The name of a text that is not UTF-8 ends in _base64.

#include <string>
#include <string_view>
#include <vector>

#include "jobs/json/json_writer.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

// Writes a member with this text, under the second name if JSON cannot hold it; none if it is
// empty.
void write_text(json::json_writer& out, std::string_view name, std::string_view name_base64,
                std::string_view text);

std::string errors_to_json(const std::vector<attempt_error>& errors);
// For other text, returns one error that describes the problem: the job itself stays readable.
std::vector<attempt_error> errors_from_json(std::string_view text);

}  // namespace sluice::jobs::detail
