#pragma once

// The exit codes of the commands, for scripts. docs/reference/cli.md has the same table.

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

enum class exit_code : int {
  ok = 0,
  failed = 1,          // refused, or the awaited job is dead or cancelled
  bad_usage = 2,       // the command line or a value in it is invalid: a retry cannot succeed
  not_found = 3,       // no such job, queue, batch, entry, token, file or program
  try_later = 4,       // the queue is full; the server is overloaded, closing or out of disk space
  unavailable = 5,     // no server at the address, or an invalid response
  timed_out = 6,       // the given time has passed
  bad_store = 7,       // the data cannot be opened (missing, locked, not writable) or is damaged
  address_in_use = 8,  // serve: another program listens on the address
  not_allowed = 9,     // the token is missing, wrong, or lacks the permission
};

exit_code exit_code_for(error_code code) noexcept;

}  // namespace sluice::jobs::cli
