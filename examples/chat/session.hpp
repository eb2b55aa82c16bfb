#pragma once

// One person's end of the chat: shows them what is said.
//
// It shows one line after the other, each for as long as it takes. Meanwhile the last few wait in
// its mailbox, and older ones are dropped: whoever reads slowly misses something, and nobody else
// notices.

#include <string>
#include <utility>

#include "examples/chat/messages.hpp"
#include "examples/chat/terminal.hpp"
#include "sluice/actor/actor.hpp"

namespace chat {

class session : public sluice::actor<session, line> {
 public:
  explicit session(terminal& at) : at_(at) {}

  static sluice::actor_options options(const std::string& name) {
    sluice::actor_options o;
    o.name = name;
    o.mailbox = {.capacity = 8, .overflow = sluice::overflow::drop_oldest};
    return o;
  }

  sluice::task<> on(line l) { return at_.show(l.from + ": " + l.text); }

 private:
  terminal& at_;
};

}  // namespace chat
