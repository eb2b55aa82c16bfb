#pragma once

// Where people come in: makes the rooms and the sessions, and looks after them.
//
// A session whose connection had a hiccup is made anew, and is still in its room: every ref to it
// stays. One whose connection is no more ends, and one that does not get into its room.

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "examples/chat/messages.hpp"
#include "examples/chat/room.hpp"
#include "examples/chat/session.hpp"
#include "examples/chat/terminal.hpp"
#include "sluice/actor/actor.hpp"

namespace chat {

struct open_room {
  using reply = sluice::ref<room>;
  std::string name;
};
// Answered by the room, as a join is; if that is full or no more, with actor_error.
struct enter {
  using reply = bool;
  std::string name;
  terminal* at = nullptr;
  sluice::ref<room> where;
};

class lobby : public sluice::actor<lobby, open_room, enter> {
 public:
  static sluice::actor_options options() {
    sluice::actor_options o;
    o.name = "lobby";
    o.children.decide = [](const std::exception_ptr& why) {
      try {
        std::rethrow_exception(why);
      } catch (const hung_up&) {
        return sluice::directive::stop;
      } catch (...) {
        return sluice::directive::restart;
      }
    };
    return o;
  }

  sluice::ref<room> on(open_room m) { return spawn_with<room>({.name = std::move(m.name)}); }

  void on(enter m, sluice::responder<bool> to) {
    const auto s = spawn_with<session>(session::options(m.name), std::ref(*m.at), m.where);
    if (!forward(m.where, join{std::move(m.name), s}, std::move(to))) s.stop();
  }
};

}  // namespace chat
