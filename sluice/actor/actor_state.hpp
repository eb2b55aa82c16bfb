#pragma once

// The stage of an actor's life, as seen by other parties.

#include <cstdint>
#include <string_view>

namespace sluice {

enum class actor_state : std::uint8_t {
  running,     // also after a failure, until its parent has decided
  closing,     // accepts no messages, and handles the queued ones
  restarting,  // its state is being destroyed and constructed, or waits for that; messages gather
  stopping,    // ends, with all actors below it
  terminated,
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
    case actor_state::terminated:
      return "terminated";
  }
  return "unknown";
}

}  // namespace sluice
