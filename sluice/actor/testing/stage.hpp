#pragma once

// Actors for tests of starts, ends and restarts. Each runs the functions that a test sends, and a
// journal records constructions, stops and destructions in order. The test drives executor and
// clock.
//
//     stage s;
//     auto anna = s.enter("anna");
//     s.fall(anna);
//     EXPECT_EQ(s.journal.take(), "+anna anna! -anna +anna");

#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/task.hpp"

namespace sluice::testing {

// Events in order. Any thread may add one.
class journal {
 public:
  void note(const std::string& event) {
    const std::lock_guard hold(mutex_);
    text_ += (text_.empty() ? "" : " ") + event;
  }
  std::string take() {
    const std::lock_guard hold(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;  // protected by mutex_
};

class player;

// The name of a player, and its actions at its start and at its stop.
struct part {
  std::string name{};
  journal* log = nullptr;
  std::function<void(player&)> at_start{};
  std::function<void(player&)> at_stop{};
};

struct act {  // runs in the player's turn
  std::function<void(player&)> f{};
};
struct perform {  // a coroutine
  std::function<task<>(player&)> f{};
};
struct say {
  std::string text{};
};
struct urgent_say {
  static constexpr lane in_lane = lane::urgent;
  std::string text{};
};
struct question {
  using reply = std::string;
};

class player : public actor<player, act, perform, say, urgent_say, question> {
 public:
  explicit player(part p) : part_(std::move(p)) {
    note("+" + part_.name);
    if (part_.at_start) part_.at_start(*this);
  }
  ~player() { note("-" + part_.name); }
  void stopping() {
    note(part_.name + "!");
    if (part_.at_stop) part_.at_stop(*this);
  }

  void on(act a) { a.f(*this); }
  task<> on(perform p) {
    const auto f = std::move(p.f);
    co_await f(*this);
  }
  void on(say s) { note(part_.name + ":" + s.text); }
  void on(urgent_say s) { note(part_.name + "!!" + s.text); }
  std::string on(question) { return part_.name; }

  using actor::become;
  using actor::become_stacked;
  using actor::cancel;
  using actor::child_count;
  using actor::children;
  using actor::close_self;
  using actor::link;
  using actor::pipe;
  using actor::self;
  using actor::send_after;
  using actor::send_every;
  using actor::spawn_with;
  using actor::stash;
  using actor::stop_self;
  using actor::unbecome;
  using actor::unlink;
  using actor::unstash_all;
  using actor::unwatch;
  using actor::watch;

  ref<player> hire(const std::string& name, actor_options o = {}) {
    return hire(part{.name = name, .log = part_.log}, std::move(o));
  }
  ref<player> hire(part p, actor_options o = {}) {
    o.name = p.name;
    p.log = part_.log;
    return spawn_with<player>(o, std::move(p));
  }
  // Watches `other`, and records its name and the reason when it ends.
  void notes_end_of(const detail::address& other) {
    watch(other, [](const actor_end& e) {
      return say{e.name + (e.why == end_reason::failed ? "-failed" : "-stopped")};
    });
  }
  void note(const std::string& event) { part_.log->note(event); }
  const std::string& name() const { return part_.name; }

  int life = 0;  // a mark by which tests recognise the state

 private:
  const part part_;
};

[[noreturn]] inline void falls(player& who) {
  throw std::runtime_error(who.name() + " fell");
}

inline actor_options named(std::string name, supervision children = {}) {
  actor_options o;
  o.name = std::move(name);
  o.children = std::move(children);
  return o;
}

class stage {
 public:
  explicit stage(supervision top = {}) : system(executor, options(std::move(top))) {}
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage() { end(); }

  void end() {
    system.stop();
    while (!system.join(deadline::after(std::chrono::nanoseconds(0)))) executor.run_all();
  }
  void run() { executor.run_all(); }
  void advance(std::chrono::nanoseconds by) {
    clock.advance(by);
    run();
  }

  ref<player> enter(const std::string& name, supervision children = {}) {
    return enter(part{.name = name}, std::move(children));
  }
  ref<player> enter(part p, supervision children = {}) {
    p.log = &log;
    return system.spawn_with<player>(named(p.name, std::move(children)), std::move(p));
  }
  void tell(const ref<player>& who, std::function<void(player&)> f) {
    const status sent = who.send(act{std::move(f)});
    check(static_cast<bool>(sent), "test", "an actor that accepts messages");
    run();
  }
  void fall(const ref<player>& who) { tell(who, &falls); }
  // Spawns children of `who` with these names, and returns them in that order.
  std::vector<ref<player>> hire(const ref<player>& who, const std::vector<std::string>& names) {
    std::vector<ref<player>> all;
    tell(who, [&](player& me) {
      for (const std::string& name : names) all.push_back(me.hire(name));
    });
    return all;
  }
  std::string took() { return log.take(); }
  // Returns the failures with the decisions.
  std::string failures() { return failed.take(); }
  std::string dead_letters() { return dead.take(); }

  journal log;
  journal failed;
  journal dead;
  manual_clock clock;
  manual_executor executor;
  actor_system system;

 private:
  actor_system_options options(supervision top) {
    actor_system_options o;
    o.time = &clock;
    o.top = std::move(top);
    o.on_failure = [this](const actor_failure& f) {
      failed.note(std::string(f.name) + ":" + std::string(to_string(f.action)));
    };
    o.on_dead_letter = [this](const dead_letter& d) {
      dead.note(std::string(d.message.substr(d.message.rfind(':') + 1)));
    };
    return o;
  }
};

}  // namespace sluice::testing
