#pragma once

// Formats numbers, times and states for people.

#include <cstdint>
#include <string>

#include "jobs/cli/table.hpp"
#include "jobs/model/job.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::cli {

std::string grouped(std::uint64_t number);          // 1,234,567
std::string byte_size(std::uint64_t bytes);         // 64.0 MB
std::string short_duration(milliseconds duration);  // 12ms, 3.4s, 5m, 2h, 3d
std::string ago(unix_time then, unix_time now);     // "3m ago", "in 5s"; "-" if unset
std::string counted(std::uint64_t number, const char* one, const char* many);  // 1 job, 2 jobs
std::string coloured(job_state state, const text_style& style);
// Returns one line of at most `columns` characters; omitted text is replaced by "...".
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace sluice::jobs::cli
