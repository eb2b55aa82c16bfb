#pragma once

// Generates the manual page in roff: commands and flags from their description, other sections from
// fixed text.

#include <string>

#include "jobs/cli/command_description.hpp"

namespace sluice::jobs::cli {

std::string man_page(const command_description& program, const std::string& version);

}  // namespace sluice::jobs::cli
