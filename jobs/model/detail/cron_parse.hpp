#pragma once

// From the text of a cron line to what it says.

#include <string_view>

#include "jobs/model/detail/cron_fields.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

// `text` has no spaces around it. Any bytes at all.
result<cron_line> parse_cron(std::string_view text);

// What is wrong with a line, as one message; the column counts from 1, zero: it is the whole line.
error cron_error(std::string_view text, std::size_t column, std::string_view what);

}  // namespace sluice::jobs::detail
