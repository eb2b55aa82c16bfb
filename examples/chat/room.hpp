#pragma once

// Sends each line to all its sessions. It never waits for any of them.
//
// The room watches its sessions: a session that ends, for any reason, leaves the room. Each session
// watches its room: when the room ends, its sessions end.

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
