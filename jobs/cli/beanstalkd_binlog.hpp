#pragma once

// Detects a binlog of beanstalkd in a data folder. The server cannot read it, and would silently
// ignore its jobs.
//
//     if (auto free = check_no_binlog(folder); !free) return complain(free.error());

#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

// Fails with `wrong_state` if the folder has a binlog; the message names the file and what to do.
// Succeeds if the folder does not exist or cannot be read.
void_result check_no_binlog(const std::string& folder);

}  // namespace sluice::jobs::cli
