#pragma once

// Where what one says is heard by all. It never waits for any of them.
//
// A session that comes to its end, however that happens, leaves the room: the room watches each
// one. At its own end the room says so, and everybody goes home: each session watches its room.

#include <map>
#include <string>
#include <vector>

#include "examples/chat/messages.hpp"
#include "sluice/actor/actor.hpp"

namespace chat {

class room : public sluice::actor<room, join, leave, say, who_is_there, gone> {
 public:
  bool on(join j);
  void on(leave l);
  void on(say s);
  std::vector<std::string> on(who_is_there) const;
  void on(gone g);
  void stopping();

 private:
  void tell_all(const line& l) const;

  std::map<std::string, sluice::recipient<line>> there_;
};

}  // namespace chat
