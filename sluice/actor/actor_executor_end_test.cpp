// An actor system, or an actor with an executor of its own, that outlives its executor.

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::actor_executor_end_test {
namespace {

struct ping {};
class worker : public actor<worker, ping> {
 public:
  void on(const ping&) {}
};

struct actor_executor_end_DeathTest : ::testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(actor_executor_end_DeathTest, AnActorSystemIsNamed) {
  EXPECT_DEATH(
      {
        std::optional<actor_system> late;
        thread_pool pool({.core = 1, .name = "io"});
        late.emplace(pool);
      },
      "sluice::thread_pool \"io\": expected no users at its end, found 1 actor_system ");
}

TEST_F(actor_executor_end_DeathTest, AnActorOnItsOwnExecutorIsNamed) {
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        actor_system system(pool);
        thread_pool disk({.core = 1, .name = "disk"});
        (void)system.spawn_with<worker>({.on = &disk});
      },
      "sluice::thread_pool \"disk\": .*found 1 actor of another executor's actor_system ");
}

TEST(actor_executor_end_test, RefsMayOutliveTheSystemAndItsExecutor) {
  std::optional<ref<worker>> late;
  std::optional<ref<worker>> elsewhere;
  {
    thread_pool pool(1);
    thread_pool disk(1);
    actor_system system(pool);
    late = system.spawn<worker>();
    elsewhere = system.spawn_with<worker>({.on = &disk});
    (void)system.spawn_with<worker>({.own_thread = true});
    ASSERT_TRUE(late->send(ping{}));
    elsewhere->stop();
  }
  EXPECT_EQ(late->send(ping{}), status::closed);
  EXPECT_EQ(elsewhere->send(ping{}), status::closed);
}

// An actor releases its executor before its end is visible.
TEST(actor_executor_end_test, AnExecutorMayEndAsSoonAsItsActorHasEnded) {
  thread_pool pool(1);
  actor_system system(pool);
  for (int round = 0; round < 200; ++round) {
    std::optional<thread_pool> disk(std::in_place, 1);
    const auto a = system.spawn_with<worker>({.on = &*disk});
    (void)a.send(ping{});
    ASSERT_TRUE(a.shutdown({}));
  }
}

TEST(actor_executor_end_test, AnActorSpawnedAfterTheEndUsesNothing) {
  thread_pool pool(1);
  actor_system system(pool);
  system.close();
  // close() alone takes effect in a turn of the system's own actor.
  ASSERT_TRUE(system.shutdown(std::chrono::minutes(1)));
  thread_pool disk(1);
  (void)system.spawn_with<worker>({.on = &disk});
}

}  // namespace
}  // namespace sluice::actor_executor_end_test
