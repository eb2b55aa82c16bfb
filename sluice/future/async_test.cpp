#include "sluice/future/async.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/testing/tracked.hpp"

namespace sluice::testing::async_test {
namespace {

using namespace std::chrono_literals;

class async_test : public leak_checked {
 protected:
  template <class T>
  static future_error::reason why(future<T>& f) {
    try {
      f.get();
    } catch (const future_error& e) {
      return e.why();
    }
    throw std::logic_error("no error");
  }
  static int answer() { return 42; }
};

TEST_F(async_test, RunsOnTheExecutorAndSoDoAttachedFunctions) {
  manual_executor later;
  auto f = async(later, [keep = tracked()] {
             return executor::current();
           }).then([&](executor* on) {
    EXPECT_EQ(on, &later);
    EXPECT_EQ(executor::current(), &later);
    return 1;
  });
  EXPECT_FALSE(f.is_ready());
  EXPECT_EQ(later.run_all(), 1U) << "the continuation runs directly behind it";
  EXPECT_EQ(tracked::alive(), 0) << "the function has ended";
  EXPECT_EQ(f.get(), 1);
}

TEST_F(async_test, TakesFunctionsOfAllKinds) {
  inline_executor here;
  EXPECT_EQ(async(here, &answer).get(), 42);
  async(here, [] {}).get();
  int n = 0;
  EXPECT_EQ(&async(here, [&]() -> int& { return n; }).get(), &n);
  auto only_moved = std::make_unique<int>(3);
  EXPECT_EQ(*async(here, [p = std::move(only_moved)]() mutable { return std::move(p); }).get(), 3);
  const auto kept = [t = tracked(5)] { return t.value; };
  EXPECT_EQ(async(here, kept).get(), 5) << "an lvalue is copied";
}

TEST_F(async_test, AnExceptionIsTheResultAndNotTheExecutorsError) {
  manual_executor later({.on_error = [](std::exception_ptr) { ADD_FAILURE(); }});
  auto f = async(later, []() -> int { throw std::runtime_error("mine"); });
  later.run_all();
  EXPECT_THROW(f.get(), std::runtime_error);
}

TEST_F(async_test, MayReturnAFuture) {
  manual_executor later;
  promise<tracked> inner;
  const auto asked = inner.stop_token();
  future<tracked> f = async(later, [&] { return inner.get_future(); });
  later.run_all();
  EXPECT_FALSE(f.is_ready());
  f.cancel();
  EXPECT_TRUE(asked.stop_requested());
  inner.set_value(9);
  EXPECT_EQ(f.get().value, 9);
}

TEST_F(async_test, GivesTheFunctionATokenThatCancelRequests) {
  manual_executor later;
  std::stop_token seen;
  auto f = async(later, [&](std::stop_token stop) {
    seen = stop;
    return 1;
  });
  later.run_all();
  EXPECT_FALSE(seen.stop_requested());
  f.cancel();
  EXPECT_TRUE(seen.stop_requested());
  EXPECT_EQ(f.get(), 1);
}

TEST_F(async_test, ACancelReachesAFunctionThatRuns) {
  manual_executor later;
  std::atomic<bool> running{false};
  auto f = async(later, [&](std::stop_token stop) {
             running = true;
             while (!stop.stop_requested()) std::this_thread::yield();
             return std::string("stopped");
           }).then([](std::string s) { return s + "!"; });
  std::jthread runs([&] { later.run_all(); });
  eventually([&] { return running.load(); });
  f.cancel();
  EXPECT_EQ(f.get(), "stopped!");
}

TEST_F(async_test, CancelledBeforeItBeganItIsNotCalled) {
  manual_executor later;
  bool called = false;
  auto f = async(later, [&called, keep = tracked()] { called = true; });
  f.cancel();
  EXPECT_FALSE(f.is_ready()) << "it is still in the executor's queue";
  later.run_all();
  EXPECT_FALSE(called);
  EXPECT_EQ(why(f), future_error::cancelled);
}

TEST_F(async_test, RefusedByAFullOrClosedExecutorItIsRejected) {
  manual_executor later({.capacity = 1});
  auto first = async(later, [] { return 1; });
  auto second = async(later, [keep = tracked()] { return 2; });
  EXPECT_TRUE(second.is_ready());
  EXPECT_EQ(tracked::alive(), 0);
  EXPECT_EQ(why(second), future_error::rejected);
  later.run_all();
  EXPECT_EQ(first.get(), 1);
  later.close();
  auto third = async(later, [] { return 3; });
  try {
    third.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::rejected);
    EXPECT_NE(std::string(e.what()).find("closed"), std::string::npos) << e.what();
  }
}

TEST_F(async_test, DroppedByThePolicyItIsABrokenPromise) {
  manual_executor newest({.capacity = 1, .overflow = overflow::drop_newest});
  auto kept = async(newest, [] { return 1; });
  auto dropped = async(newest, [keep = tracked()] { return 2; });
  EXPECT_EQ(why(dropped), future_error::broken_promise);
  manual_executor oldest({.capacity = 1, .overflow = overflow::drop_oldest});
  auto evicted = async(oldest, [keep = tracked()] { return 1; });
  auto stays = async(oldest, [] { return 2; });
  EXPECT_EQ(why(evicted), future_error::broken_promise);
  newest.run_all();
  oldest.run_all();
  EXPECT_EQ(kept.get(), 1);
  EXPECT_EQ(stays.get(), 2);
}

TEST_F(async_test, AnExecutorThatEndsBreaksThePromisesOfUnrunFunctions) {
  future<int> f;
  {
    manual_executor later;
    f = async(later, [keep = tracked()] { return 1; });
  }
  EXPECT_EQ(why(f), future_error::broken_promise);
}

TEST_F(async_test, WaitsForCapacityAsSubmitDoes) {
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  auto first = async(later, [] { return 1; });
  std::jthread frees([&] {
    eventually([&] { return later.queued() == 1; });
    eventually([&] { return later.run_one(); });
  });
  auto second = async(later, [] { return 2; });
  frees.join();
  EXPECT_EQ(first.get(), 1);
  later.run_all();
  EXPECT_EQ(second.get(), 2);
}

TEST_F(async_test, WithLimitsItIsRejectedWithoutCapacityInTime) {
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  auto first = async(later, [] { return 1; });
  auto late = async(later, deadline::after(1ms), [] { return 2; });
  EXPECT_EQ(why(late), future_error::rejected);
  std::stop_source stop;
  stop.request_stop();
  auto stopped = async(later, stop.get_token(), [] { return 3; });
  EXPECT_EQ(why(stopped), future_error::rejected);
  later.run_all();
  EXPECT_EQ(first.get(), 1);
}

TEST_F(async_test, TryAsyncNeverWaitsAndReturnsTheStatus) {
  manual_executor later({.capacity = 1, .overflow = overflow::block});
  auto first = try_async(later, [] { return 1; });
  ASSERT_TRUE(first.has_value());
  auto second = try_async(later, [keep = tracked()] { return 2; });
  EXPECT_EQ(second.status(), status::full);
  EXPECT_EQ(tracked::alive(), 0);
  later.run_all();
  EXPECT_EQ(first->get(), 1);
  later.close();
  EXPECT_EQ(try_async(later, [] {}).status(), status::closed);
}

TEST_F(async_test, CallerRunsRunsItHere) {
  manual_executor later({.capacity = 1, .overflow = overflow::caller_runs});
  auto first = async(later, [] { return 1; });
  auto second = async(later, [] { return std::this_thread::get_id(); });
  EXPECT_TRUE(second.is_ready());
  EXPECT_EQ(second.get(), std::this_thread::get_id());
  later.run_all();
  EXPECT_EQ(first.get(), 1);
}

}  // namespace
}  // namespace sluice::testing::async_test
