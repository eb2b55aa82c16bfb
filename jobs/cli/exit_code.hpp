#pragma once

// How a command ended, for the script that called it. docs/reference/cli.md has the same table.

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

enum class exit_code : int {
  ok = 0,
  failed = 1,          // understood and refused, or it had another end than was asked for
  bad_usage = 2,       // the command line, or a value in it, is wrong: the same will never succeed
  not_found = 3,       // no such job, queue, batch, entry, token, file or program
  try_later = 4,       // the queue is full, the server overloaded, closing or out of disk space
  unavailable = 5,     // no server there, or no answer that makes sense
  timed_out = 6,       // the time that was given for it is over
  bad_store = 7,       // the data cannot be opened (missing, locked, not writable), or is damaged
  address_in_use = 8,  // serve: another program listens there
  not_allowed = 9,     // the token is missing, wrong, or does not allow it
};

exit_code exit_code_for(error_code code) noexcept;

}  // namespace sluice::jobs::cli
