#pragma once

// Reads the args of a job from a command line.

#include <string>

#include "jobs/cli/console.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::cli {

// `text` is a value, @FILE, or - for standard input; empty: no args. Fails with `invalid` if it is
// not JSON, unless `as_bytes`.
result<payload> read_args(const std::string& text, bool as_bytes, const console& io);
// Fails with `invalid` unless the text is empty or JSON.
void_result check_metadata(const std::string& text);

}  // namespace sluice::jobs::cli
