#pragma once

// Says what becomes of an actor whose handler, or whose constructor at a restart, has thrown. It is
// said by its parent, for all of its children.
//
// - resume: it goes on with the next message, its state as the exception left it. One that has no
//   state, because its constructor threw at a restart, ends.
// - restart: its children are stopped, its state is destroyed and made anew, by the constructor and
//   the arguments it was spawned with; its mailbox, and every ref to it, stay.
// - stop: it ends, as if it had been told to.
// - escalate: the parent fails with the same exception, and its own parent decides.
// The message it failed on is used up in any case.
//
// Who is restarted along with it is the `strategy`: nobody, all its siblings, or those that were
// spawned after it. They are taken down in reverse order of their making and made anew in order.
// More than `restarts_max` restarts within `within` are too many: the failure escalates; at the top
// of the tree that stops the actor. A supervisor that is made anew counts anew.
// With a `backoff_first` there is a wait between the end of the old state and the making of the
// new one, longer each time while the same actor goes on failing: doubled up to `backoff_max`, and
// forgotten after `within` without a failure. Meanwhile messages gather in the mailbox.
// A child that fails while its parent ends is stopped, whatever is said here.
//
// A single child may be of another kind than its siblings (actor_options::kind):
// - transient, as it is unless something else is said: made anew when it fails and that is what its
//   parent decides; when it is stopped or closed, it ends.
// - permanent: to be there as long as its parent is. It ends when that ends it; when it stops
//   itself, or somebody else stops or closes it, that is a failure (actor_error::ended), about
//   which the parent decides as about any other. What is in its mailbox stays. For an actor that
//   the system has spawned, the parent is whoever is no actor.
// - temporary: never made anew. Where a restart is decided for it, or it is in a round of others,
//   it is stopped; that does not count as a restart.
//
//     actor_options o;
//     o.children = {.who = strategy::rest_for_one, .restarts_max = 3, .within = 5s};
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
  strategy who = strategy::one_for_one;
  directive what = directive::restart;
  // Decides by the exception; empty: `what`. If it throws, the failure escalates.
  std::function<directive(const std::exception_ptr&)> decide{};
  std::uint32_t restarts_max = 10;
  std::chrono::nanoseconds within = std::chrono::seconds(10);
  std::chrono::nanoseconds backoff_first{0};  // zero: at once
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
