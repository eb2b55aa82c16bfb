#pragma once

// Decides what happens to an actor whose handler, or whose constructor at a restart, throws. A
// parent has one supervision for all of its children.
//
// - resume: the actor continues with the next message, its state as the exception left it. An actor
//   without a state, because its constructor threw at a restart, ends.
// - restart: its children are stopped, its state is destroyed and constructed again, from the
//   arguments of its spawn; its mailbox and all refs to it stay.
// - stop: it ends, as after a stop.
// - escalate: the parent fails with the same exception, and its own parent decides.
// The message on which the actor failed is consumed in any case.
//
// `strategy` selects the siblings that are restarted along with it: none, all, or those spawned
// after it. They are destroyed in reverse order of spawning, and constructed in order. More than
// `restarts_max` restarts within `within` escalate; at the top of the tree they stop the actor. A
// restart of the supervisor resets its count. `backoff_first` delays each restart, between the end
// of the old state and the construction of the new one. The delay doubles with each failure of the
// same actor up to `backoff_max`, and is reset after `within` without a failure. Messages gather in
// the mailbox meanwhile. A child that fails while its parent ends is stopped in any case.
//
// A child may be of another kind than its siblings (actor_options::kind):
// - transient, the default: restarted if it fails and its parent decides so; ends if it is stopped
//   or closed.
// - permanent: present as long as its parent. If its parent ends it, it ends. If it ends itself, or
//   another party stops or closes it, that is a failure (actor_error::unexpected_end) about which
//   the parent decides; its mailbox stays. For an actor that the system spawned, any caller outside
//   of actors counts as the parent.
// - temporary: never restarted. A decision to restart it, or a restart along with siblings, stops
//   it; that does not count as a restart.
//
//     actor_options o;
//     o.children = {.strategy = strategy::rest_for_one, .restarts_max = 3, .within = 5s};
//     auto log = spawn_with<logger>({.name = "log", .kind = child_kind::permanent});

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace sluice {

enum class strategy : std::uint8_t { one_for_one, one_for_all, rest_for_one };
enum class directive : std::uint8_t { resume, restart, stop, escalate };

enum class child_kind : std::uint8_t { transient, permanent, temporary };

struct supervision {
  sluice::strategy strategy = sluice::strategy::one_for_one;
  directive action = directive::restart;
  // Decides by the exception; empty: `action`. If it throws, the failure escalates.
  std::function<directive(const std::exception_ptr&)> decide{};
  std::uint32_t restarts_max = 10;
  std::chrono::nanoseconds within = std::chrono::seconds(10);
  std::chrono::nanoseconds backoff_first{0};  // zero: no delay
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(10);
};

constexpr std::string_view to_string(directive d) noexcept {
  switch (d) {
    case directive::resume:
      return "resume";
    case directive::restart:
      return "restart";
    case directive::stop:
      return "stop";
    case directive::escalate:
      return "escalate";
  }
  return "unknown";
}

}  // namespace sluice
