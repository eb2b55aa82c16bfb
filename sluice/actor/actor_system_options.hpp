#pragma once

// How a system of actors is made, and what it tells.

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/supervision.hpp"
#include "sluice/base/clock.hpp"

namespace sluice {

// A message that nobody handled.
struct dead_letter {
  actor_id to = 0;
  std::string_view message{};  // its type
  loss why = loss::ended;
};

// An actor's handler or constructor has thrown, and this was decided.
struct actor_failure {
  actor_id who = 0;
  std::string_view name{};
  std::exception_ptr error{};
  directive what = directive::restart;
};

struct actor_system_options {
  std::string name = "actors";
  clock* time = nullptr;  // for timers and restarts; null: the real clock
  supervision top{};      // of the actors that the system itself spawns
  // Both are called by many threads, in the middle of things: they must not wait or throw.
  std::function<void(const dead_letter&)> on_dead_letter{};
  std::function<void(const actor_failure&)> on_failure{};  // empty: says so on standard error
  actor_observer* observer = nullptr;
};

struct actor_system_stats {
  std::uint64_t spawned = 0;
  std::uint64_t live = 0;
  std::uint64_t dead_letters = 0;  // all messages that were sent and not handled; of those
  std::uint64_t dropped = 0;       // were dropped by full mailboxes
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
};

}  // namespace sluice
