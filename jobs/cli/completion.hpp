#pragma once

// What a shell needs to complete the program's commands, flags and their words: made of the
// description of the commands, so that it knows exactly those that there are.

#include <string>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/command_description.hpp"

namespace sluice::jobs::cli {

std::string completion_for(completion_arguments::shell shell, const command_description& program);

}  // namespace sluice::jobs::cli
