// A task whose first co_await is a condition: g++ 12 lays out its frame wrongly, and calling it is
// found; other compilers run it.
#include <gtest/gtest.h>

#include <string>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace sluice::testing::miscompiled_task_test {
namespace {

using numbers = bounded_queue<int>;

task<> push_in_an_if(numbers& q, int n) {
  if (!co_await q.async_push(n)) co_return;
  (void)q.try_push(n + 1);
}
task<int> push_in_a_while(numbers& q, int n) {
  while (co_await q.async_push(n)) q.close();
  co_return n;
}
task<> push_in_a_for(numbers& q, int n) {
  for (; co_await q.async_push(n);) q.close();
}
task<int> pushed_count(numbers& q, int n) {
  const status pushed = co_await q.async_push(n);
  co_return pushed ? 1 : 0;
}
task<> push_in_a_switch(numbers& q, int n) {
  switch (co_await pushed_count(q, n)) {
    case 1:
      q.close();
      break;
    default:
      break;
  }
}
task<> many_conditions(numbers& q) {
  if (!co_await q.async_push(1)) co_return;
  if (!co_await q.async_push(2)) co_return;
  if (!co_await q.async_push(3)) co_return;
  if (!co_await q.async_push(4)) co_return;
  if (!co_await q.async_push(5)) co_return;
  if (!co_await q.async_push(6)) co_return;
  if (!co_await q.async_push(7)) co_return;
  if (!co_await q.async_push(8)) co_return;
  if (!co_await q.async_push(9)) co_return;
}
task<> awaits_one(numbers& q) {
  const int before = 1;
  co_await push_in_an_if(q, before);
}
task<> names_its_results(numbers& q, int n) {
  const status pushed = co_await q.async_push(n);
  if (!pushed) co_return;
  if (!co_await q.async_push(n + 1)) co_return;
}

TEST(miscompiled_task, ATaskThatNamesItsFirstResultRuns) {
  numbers q(10);
  sync_wait(names_its_results(q, 1));
  EXPECT_EQ(q.size(), 2U);
}

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12

class miscompiled_task_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static std::string names(const char* function) {
    return std::string("contract broken on sluice::task.*g\\+\\+ 12.*Name the result first: .*\n"
                       "  called at .*miscompiled_task_test.cpp:[0-9]+ .*") + function;
  }
  numbers q_{10};
};

TEST_F(miscompiled_task_DeathTest, IsFoundWhenItIsCalledForEveryKindOfCondition) {
  EXPECT_DEATH(sync_wait(push_in_an_if(q_, 1)), names("push_in_an_if"));
  EXPECT_DEATH((void)sync_wait(push_in_a_while(q_, 1)), names("push_in_a_while"));
  EXPECT_DEATH(sync_wait(push_in_a_for(q_, 1)), names("push_in_a_for"));
  EXPECT_DEATH(sync_wait(push_in_a_switch(q_, 1)), names("push_in_a_switch"));
  EXPECT_DEATH(sync_wait(many_conditions(q_)), names("many_conditions"));
}

TEST_F(miscompiled_task_DeathTest, IsFoundAlsoInATaskThatAnotherAwaits) {
  EXPECT_DEATH(sync_wait(awaits_one(q_)), names("push_in_an_if"));
}

TEST_F(miscompiled_task_DeathTest, IsFoundAlsoOnAPoolAndInAScope) {
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        spawn(pool, push_in_an_if(q_, 1)).get();
      },
      names("push_in_an_if"));
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        sync_scope(pool, [&](scope& s) { s.start(push_in_an_if(q_, 1)); });
      },
      names("push_in_an_if"));
}

#else

TEST(miscompiled_task, RunsWhenItIsCompiledCorrectly) {
  numbers q(10);
  sync_wait(push_in_an_if(q, 1));
  sync_wait(awaits_one(q));
  EXPECT_EQ(q.size(), 4U);
  numbers more(10);
  sync_wait(many_conditions(more));
  EXPECT_EQ(more.size(), 9U);
  EXPECT_EQ(sync_wait(push_in_a_while(more, 7)), 7);
  EXPECT_TRUE(more.is_closed());
  sync_wait(push_in_a_for(more, 8));
  sync_wait(push_in_a_switch(more, 8));
  EXPECT_EQ(more.size(), 10U);
}

#endif

}  // namespace
}  // namespace sluice::testing::miscompiled_task_test
