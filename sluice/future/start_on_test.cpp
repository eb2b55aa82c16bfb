#include "sluice/future/start_on.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::testing::start_on_test {
namespace {

// One thread, blocked until `gate` is set; records the order in which functions started there.
class start_on_test : public ::testing::Test {
 protected:
  start_on_test() {
    EXPECT_TRUE(pool.submit([this] {
      held.set();
      gate.wait();
    }));
    held.wait();
  }
  std::string order() {
    gate.set();
    pool.drain();
    return started;
  }
  auto note(char who) {
    return [this, who] { started += who; };
  }
  static task<> note_in_task(std::string& text, char who) {
    text += who;
    co_return;
  }

  std::string started;  // by the one thread of the pool; read when that has ended
  event held;
  event gate;
  thread_pool pool{{.core = 1, .by_priority = true}};
};

TEST_F(start_on_test, AsyncStartsTheMostUrgentFirst) {
  auto b = async(pool, note('b'));
  auto c = async({pool, -1}, note('c'));
  auto a = try_async({pool, 9}, note('a'));
  auto z = async({pool, 10}, {}, note('z'));
  EXPECT_TRUE(a);
  EXPECT_EQ(order(), "zabc");
}

TEST_F(start_on_test, SpawnStartsTheMostUrgentFirst) {
  auto b = spawn(pool, note_in_task(started, 'b'));
  auto c = spawn({pool, -1}, note_in_task(started, 'c'));
  auto a = try_spawn({pool, 9}, note_in_task(started, 'a'));
  auto z = spawn({pool, 10}, {}, note_in_task(started, 'z'));
  EXPECT_TRUE(a);
  EXPECT_EQ(order(), "zabc");
}

TEST_F(start_on_test, TheChildrenOfAScopeHaveItsPriority) {
  auto b = async(pool, note('b'));
  scope later(start_on{pool, -1});
  later.start(note('c'));
  sync_scope({pool, 9}, [this](scope& s) {
    s.start(note_in_task(started, 'a'));
    auto also = s.spawn(note('a'));
    gate.set();
    return 0;
  });
  later.join();
  EXPECT_EQ(order(), "aabc");
}

task<> in_a_scope(start_on where, std::string& text, event& gate) {
  auto body = [&](scope& s) -> task<> {
    s.start([&text] { text += 'a'; });
    gate.set();
    co_return;
  };
  co_await with_scope(where, body);
}

TEST_F(start_on_test, AwaitedScopesHaveOneToo) {
  auto b = async(pool, note('b'));
  sync_wait(in_a_scope({pool, 9}, started, gate));
  EXPECT_EQ(order(), "ab");
}

}  // namespace
}  // namespace sluice::testing::start_on_test
