#include "jobs/model/result.hpp"

namespace sluice::jobs {

std::string_view to_string(error_code code) noexcept {
  switch (code) {
    case error_code::invalid:
      return "invalid";
    case error_code::too_large:
      return "too_large";
    case error_code::not_found:
      return "not_found";
    case error_code::duplicate:
      return "duplicate";
    case error_code::wrong_state:
      return "wrong_state";
    case error_code::lease_lost:
      return "lease_lost";
    case error_code::queue_full:
      return "queue_full";
    case error_code::timed_out:
      return "timed_out";
    case error_code::stopped:
      return "stopped";
    case error_code::shutting_down:
      return "shutting_down";
    case error_code::overloaded:
      return "overloaded";
    case error_code::disk_full:
      return "disk_full";
    case error_code::io_error:
      return "io_error";
    case error_code::locked:
      return "locked";
    case error_code::corrupt:
      return "corrupt";
    case error_code::unavailable:
      return "unavailable";
    case error_code::unauthenticated:
      return "unauthenticated";
    case error_code::forbidden:
      return "forbidden";
  }
  return "unknown";
}

}  // namespace sluice::jobs
