#pragma once

// The options of a system of actors, its reports, and its counters.

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/supervision.hpp"
#include "sluice/base/clock.hpp"

namespace sluice {

// A message that was not handled. Its views are valid during the call.
struct dead_letter {
  actor_id receiver = 0;
  std::string_view name{};     // of the receiver
  std::string_view path{};     // the name with those of its parents: "/lobby/garden/anna"
  std::string_view type{};     // of the receiver
  std::string_view message{};  // the type of the message
  bool is_request = false;     // its asker gets actor_error
  // The sender; 0 if it is no actor of this system, or unknown, as for a stashed message.
  actor_id from = 0;
  loss why = loss::ended;
};

// A reply that arrived after the asker had given up: at its deadline or at a stop request. Its
// views are valid during the call.
struct late_reply {
  actor_id asked = 0;
  std::string_view name{};     // of the asked actor, or of its router or pool
  std::string_view type{};     // of the asked actor
  std::string_view message{};  // the type of the request
  actor_id asker = 0;          // 0 if it is no actor
};

// An exception of an actor's handler or constructor, and the decision of its parent.
struct actor_failure {
  actor_id id = 0;
  std::string_view name{};
  std::exception_ptr error{};
  directive action = directive::restart;
};

struct actor_system_options {
  std::string name = "actors";
  clock* time = nullptr;  // for timers and restarts; null: the real clock
  supervision top{};      // of the actors that the system spawns
  // Called by many threads, in the middle of operations: they must not wait. An exception that
  // leaves one of them is written to standard error (docs/concepts/errors.md).
  std::function<void(const dead_letter&)> on_dead_letter{};
  std::function<void(const late_reply&)> on_late_reply{};
  std::function<void(const actor_failure&)> on_failure{};  // empty: standard error
  actor_observer* observer = nullptr;
};

struct actor_system_stats {
  std::uint64_t spawned = 0;
  std::uint64_t live = 0;
  std::uint64_t dead_letters = 0;  // messages that were sent and not handled, including `dropped`
  std::uint64_t dropped = 0;       // messages dropped by full mailboxes
  // Late replies to asks with limits; the requests were handled. For ask_first: replies after its
  // limits, not after its first reply. A reply at the moment at which the ask ends may be missed.
  std::uint64_t late_replies = 0;
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
};

}  // namespace sluice
