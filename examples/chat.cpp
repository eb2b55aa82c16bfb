// A chat: rooms and sessions are actors. One of three people reads slowly, one has a bad
// connection, and neither of them blocks the others.
#include <cstdio>
#include <string>
#include <vector>

#include "examples/chat/lobby.hpp"
#include "examples/chat/room.hpp"
#include "examples/chat/terminal.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace {

using names = std::vector<std::string>;

bool is_true(const char* claim, bool holds) {
  std::printf("%-64s %s\n", claim, holds ? "yes" : "NO");
  return holds;
}

sluice::actor_system_options quiet() {
  sluice::actor_system_options o;
  o.on_failure = [](const sluice::actor_failure& f) {
    std::printf("  (%s failed: %s)\n", std::string(f.name).c_str(),
                std::string(to_string(f.action)).c_str());
  };
  return o;
}

bool an_evening() {
  chat::terminal ada;
  chat::terminal bob;
  chat::terminal cay;
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool, quiet());
  const auto lobby = system.spawn_with<chat::lobby>(chat::lobby::options());
  const auto room = lobby.ask(chat::open_room{"garden"}).get();
  const auto enter = [&](const char* name, chat::terminal& at) {
    return lobby.ask(chat::enter{name, &at, room}).get();
  };
  const auto ada_says = [&](const std::string& text) {
    return room.send(chat::say{"ada", text}) && bob.waits_until_last_is("ada: " + text);
  };

  bool ok = is_true("three come in", enter("ada", ada) && enter("bob", bob) && enter("cay", cay));
  chat::terminal other;
  ok &= is_true("a second bob is turned away", !enter("bob", other));

  cay.look_away();
  bool all_heard = true;
  for (int i = 1; i <= 100; ++i) all_heard &= ada_says(std::to_string(i));
  ok &= is_true("cay stops reading, and bob receives every line of ada", all_heard);
  cay.look();
  ok &= is_true("then cay sees the last of them", cay.waits_until_last_is("ada: 100"));
  ok &= is_true("... and has missed most", cay.lines().size() < 20);

  bob.stumble();
  (void)room.send(chat::say{"ada", "this one bob does not see"});
  ok &= is_true("bob's session fails, is restarted and stays in the room", ada_says("bob?"));

  cay.pull_the_plug();
  (void)room.send(chat::say{"bob", "cay?"});
  ok &= is_true("cay's connection breaks: the room is notified",
                bob.waits_until_last_is("room: cay is gone"));
  ok &=
      is_true("ada and bob are left", room.ask(chat::who_is_there{}).get() == names{"ada", "bob"});

  (void)room.send(chat::leave{"bob"});
  ok &= is_true("bob leaves", ada.waits_until_last_is("room: bob has left"));
  room.close();
  ok &= is_true("the room closes and announces it", ada.waits_until_last_is("room: good night"));
  (void)room.ended().get();
  ok &= is_true("a line sent now returns closed",
                room.send(chat::say{"ada", "hello?"}) == sluice::status::closed);
  return ok;
}

}  // namespace

int main() {
  const bool ok = an_evening();
  std::puts(ok ? "good night" : "something is wrong");
  return ok ? 0 : 1;
}
