#include "sluice/future/future_error.hpp"

#include <string>

namespace sluice {

const char* to_string(future_error::reason why) noexcept {
  switch (why) {
    case future_error::broken_promise: return "broken promise: destroyed without a result";
    case future_error::cancelled: return "cancelled";
    case future_error::timed_out: return "timed out";
    case future_error::rejected: return "rejected by its executor";
    case future_error::cycle: return "a cycle: it would wait for itself";
  }
  return "unknown";
}

future_error::future_error(reason why) : std::runtime_error(to_string(why)), why_(why) {}

future_error::future_error(reason why, const char* detail)
    : std::runtime_error(std::string(to_string(why)) + " (" + detail + ")"), why_(why) {}

}  // namespace sluice
