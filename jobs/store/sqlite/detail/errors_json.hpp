#pragma once

// The errors of a job as the text of one column: an array of objects, the newest last.
//
//   [{"attempt":1,"at":1767225600000,"type":"timeout","message":"...","backtrace":"..."}]
//
// What is empty is left out. A text that is not UTF-8 has a name that ends in _base64.

#include <string>
#include <string_view>
#include <vector>

#include "jobs/json/json_writer.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::detail {

// A member with this text, under the second name if JSON cannot hold the text; none if it is empty.
void write_text(json::json_writer& out, std::string_view name, std::string_view name_base64,
                std::string_view text);

std::string errors_to_json(const std::vector<attempt_error>& errors);
// A text that is not of this form gives one error that says so: a job is not lost for it.
std::vector<attempt_error> errors_from_json(std::string_view text);

}  // namespace sluice::jobs::detail
