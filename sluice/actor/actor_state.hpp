#pragma once

// Where an actor is in its life, as others see it.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class actor_state : std::uint8_t {
  running,     // also one that has failed, while its parent has not decided
  closing,     // takes no messages any more, and handles those that it has
  restarting,  // its state ends, is gone, waits to be made anew, or is just made; messages gather
  stopping,    // ends, with all below it
  over,        // is no more
};

constexpr std::string_view to_string(actor_state s) noexcept {
  switch (s) {
    case actor_state::running:
      return "running";
    case actor_state::closing:
      return "closing";
    case actor_state::restarting:
      return "restarting";
    case actor_state::stopping:
      return "stopping";
    case actor_state::over:
      return "over";
  }
  return "unknown";
}

}  // namespace sluice
