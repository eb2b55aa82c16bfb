#include "jobs/model/requests.hpp"

namespace sluice::jobs {

std::string_view to_string(push_receipt::fate fate) noexcept {
  switch (fate) {
    case push_receipt::fate::accepted:
      return "accepted";
    case push_receipt::fate::duplicate:
      return "duplicate";
    case push_receipt::fate::dropped:
      return "dropped";
    case push_receipt::fate::skipped:
      return "skipped";
  }
  return "unknown";
}

}  // namespace sluice::jobs
