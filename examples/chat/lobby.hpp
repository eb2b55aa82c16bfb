#pragma once

// The entrance: spawns and supervises the rooms and the sessions.
//
// A session whose connection failed briefly is restarted and is still in its room: every ref to it
// stays valid. A session ends if its connection is closed, or if its room does not admit it.

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
// The room replies, as to a join; if the room is full or has ended, actor_error.
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

  void on(enter m, sluice::responder<bool> asker) {
    const auto s = spawn_with<session>(session::options(m.name), std::ref(*m.at), m.where);
    if (!forward(m.where, join{std::move(m.name), s}, std::move(asker))) s.stop();
  }
};

}  // namespace chat
