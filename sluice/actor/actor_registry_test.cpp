#include "sluice/actor/actor_registry.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"

namespace sluice::actor_registry_test {
namespace {

using namespace std::chrono_literals;

struct line {
  int n;
};
struct fall {};

class logger : public actor<logger, line, fall> {
 public:
  void on(line) {}
  void on(fall) { throw std::runtime_error("it fell"); }
};
class other : public actor<other, line> {
 public:
  void on(line) {}
};

class actor_registry_test : public ::testing::Test {
 protected:
  ~actor_registry_test() override {
    system_.stop();
    on_.run_all();
  }
  static actor_system_options quiet() {
    actor_system_options o;
    o.on_failure = [](const actor_failure&) {};
    return o;
  }

  manual_executor on_;
  actor_system system_{on_, quiet()};
  actor_registry names_;
};

TEST_F(actor_registry_test, FindsARegisteredActorByName) {
  const auto log = system_.spawn<logger>();
  EXPECT_FALSE(names_.find<logger>("log"));
  EXPECT_EQ(names_.register_as("log", log), registration::done);
  EXPECT_EQ(names_.find<logger>("log"), log);
  EXPECT_FALSE(names_.find<logger>("lo"));
  EXPECT_EQ(names_.names(), std::vector<std::string>{"log"});
}

TEST_F(actor_registry_test, GivesNothingForAnotherType) {
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  EXPECT_FALSE(names_.find<other>("log"));
}

TEST_F(actor_registry_test, RefusesANameThatIsTaken) {
  const auto log = system_.spawn<logger>();
  const auto late = system_.spawn<other>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  EXPECT_EQ(names_.register_as("log", late), registration::name_taken);
  EXPECT_EQ(names_.register_as("log", log), registration::name_taken);
  EXPECT_EQ(names_.find<logger>("log"), log);
}

TEST_F(actor_registry_test, AnActorMayHaveSeveralNames) {
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  ASSERT_EQ(names_.register_as("audit", log), registration::done);
  EXPECT_EQ(names_.find<logger>("audit"), log);
  log.stop();
  on_.run_all();
  EXPECT_EQ(names_.size(), 0U);
}

TEST_F(actor_registry_test, TheEndOfAnActorRemovesItsEntryAndFreesTheName) {
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  log.stop();
  on_.run_all();
  EXPECT_FALSE(names_.find<logger>("log"));
  EXPECT_EQ(names_.size(), 0U);
  const auto next = system_.spawn<logger>();
  EXPECT_EQ(names_.register_as("log", next), registration::done);
  EXPECT_EQ(names_.find<logger>("log"), next);
}

TEST_F(actor_registry_test, ARestartKeepsTheEntry) {
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  ASSERT_TRUE(log.try_send(fall{}));
  on_.run_all();
  ASSERT_EQ(system_.stats().restarts, 1U);
  EXPECT_EQ(names_.find<logger>("log"), log);
}

TEST_F(actor_registry_test, RefusesAnActorThatHasEnded) {
  const auto log = system_.spawn<logger>();
  log.stop();
  on_.run_all();
  EXPECT_EQ(names_.register_as("log", log), registration::actor_ended);
  EXPECT_EQ(names_.size(), 0U);
}

TEST_F(actor_registry_test, OnlyItsOwnNameIsUnregistered) {
  const auto log = system_.spawn<logger>();
  const auto late = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  EXPECT_FALSE(names_.unregister("log", late));
  EXPECT_TRUE(names_.unregister("log", log));
  EXPECT_FALSE(names_.unregister("log", log));
  EXPECT_FALSE(names_.find<logger>("log"));
  EXPECT_EQ(names_.register_as("log", late), registration::done);
  log.stop();
  on_.run_all();
  EXPECT_EQ(names_.find<logger>("log"), late);
}

TEST_F(actor_registry_test, MayBeDestroyedBeforeItsActors) {
  const auto log = system_.spawn<logger>();
  {
    actor_registry brief;
    ASSERT_EQ(brief.register_as("log", log), registration::done);
  }
  log.stop();
  on_.run_all();
  EXPECT_TRUE(log.is_terminated());
}

TEST_F(actor_registry_test, WaitForAnExistingNameReturnsAtOnce) {
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  const auto found = names_.wait_for<logger>("log");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, log);
}

TEST_F(actor_registry_test, AWaitEndsAtItsDeadlineAndWhenItIsStopped) {
  const auto wrong = system_.spawn<other>();
  ASSERT_EQ(names_.register_as("log", wrong), registration::done);
  EXPECT_EQ(names_.wait_for<logger>("log", {deadline::after(1ms)}).status(), status::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(names_.wait_for<logger>("log", {stop.get_token()}).status(), status::stopped);
  EXPECT_EQ(names_.waiting(), 0U);
}

TEST_F(actor_registry_test, EveryWaiterForANameGetsIt) {
  std::optional<outcome<ref<logger>>> first;
  std::optional<outcome<ref<logger>>> second;
  outcome<ref<logger>> blocking = status::empty;
  outcome<ref<other>> wrong_type = status::empty;
  manual_clock time;
  const auto wait = [](actor_registry& names,
                       std::optional<outcome<ref<logger>>>& into) -> task<void> {
    into = co_await names.async_wait_for<logger>("log");
  };
  seam::thread one([&] { sync_wait(wait(names_, first)); });
  seam::thread two([&] { sync_wait(wait(names_, second)); });
  seam::thread three([&] { blocking = names_.wait_for<logger>("log"); });
  seam::thread four(
      [&] { wrong_type = names_.wait_for<other>("log", {deadline::after(1s, time)}); });
  testing::eventually([&] { return names_.waiting() == 4; });
  const auto decoy = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("another", decoy), registration::done);
  EXPECT_EQ(names_.waiting(), 4U);
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  one.join();
  two.join();
  three.join();
  EXPECT_EQ(**first, log);
  EXPECT_EQ(**second, log);
  EXPECT_EQ(*blocking, log);
  EXPECT_EQ(names_.waiting(), 1U);
  time.advance(1s);
  four.join();
  EXPECT_EQ(wrong_type.status(), status::timed_out);
}

TEST_F(actor_registry_test, AStoppedWaitDoesNotAffectTheOthers) {
  std::stop_source stop;
  outcome<ref<logger>> stopped = status::empty;
  outcome<ref<logger>> served = status::empty;
  seam::thread one([&] { stopped = names_.wait_for<logger>("log", {stop.get_token()}); });
  seam::thread two([&] { served = names_.wait_for<logger>("log"); });
  testing::eventually([&] { return names_.waiting() == 2; });
  stop.request_stop();
  one.join();
  EXPECT_EQ(stopped.status(), status::stopped);
  EXPECT_EQ(names_.waiting(), 1U);
  const auto log = system_.spawn<logger>();
  ASSERT_EQ(names_.register_as("log", log), registration::done);
  two.join();
  EXPECT_EQ(*served, log);
}

// Each name is taken over and over by actors that end at once; `find` only returns actors of the
// requested type.
TEST(actor_registry_stress, NamesAreAddedAndRemovedByManyThreads) {
  constexpr int rounds = 300;
  constexpr int kinds = 3;
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  actor_registry names;
  std::vector<seam::thread> threads;
  for (int t = 0; t < kinds; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "name " + std::to_string(t);
      for (int i = 0; i < rounds; ++i) {
        const auto who = system.spawn<logger>();
        testing::eventually([&] { return names.register_as(name, who) == registration::done; });
        (void)names.find<logger>("name " + std::to_string((t + 1) % kinds));
        who.stop();
      }
    });
    threads.emplace_back([&, t] {
      const std::string name = "name " + std::to_string(t);
      for (int i = 0; i < rounds / 10; ++i) {
        if (auto found = names.wait_for<logger>(name, {deadline::after(20ms)})) {
          (void)found->try_send(line{1});
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  system.stop();
  (void)system.join();
  EXPECT_EQ(names.size(), 0U);
  EXPECT_EQ(names.waiting(), 0U);
}

}  // namespace
}  // namespace sluice::actor_registry_test
