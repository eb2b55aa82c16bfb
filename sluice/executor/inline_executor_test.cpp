#include "sluice/executor/inline_executor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "sluice/base/work.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::inline_executor_test {
namespace {

TEST(inline_executor_test, SubmitReturnsWhenTheFunctionHasEnded) {
  inline_executor here;
  std::string order;
  ASSERT_TRUE(here.submit([&] {
    order += "(";
    ASSERT_TRUE(here.submit([&] { order += "inner"; }));
    order += ")";
  }));
  EXPECT_EQ(order, "(inner)") << "a submission runs at once, also inside another";
  EXPECT_EQ(here.name(), "inline");
}

TEST(inline_executor_test, APostInsideAPostRunsAfterIt) {
  inline_executor here;
  std::string order;
  posted inner([&] { order += "inner"; });
  posted outer([&] {
    order += "(";
    here.post(inner);
    order += ")";
  });
  here.post(outer);
  EXPECT_EQ(order, "()inner");
}

TEST(inline_executor_test, PostsAndOtherReadyWorkOfTheThreadTakeTurns) {
  inline_executor here;
  std::string order;
  posted a([&] { order += "a"; });
  posted b([&] { order += "b"; });
  posted x([&] { order += "x"; });
  posted y([&] { order += "y"; });
  {
    const run_scope scope;
    here.post(a);
    run_here(x);
    here.post(b);
    run_here(y);
    EXPECT_EQ(order, "");
  }
  EXPECT_EQ(order, "axyb");
}

detached note_where(inline_executor&, event& e, std::vector<executor*>& where) {
  (void)co_await e.async_wait();
  where.push_back(executor::current());
}

TEST(inline_executor_test, CoroutinesThatOneSignalResumesAllFindThemselvesOnIt) {
  inline_executor here;
  event e;
  std::vector<executor*> where;
  for (int i = 0; i < 3; ++i) note_where(here, e, where);
  e.set();
  EXPECT_EQ(where, (std::vector<executor*>{&here, &here, &here}));
  EXPECT_EQ(executor::current(), nullptr);
}

TEST(inline_executor_test, CurrentIsSetBackInsideAnotherExecutorsWork) {
  inline_executor a;
  inline_executor b;
  executor* during = nullptr;
  executor* after = nullptr;
  ASSERT_TRUE(a.submit([&] {
    ASSERT_TRUE(b.submit([&] { during = executor::current(); }));
    after = executor::current();
  }));
  EXPECT_EQ(during, &b);
  EXPECT_EQ(after, &a);
}

TEST(inline_executor_test, EveryThreadRunsItsOwn) {
  inline_executor here;
  std::thread::id ran;
  std::thread::id brought;
  std::jthread([&] {
    brought = std::this_thread::get_id();
    ASSERT_TRUE(here.submit([&] { ran = std::this_thread::get_id(); }));
  }).join();
  EXPECT_EQ(ran, brought);
}

}  // namespace
}  // namespace sluice::testing::inline_executor_test
