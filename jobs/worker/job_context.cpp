#include "jobs/worker/job_context.hpp"

namespace sluice::jobs {

std::string_view to_string(stop_reason why) noexcept {
  switch (why) {
    case stop_reason::none:
      return "none";
    case stop_reason::cancelled:
      return "cancelled";
    case stop_reason::lease_lost:
      return "lease_lost";
    case stop_reason::time_limit:
      return "time_limit";
    case stop_reason::shutdown:
      return "shutdown";
  }
  return "unknown";
}

void job_context::request_stop(stop_reason why) noexcept {
  auto expected = stop_reason::none;
  // release: pairs with the acquire in why_stopped, so a reader that sees the token triggered also
  // sees the reason.
  if (why_.compare_exchange_strong(expected, why, release, relaxed)) stop_.request_stop();
}

}  // namespace sluice::jobs
