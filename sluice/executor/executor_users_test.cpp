// An executor that ends before its users is a broken contract that names both.

#include "sluice/executor/executor.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::executor_users_test {
namespace {

class own_executor final : public executor {
 public:
  void post(work& item) noexcept override { run_here(item); }
};

struct executor_users_DeathTest : ::testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Destroys an executor that still has a user.
template <class Executor, class... Options>
void end_early(executor_user kind, Options&&... options) {
  Executor on(std::forward<Options>(options)...);
  on.begin_use(kind);
}

TEST_F(executor_users_DeathTest, EveryExecutorNamesItselfAndItsRemainingUsers) {
  EXPECT_DEATH(end_early<thread_pool>(executor_user::task, thread_pool_options{.name = "io"}),
               "sluice::thread_pool \"io\": expected no users at its end, found 1 spawned task ");
  EXPECT_DEATH(end_early<work_stealing_pool>(executor_user::stage,
                                             work_stealing_pool_options{.name = "cores"}),
               "sluice::work_stealing_pool \"cores\": .*found 1 pending stage of a future ");
  EXPECT_DEATH(end_early<manual_executor>(executor_user::batcher),
               "sluice::manual_executor \"manual\": .*found 1 batcher ");
  EXPECT_DEATH(end_early<inline_executor>(executor_user::timer),
               "sluice::inline_executor \"inline\": .*found 1 timer .every. ");
  EXPECT_DEATH(end_early<own_executor>(executor_user::scope_child),
               "sluice::executor: .*found 1 child of a scope ");
  EXPECT_DEATH(
      {
        inline_executor below;
        end_early<strand>(executor_user::task, below, strand_options{.name = "account"});
      },
      "sluice::strand \"account\": .*found 1 spawned task ");
}

TEST_F(executor_users_DeathTest, AStrandThatOutlivesItsPoolIsNamed) {
  EXPECT_DEATH(
      {
        std::optional<strand> late;
        thread_pool pool({.core = 1, .name = "io"});
        late.emplace(pool);
        std::optional<strand> later(std::in_place, *late);
        late.reset();
      },
      "sluice::strand \"strand\": .*found 1 strand ");
  EXPECT_DEATH(
      {
        std::optional<strand> late;
        thread_pool pool({.core = 1, .name = "io"});
        late.emplace(pool);
      },
      "sluice::thread_pool \"io\": .*found 1 strand ");
}

TEST_F(executor_users_DeathTest, AWorkerOfARouterThatOutlivesItsPoolIsNamed) {
  EXPECT_DEATH(
      {
        router<int> desk({});
        std::vector<router<int>::worker> workers;
        thread_pool pool({.core = 1, .name = "io"});
        workers.push_back(desk.join(pool, [](int) {}));
        workers.push_back(desk.join(pool, [](int) {}));
        workers.push_back(desk.join());  // with its own loop
      },
      "sluice::thread_pool \"io\": .*found 2 router workers ");
}

TEST_F(executor_users_DeathTest, UsersAreCountedByKindOverAllThreads) {
  EXPECT_DEATH(
      {
        thread_pool pool({.core = 1, .name = "io"});
        latch all(80);  // more threads at once than there are lines of counters
        std::vector<std::jthread> threads;
        for (int i = 0; i < 80; ++i) {
          threads.emplace_back([&] {
            all.arrive_and_wait();
            pool.begin_use(executor_user::task);
            pool.begin_use(executor_user::strand);
          });
        }
        threads.clear();
        for (int i = 0; i < 78; ++i) pool.end_use(executor_user::task);
        for (int i = 0; i < 80; ++i) pool.end_use(executor_user::strand);
        pool.begin_use(executor_user::pipeline);
      },
      "found 2 spawned tasks, 1 pipeline ");
}

TEST(executor_users_test, UsersThatEndFirstAreFine) {
  router<int> desk({});
  thread_pool pool(2);
  strand below(pool);
  strand above(below);
  ASSERT_TRUE(above.submit([] {}));
  auto worker = desk.join(pool, [](int) {});
  ASSERT_TRUE(desk.push(1));
  worker.leave();
}

// A use ends on another thread, while other threads count theirs.
TEST(executor_users_test, ManyThreadsCountAndGiveBack) {
  thread_pool pool(1);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) {
          pool.begin_use(executor_user::task);
          ASSERT_TRUE(pool.submit([&] { pool.end_use(executor_user::task); }));
        }
      });
    }
  }
}

}  // namespace
}  // namespace sluice::executor_users_test
