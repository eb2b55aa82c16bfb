#pragma once

// The args of a job as they are given on a command line.

#include <string>

#include "jobs/cli/console.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::cli {

// A value, @FILE, or - for standard input; empty: none. invalid: it is no JSON, and not `as_bytes`.
result<payload> read_args(const std::string& text, bool as_bytes, const console& from);
// Empty, or JSON.
void_result check_metadata(const std::string& text);

}  // namespace sluice::jobs::cli
