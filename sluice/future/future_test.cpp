#include "sluice/future/future.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::future_test {
namespace {

using namespace std::chrono_literals;

// A gate of promises: each waiter has its own future, and opening sets them all.
class future_gate {
 public:
  ~future_gate() { open(); }

  status wait(const wait_limits& limits) {
    auto f = enter();
    return f.get(limits);
  }
  template <class Where>
  static detached await(future_gate& gate, Where&, wait_limits limits, ending& ended) {
    auto f = gate.enter();
    ended.set(co_await f.async_get(std::move(limits)));
  }
  void open() {
    std::vector<std::unique_ptr<promise<void>>> waiting;
    {
      const std::lock_guard hold(mutex_);
      is_open_ = true;
      waiting.swap(promises_);
    }
    for (auto& p : waiting) p->set_value();
  }
  std::size_t waiting() {
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    for (auto& p : promises_) count += p->waiting();
    return count;
  }

 private:
  future<void> enter() {
    const std::lock_guard hold(mutex_);
    if (is_open_) return make_ready_future();
    promises_.push_back(std::make_unique<promise<void>>());
    return promises_.back()->get_future();
  }

  std::mutex mutex_;
  bool is_open_ = false;                                   // protected by mutex_
  std::vector<std::unique_ptr<promise<void>>> promises_;  // protected by mutex_
};

INSTANTIATE_TYPED_TEST_SUITE_P(future, waiting_suite, future_gate);

class future_test : public leak_checked {};

TEST_F(future_test, GetGivesTheValueThatWasSet) {
  promise<tracked> p;
  auto f = p.get_future();
  EXPECT_TRUE(f.valid());
  EXPECT_FALSE(f.is_ready());
  p.set_value(42);
  EXPECT_TRUE(f.is_ready());
  EXPECT_EQ(f.get().value, 42);
  EXPECT_FALSE(f.valid()) << "get consumes it";
}

TEST_F(future_test, GetWaitsForAnotherThread) {
  for (int i = 0; i < 200; ++i) {
    promise<tracked> p;
    auto f = p.get_future();
    std::jthread sets([&] { p.set_value(i); });
    EXPECT_EQ(f.get().value, i);
  }
}

TEST_F(future_test, GetRethrowsTheError) {
  promise<tracked> p;
  auto f = p.get_future();
  p.set_exception(std::runtime_error("no luck"));
  EXPECT_TRUE(f.is_ready());
  EXPECT_THROW(f.get(), std::runtime_error);
  EXPECT_FALSE(f.valid());
}

TEST_F(future_test, ABrokenPromiseIsAnErrorAndNotAHang) {
  auto p = std::make_unique<promise<int>>();
  auto f = p->get_future();
  std::jthread breaks([&] {
    eventually([&] { return p->waiting() == 1; });
    p.reset();
  });
  try {
    f.get();
    FAIL() << "a value from nowhere";
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::broken_promise);
  }
}

TEST_F(future_test, HoldsVoidReferencesAndMoveOnlyValues) {
  auto nothing = make_ready_future();
  nothing.get();
  EXPECT_FALSE(nothing.valid());

  int here = 1;
  promise<int&> p;
  auto reference = p.get_future();
  p.set_value(here);
  EXPECT_EQ(&reference.get(), &here);

  promise<std::unique_ptr<tracked>> q;
  auto moved = q.get_future();
  q.set_value(std::make_unique<tracked>(3));
  EXPECT_EQ(moved.get()->value, 3);
}

TEST_F(future_test, AMoveThatThrowsInGetGoesToTheCallerAndLosesOnlyTheValue) {
  promise<throwing_move> p;
  auto f = p.get_future();
  p.set_value(1);  // made in place: no move
  throwing_move::armed = true;
  EXPECT_THROW(f.get(), std::runtime_error);
  throwing_move::armed = false;
  EXPECT_FALSE(f.valid());
}

TEST_F(future_test, TryGetReturnsEmptyUntilItIsReady) {
  promise<int> p;
  auto f = p.get_future();
  EXPECT_EQ(f.try_get().status(), status::empty);
  EXPECT_TRUE(f.valid());
  p.set_value(1);
  EXPECT_EQ(*f.try_get(), 1);
  EXPECT_FALSE(f.valid());
}

TEST_F(future_test, ALimitedWaitThatEndsEarlyLeavesTheFutureValid) {
  promise<int> p;
  auto f = p.get_future();
  EXPECT_EQ(f.get(1ms).status(), status::timed_out);
  EXPECT_EQ(f.get(std::chrono::system_clock::now() + 1ms).status(), status::timed_out);
  std::stop_source stop;
  std::jthread stops([&] {
    eventually([&] { return p.waiting() == 1; });
    stop.request_stop();
  });
  EXPECT_EQ(f.get(stop.get_token()).status(), status::stopped);
  EXPECT_TRUE(f.valid());
  p.set_value(7);
  EXPECT_EQ(f.get(stop.get_token()).status(), status::stopped) << "stop wins over readiness";
  EXPECT_EQ(*f.get(0s), 7);
}

TEST_F(future_test, LimitedFormsRethrowTheErrorAndReturnReferences) {
  EXPECT_THROW((void)make_failed_future<int>(std::runtime_error("x")).try_get(),
               std::runtime_error);
  EXPECT_THROW((void)make_failed_future<void>(std::runtime_error("x")).get(1s),
               std::runtime_error);
  int here = 0;
  auto f = make_ready_future<int&>(here);
  EXPECT_EQ(&f.get(1s).value().get(), &here);
  EXPECT_EQ(make_ready_future().get(wait_limits()), status::ok);
}

TEST_F(future_test, DroppingAFutureDropsItsResultAndDoesNotCancel) {
  promise<tracked> p;
  const auto stop = p.stop_token();
  { auto dropped = p.get_future(); }
  EXPECT_FALSE(stop.stop_requested());
  p.set_value(1);
}

TEST_F(future_test, DroppingAReadyFutureDropsTheValue) {
  auto f = make_ready_future(tracked(1));
  EXPECT_EQ(tracked::alive(), 1);
  f = future<tracked>();
  EXPECT_EQ(tracked::alive(), 0);
}

TEST_F(future_test, AMovedFutureIsTheSameFuture) {
  promise<int> p;
  auto f = p.get_future();
  auto g = std::move(f);
  EXPECT_FALSE(f.valid());
  p.set_value(1);
  f = std::move(g);
  EXPECT_EQ(f.get(), 1);
}

detached await_value(future<tracked> f, int& seen) {
  tracked value = co_await std::move(f);
  seen = value.value;
}

TEST_F(future_test, ACoroutineAwaitsTheValue) {
  promise<tracked> p;
  int seen = 0;
  await_value(p.get_future(), seen);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(p.waiting(), 1U);
  p.set_value(5);
  EXPECT_EQ(seen, 5);
  await_value(make_ready_future(tracked(6)), seen);
  EXPECT_EQ(seen, 6);
}

detached await_error(future<int> f, std::string& seen) {
  try {
    co_await std::move(f);
  } catch (const std::exception& e) {
    seen = e.what();
  }
}

TEST_F(future_test, AnAwaitedErrorIsThrownIntoTheCoroutine) {
  promise<int> p;
  std::string seen;
  await_error(p.get_future(), seen);
  p.set_exception(std::runtime_error("into it"));
  EXPECT_EQ(seen, "into it");
}

detached await_with_stop(future<int> f, std::stop_token stop, std::string& seen) {
  auto wait = std::move(f).operator co_await();
  wait.inherit(stop);
  try {
    co_await wait;
  } catch (const future_error& e) {
    seen = to_string(e.why());
  }
}

TEST_F(future_test, AStopOfTheAwaitingCoroutineCancelsAndThrowsCancelled) {
  promise<int> p;
  const auto asked = p.stop_token();
  std::stop_source stop;
  std::string seen;
  await_with_stop(p.get_future(), stop.get_token(), seen);
  EXPECT_FALSE(asked.stop_requested());
  stop.request_stop();
  EXPECT_EQ(seen, "cancelled");
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(1);  // the future was dropped
}

detached await_limited(future<int>& f, wait_limits limits, std::vector<status>& seen) {
  auto got = co_await f.async_get(std::move(limits));
  seen.push_back(got.status());
}

TEST_F(future_test, AnAwaitWithADeadlineLeavesTheFutureValid) {
  manual_clock clock;
  promise<int> p;
  auto f = p.get_future();
  std::vector<status> seen;
  await_limited(f, deadline::after(1s, clock), seen);
  clock.advance(1s);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], status::timed_out);
  EXPECT_TRUE(f.valid());
  await_limited(f, {}, seen);
  p.set_value(1);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1], status::ok);
  EXPECT_FALSE(f.valid());
}

TEST_F(future_test, ReadyAndFailedFuturesAreComplete) {
  EXPECT_EQ(make_ready_future(3).get(), 3);
  EXPECT_EQ(make_ready_future<std::string>(std::size_t{3}, 'x').get(), "xxx");
  EXPECT_THROW(make_failed_future<int>(std::logic_error("l")).get(), std::logic_error);
  EXPECT_THROW(make_failed_future<void>(std::make_exception_ptr(std::logic_error("l"))).get(),
               std::logic_error);
}

class future_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(future_DeathTest, UsingAnInvalidFutureIsABrokenContract) {
  const char* const expected = "sluice::future.*to be valid";
  EXPECT_DEATH(
      {
        auto f = make_ready_future(1);
        f.get();
        f.get();
      },
      expected);
  EXPECT_DEATH(
      {
        auto f = make_ready_future(1);
        auto g = std::move(f).then([](int n) { return n; });
        f.cancel();
      },
      expected);
  EXPECT_DEATH((void)future<int>().then([](int n) { return n; }), expected);
  EXPECT_DEATH((void)future<int>().is_ready(), expected);
  EXPECT_DEATH((void)future<int>().get(1ms), expected);
}

TEST_F(future_DeathTest, DestroyingAFutureThatIsAwaitedIsABrokenContract) {
  EXPECT_DEATH(
      {
        promise<int> p;
        auto f = p.get_future();
        std::vector<status> seen;
        await_limited(f, {}, seen);
        f = future<int>();
      },
      "sluice::future.*no wait to be in progress");
}

}  // namespace
}  // namespace sluice::testing::future_test
