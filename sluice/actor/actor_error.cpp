#include "sluice/actor/actor_error.hpp"

namespace sluice {
namespace {

std::string text_of(actor_error::reason why, std::string_view actor, std::string_view message) {
  std::string text = "actor '" + std::string(actor) + "'";
  if (!message.empty()) text += ", asked '" + std::string(message) + "'";
  return text + ": " + std::string(to_string(why));
}

}  // namespace

actor_error::actor_error(reason why, std::string_view actor, std::string_view message)
    : std::runtime_error(text_of(why, actor, message)), why_(why) {}

std::string_view to_string(actor_error::reason why) noexcept {
  switch (why) {
    case actor_error::terminated:
      return "it has ended";
    case actor_error::full:
      return "its mailbox was full";
    case actor_error::dropped:
      return "its mailbox dropped the message for another";
    case actor_error::stopped:
      return "stopped while waiting for capacity in its mailbox";
    case actor_error::unanswered:
      return "it dropped the request without a reply";
    case actor_error::linked:
      return "an actor it is linked to has failed";
    case actor_error::unexpected_end:
      return "it is permanent, and was not ended by its parent";
  }
  return "unknown";
}

}  // namespace sluice
