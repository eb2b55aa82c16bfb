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

// A message that nobody handled. What it refers to is there during the call.
struct dead_letter {
  actor_id to = 0;
  std::string_view name{};     // of the actor that it was sent to
  std::string_view path{};     // the same with those of its parents: "/lobby/garden/anna"
  std::string_view type{};     // of that actor
  std::string_view message{};  // the type of the message
  bool is_request = false;     // somebody waits for an answer, and hears actor_error
  // The actor that sent it. 0: none of this system did, or it is not known, as of what was stashed.
  actor_id from = 0;
  loss why = loss::ended;
};

// An answer that came when who asked had given up: the deadline of the ask had passed, or its
// stop_token had asked. What it refers to is there during the call.
struct late_reply {
  actor_id asked = 0;
  std::string_view name{};     // of the actor that was asked, or of its router or pool
  std::string_view type{};     // of that actor
  std::string_view message{};  // the type of the request
  actor_id asker = 0;          // 0: no actor
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
  // Called by many threads, in the middle of things: they must not wait. An exception that leaves
  // one is written to standard error (docs/concepts/errors.md).
  std::function<void(const dead_letter&)> on_dead_letter{};
  std::function<void(const late_reply&)> on_late_reply{};
  std::function<void(const actor_failure&)> on_failure{};  // empty: says so on standard error
  actor_observer* observer = nullptr;
};

struct actor_system_stats {
  std::uint64_t spawned = 0;
  std::uint64_t live = 0;
  std::uint64_t dead_letters = 0;  // all messages that were sent and not handled; of those
  std::uint64_t dropped = 0;       // were dropped by full mailboxes
  // To asks with limits; their messages were handled. Of an ask_first those that came after its
  // limits, not after its first answer. One that comes while the ask is just ending may be missed.
  std::uint64_t late_replies = 0;
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;
};

}  // namespace sluice
