#include "jobs/cli/exit_code.hpp"

namespace sluice::jobs::cli {

exit_code exit_code_for(error_code code) noexcept {
  switch (code) {
    case error_code::invalid:
    case error_code::too_large:
      return exit_code::bad_usage;
    case error_code::not_found:
      return exit_code::not_found;
    case error_code::duplicate:
    case error_code::wrong_state:
    case error_code::lease_lost:
    case error_code::stopped:
    case error_code::io_error:
      return exit_code::failed;
    case error_code::unauthenticated:
    case error_code::forbidden:
      return exit_code::not_allowed;
    case error_code::queue_full:
    case error_code::overloaded:
    case error_code::shutting_down:
    case error_code::disk_full:
      return exit_code::try_later;
    case error_code::timed_out:
      return exit_code::timed_out;
    case error_code::locked:
    case error_code::corrupt:
      return exit_code::bad_store;
    case error_code::unavailable:
      return exit_code::unavailable;
  }
  return exit_code::failed;
}

}  // namespace sluice::jobs::cli
