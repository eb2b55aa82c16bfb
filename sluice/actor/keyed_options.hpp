#pragma once

// The options, failures and counters of keyed actors.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/actor_store.hpp"

namespace sluice {

enum class keyed_step : std::uint8_t {
  load,       // askers get the exception; the next message tries again
  save,       // the actor stays in memory; retried after it has been idle for as long again
  last_save,  // at the end of the actor: changes since the previous save are lost
  remove,
};

constexpr std::string_view to_string(keyed_step s) noexcept {
  switch (s) {
    case keyed_step::load:
      return "loading";
    case keyed_step::save:
      return "saving";
    case keyed_step::last_save:
      return "saving at its end";
    case keyed_step::remove:
      return "removing";
  }
  return "unknown";
}

// A failure of the store, or of the actor's save, load or constructor.
struct keyed_failure {
  std::string_view type{};
  std::string_view key{};
  keyed_step step = keyed_step::load;
  std::exception_ptr error{};
};

struct keyed_options {
  // Null: no state is kept, and a passivated actor starts from an empty state.
  actor_store* store = nullptr;
  // The name of this type in the store; empty: its name in C++, which changes with its namespace.
  std::string type{};
  std::chrono::nanoseconds idle = std::chrono::minutes(5);  // zero: no limit
  std::size_t live_max = 100'000;                           // of this type, in memory
  std::size_t live_limit = 0;  // senders wait for capacity here; zero: twice live_max
  actor_options each{};        // of every actor; its name is the type and the key
  // Decides about an actor that fails. A restart loads the state that was saved last.
  supervision failing{.restarts_max = std::numeric_limits<std::uint32_t>::max()};
  // Called by many threads, in the middle of operations: it must not wait. If it is empty or
  // throws, the failure is written to standard error.
  std::function<void(const keyed_failure&)> on_failure{};
};

struct keyed_stats {
  std::size_t live = 0;  // including actors that are being loaded or saved
  std::uint64_t loads = 0;
  std::uint64_t saves = 0;
  std::uint64_t passivations = 0;
  std::uint64_t failures = 0;
};

}  // namespace sluice
