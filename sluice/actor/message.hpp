#pragma once

// Messages between actors: any movable type of yours.
//
// A message type may declare three properties:
// - `using reply = int;` makes it a request: its asker gets an int, and a handler with another
//   result does not compile.
// - `static constexpr lane in_lane = lane::urgent;` has it handled before the messages that wait in
//   the other lanes of a mailbox. Between one sender and one receiver order is kept within a lane.
//   A full mailbox that drops a message for a new one (drop_oldest, latest) drops it from the
//   lowest lane, and never from a lane above the new message's: then it drops the new message.
//   Senders wait for capacity in one line for all lanes: an urgent message waits behind
//   others.
// - `auto key() const` is the key for an actor_router that routes by key.
//
//     struct add { int n; };
//     struct total { using reply = int; };
//     struct halt { static constexpr lane in_lane = lane::urgent; };

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice {

// Urgent messages are handled before normal and low ones. Every 32nd message is taken from the
// lowest lane that has one, so that no lane starves.
enum class lane : std::uint8_t { urgent, normal, low };

template <class M>
concept message = std::is_object_v<M> && std::move_constructible<M> && !std::is_const_v<M>;

template <class M>
concept request = message<M> && requires {
  typename M::reply;
};

namespace detail {

template <class M>
struct reply_of_message {
  using type = void;
};
template <class M>
requires requires {
  typename M::reply;
}
struct reply_of_message<M> {
  using type = typename M::reply;
};

template <class M>
constexpr lane lane_of() noexcept {
  if constexpr (requires { M::in_lane; }) {
    return M::in_lane;
  } else {
    return lane::normal;
  }
}

}  // namespace detail

// The reply type of a request; void for other messages.
template <class M>
using reply_of = typename detail::reply_of_message<M>::type;

// The message types that an actor takes.
template <message... Ms>
struct messages {
  static constexpr std::size_t count = sizeof...(Ms);
  template <class M>
  static constexpr bool contains = (std::same_as<M, Ms> || ...);
  template <class M>
  static constexpr std::size_t index_of() noexcept {
    std::size_t at = 0;
    bool is_past = false;
    const auto look = [&](bool is_it) {
      is_past = is_past || is_it;
      if (!is_past) ++at;
    };
    (look(std::same_as<M, Ms>), ...);
    return at;
  }
};

}  // namespace sluice
