#pragma once

// Actors that do what a test tells them to, seen by inspect alone: nobody observes their system.

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
  std::function<void()> what;
};
struct act_as_coroutine {
  std::function<task<>()> what;
};
struct query {
  using reply = int;
};
// Is not answered before the actor ends.
struct riddle {
  using reply = int;
};

class doer : public actor<doer, act, act_as_coroutine, query, riddle> {
 public:
  void on(act m) { m.what(); }
  task<> on(act_as_coroutine m) { co_await m.what(); }
  int on(query) { return 1; }
  void on(riddle, responder<int> to) { unanswered_ = std::move(to); }

 private:
  std::optional<responder<int>> unanswered_;
};

class acting_fixture : public deadlock_fixture {
 protected:
  // Declared after what the parties use: ends them first, threads and actors.
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
  // In a handler that is a function, or one that is a coroutine.
  static void have(const ref<doer>& who, std::function<void()> what) {
    check(static_cast<bool>(who.send(act{std::move(what)})), "test", "to be sent");
  }
  static void have_await(const ref<doer>& who, std::function<task<>()> what) {
    check(static_cast<bool>(who.send(act_as_coroutine{std::move(what)})), "test", "to be sent");
  }
  // Until it is stopped, or the other has ended.
  template <class M>
  void ask(const ref<doer>& whom, M m) const {
    try {
      (void)whom.ask(std::move(m)).get(token());
    } catch (const actor_error&) {
    }
  }
  void fill(const ref<doer>& whom) const {
    while (whom.send(act{[] {}}, token())) {
    }
  }

  work_stealing_pool pool_{{.threads = 4, .name = "pool"}};
  actor_system system_{pool_, {.on_failure = [](const actor_failure&) {}}};
};

}  // namespace sluice::testing
