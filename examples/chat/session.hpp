#pragma once

// One person's end of the chat: shows the lines of the room.
//
// It shows one line after the other, each for as long as it takes. Meanwhile the last few lines
// wait in its mailbox, and older ones are dropped: a slow reader misses lines, and no other session
// is affected. It ends with its room, also if the room ended before it admitted the session: it
// shows its queued lines, and ends.

#include <string>
#include <utility>

#include "examples/chat/messages.hpp"
#include "examples/chat/terminal.hpp"
#include "sluice/actor/actor.hpp"
#include "sluice/actor/any_ref.hpp"

namespace chat {

// To a session, from its death watch.
struct room_is_gone {};

class session : public sluice::actor<session, line, room_is_gone> {
 public:
  session(terminal& at, const sluice::any_ref& where) : at_(at) {
    watch(where, [](const sluice::actor_end&) { return room_is_gone{}; });
  }

  static sluice::actor_options options(const std::string& name) {
    sluice::actor_options o;
    o.name = name;
    o.mailbox = {.capacity = 8, .overflow = sluice::overflow::drop_oldest};
    return o;
  }

  sluice::task<> on(line l) { return at_.show(l.from + ": " + l.text); }
  void on(room_is_gone) { close_self(); }

 private:
  terminal& at_;
};

}  // namespace chat
