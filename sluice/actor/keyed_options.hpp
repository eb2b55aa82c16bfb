#pragma once

// How actors are kept by key, and what is told about them.

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
  load,       // those who asked hear it; the next message tries again
  save,       // it stays in memory, and is tried again when it has been idle as long again
  last_save,  // as it ended: what was not saved before is lost
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

// The store, or the actor's own save, load or constructor, has failed.
struct keyed_failure {
  std::string_view type{};
  std::string_view key{};
  keyed_step what = keyed_step::load;
  std::exception_ptr error{};
};

struct keyed_options {
  // Null: nothing is kept, and one that has been idle begins anew.
  actor_store* store = nullptr;
  // What the store knows this type by; empty: its name in C++, which changes when it is moved to
  // another namespace.
  std::string type{};
  std::chrono::nanoseconds idle = std::chrono::minutes(5);  // zero: it is never too long
  std::size_t live_max = 100'000;                           // of this type, in memory
  std::size_t live_limit = 0;  // at which senders wait for room; zero: twice live_max
  actor_options each{};        // of every one; its name is the type and the key
  // What becomes of one that fails. Made anew, it has the state that was saved last.
  supervision failing{.restarts_max = std::numeric_limits<std::uint32_t>::max()};
  // Called by many threads, in the middle of things: it must not wait. Empty, or if it throws:
  // writes to standard error.
  std::function<void(const keyed_failure&)> on_failure{};
};

struct keyed_stats {
  std::size_t live = 0;  // also those that are being loaded or saved
  std::uint64_t loads = 0;
  std::uint64_t saves = 0;
  std::uint64_t rests = 0;  // that left memory, to come back when there is a message
  std::uint64_t failures = 0;
};

}  // namespace sluice
