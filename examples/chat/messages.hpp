#pragma once

// The messages between the actors of the chat.

#include <string>
#include <vector>

#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/ref.hpp"

namespace chat {

// To a session: show it.
struct line {
  std::string from;
  std::string text;
};

// To a room. The reply is false if the name is taken.
struct join {
  using reply = bool;
  std::string name;
  sluice::recipient<line> who;
};
struct leave {
  std::string name;
};
struct say {
  std::string name;
  std::string text;
};
struct who_is_there {
  using reply = std::vector<std::string>;
};

// To a room, from its death watch.
struct gone {
  std::string name;
  sluice::actor_id session = 0;
};

}  // namespace chat
