#include "sluice/flow/refused_error.hpp"

namespace sluice {
namespace {

std::string message(refused_error::reason why, std::string_view source,
                    std::chrono::nanoseconds retry_after) {
  std::string text = "sluice: the call was refused by ";
  text += source;
  text += ": ";
  text += to_string(why);
  if (retry_after.count() > 0) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(retry_after);
    text += "; try again in " + std::to_string(ms.count()) + " ms";
  }
  return text;
}

}  // namespace

refused_error::refused_error(reason why, std::string_view source,
                             std::chrono::nanoseconds retry_after)
    : std::runtime_error(message(why, source, retry_after)), why_(why), retry_after_(retry_after) {}

std::string_view to_string(refused_error::reason why) noexcept {
  switch (why) {
    case refused_error::reason::open:
      return "the circuit is open";
    case refused_error::reason::full:
      return "full";
    case refused_error::reason::timed_out:
      return "timed out";
    case refused_error::reason::stopped:
      return "stopped";
  }
  return "unknown";
}

}  // namespace sluice
