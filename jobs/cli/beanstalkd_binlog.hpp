#pragma once

// A folder that beanstalkd keeps its jobs in is not read by anything here, and a server that
// started on it would leave them behind without a word.
//
//     if (auto free = check_no_binlog(folder); !free) return complain(free.error());

#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

// wrong_state: a binlog of beanstalkd is there; says which file, and what to do. A folder that is
// not there, or cannot be read, has none.
void_result check_no_binlog(const std::string& folder);

}  // namespace sluice::jobs::cli
