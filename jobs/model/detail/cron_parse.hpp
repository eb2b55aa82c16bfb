#pragma once

// Parses a cron line.

#include <string_view>

#include "jobs/model/detail/cron_fields.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

// `text` must be trimmed and may have any bytes.
result<cron_line> parse_cron(std::string_view text);

// Returns the error of a line, with the column counted from 1; zero: the whole line.
error cron_error(std::string_view text, std::size_t column, std::string_view problem);

}  // namespace sluice::jobs::detail
