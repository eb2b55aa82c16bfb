#pragma once

// Actors that run functions given by a test. Their system has no observer: only inspect sees them.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/responder.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/task.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/testing/deadlock_fixture.hpp"
#include "sluice/inspect/testing/looking.hpp"

namespace sluice::testing {

struct act {
  std::function<void()> body;
};
struct act_as_coroutine {
  std::function<task<>()> body;
};
struct query {
  using reply = int;
};
// An ask that gets no reply before the actor terminates.
struct riddle {
  using reply = int;
};

class doer : public actor<doer, act, act_as_coroutine, query, riddle> {
 public:
  void on(act m) { m.body(); }
  task<> on(act_as_coroutine m) { co_await m.body(); }
  int on(query) { return 1; }
  void on(riddle, responder<int> reply) { unanswered_ = std::move(reply); }

 private:
  std::optional<responder<int>> unanswered_;
};

class acting_fixture : public deadlock_fixture {
 protected:
  // Ends threads and actors. Declared after the objects that they use, so destroyed first.
  struct ending {
    acting_fixture& of;
    ~ending() {
      of.stop_.request_stop();
      of.threads_.clear();
      of.system_.stop();
      EXPECT_TRUE(of.system_.join());
    }
  };

  ref<doer> hire(std::string name, std::uint32_t capacity = 100) {
    return system_.spawn_with<doer>({.name = std::move(name), .mailbox = {.capacity = capacity}});
  }
  // Runs `body` in a handler of the actor: a function, or a coroutine.
  static void run_in(const ref<doer>& target, std::function<void()> body) {
    check(static_cast<bool>(target.send(act{std::move(body)})), "test", "message is sent");
  }
  static void await_in(const ref<doer>& target, std::function<task<>()> body) {
    check(static_cast<bool>(target.send(act_as_coroutine{std::move(body)})), "test",
          "message is sent");
  }
  // Blocks until the reply, until token() is stopped, or until the asked actor has terminated.
  template <class M>
  void ask(const ref<doer>& target, M m) const {
    try {
      (void)target.ask(std::move(m)).get(token());
    } catch (const actor_error&) {
    }
  }
  void fill(const ref<doer>& target) const {
    while (target.send(act{[] {}}, token())) {
    }
  }

  work_stealing_pool pool_{{.threads = 4, .name = "pool"}};
  actor_system system_{pool_, {.on_failure = [](const actor_failure&) {}}};
};

}  // namespace sluice::testing
