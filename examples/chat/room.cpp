#include "examples/chat/room.hpp"

#include <utility>

namespace chat {

bool room::on(join j) {
  if (there_.contains(j.name)) {
    j.who.close();
    return false;
  }
  watch(j.who, [name = j.name](const sluice::actor_end& e) { return gone{name, e.id}; });
  tell_all({"room", j.name + " is here"});
  there_.emplace(std::move(j.name), std::move(j.who));
  return true;
}

void room::on(leave l) {
  const auto found = there_.find(l.name);
  if (found == there_.end()) return;
  found->second.close();  // it shows its queued lines, and ends
  there_.erase(found);
  tell_all({"room", l.name + " has left"});
}

void room::on(say s) {
  if (there_.contains(s.name)) tell_all({s.name, std::move(s.text)});
}

std::vector<std::string> room::on(who_is_there) const {
  std::vector<std::string> names;
  for (const auto& [name, who] : there_) names.push_back(name);
  return names;
}

void room::on(gone g) {
  const auto found = there_.find(g.name);
  // Another session may have joined under that name meanwhile.
  if (found == there_.end() || found->second.id() != g.session) return;
  there_.erase(found);
  tell_all({"room", g.name + " is gone"});
}

void room::stopping() {
  tell_all({"room", "good night"});
}

// A full session drops its oldest line; for a session that has ended, `gone` is on its way.
void room::tell_all(const line& l) const {
  for (const auto& [name, who] : there_) (void)who.try_send(l);
}

}  // namespace chat
