#pragma once

// Gives up being root, for good: the process becomes another user with that user's groups.
//
// Call it before there are threads and before files are made, so that all of them are the user's.
// Nothing to do when the process is that user already.
//
//     if (auto changed = become_user("sluice"); !changed) return complain(changed.error());

#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

// not_found: no such user; forbidden: only root can; io_error: what the system says.
void_result become_user(const std::string& name);

}  // namespace sluice::jobs::cli
