#pragma once

// Generates the completion script of a shell from the description of the commands.

#include <string>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/command_description.hpp"

namespace sluice::jobs::cli {

std::string completion_for(completion_arguments::shell shell, const command_description& program);

}  // namespace sluice::jobs::cli
