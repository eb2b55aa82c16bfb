#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

namespace sluice::testing::future_cancel_test {
namespace {

using namespace std::chrono_literals;

class future_cancel_test : public leak_checked {};

TEST_F(future_cancel_test, ReachesTheProducerThroughEveryKindOfStage) {
  promise<int> p;
  const auto asked = p.stop_token();
  const std::stop_source never;
  manual_executor later;
  auto f = p.get_future()
               .then([](int n) { return n; })
               .recover([] { return 0; })
               .handle([](settled<int> s) { return s.value(); })
               .finally([] {})
               .via(later)
               .and_then([](int n) { return make_ready_future(n); })
               .combine(make_ready_future(1), [](int a, int b) { return a + b; })
               .with_timeout(1h)
               .with_stop(never.get_token());
  EXPECT_FALSE(asked.stop_requested());
  f.cancel();
  EXPECT_TRUE(asked.stop_requested());
  f.cancel();
  p.set_exception(future_error(future_error::cancelled));
  later.run_all();
  EXPECT_EQ(f.get(), 1) << "recovered, as any other error";
}

TEST_F(future_cancel_test, OfAnAndThenReachesTheFutureItWaitsFor) {
  promise<int> first;
  promise<int> second;
  const auto first_asked = first.stop_token();
  const auto second_asked = second.stop_token();
  auto f = first.get_future().and_then([&](int) { return second.get_future(); }).then([](int n) {
    return n;
  });
  first.set_value(1);
  f.cancel();
  EXPECT_FALSE(first_asked.stop_requested()) << "that producer has finished";
  EXPECT_TRUE(second_asked.stop_requested());
  second.set_value(2);
  EXPECT_EQ(f.get(), 2);
}

TEST_F(future_cancel_test, BeforeTheFunctionOfAnAndThenRanIsPassedOnToItsFuture) {
  promise<int> first;
  promise<int> second;
  auto f = first.get_future().and_then([&](int) { return second.get_future(); });
  f.cancel();
  EXPECT_FALSE(second.stop_token().stop_requested());
  first.set_value(1);
  EXPECT_TRUE(second.stop_token().stop_requested());
  second.set_value(2);
  EXPECT_EQ(f.get(), 2);
}

TEST_F(future_cancel_test, AfterTheEndDoesNothing) {
  auto ready = make_ready_future(1);
  ready.cancel();
  EXPECT_EQ(ready.get(), 1);
  promise<int> p;
  auto f = p.get_future().then([](int n) { return n; });
  const auto asked = p.stop_token();
  p.set_value(1);
  f.cancel();
  EXPECT_TRUE(asked.stop_requested()) << "a party that still has the token may see it";
  EXPECT_EQ(f.get(), 1);
}

TEST_F(future_cancel_test, DroppingAChainDoesNotCancelAndItsFunctionsStillRun) {
  promise<int> p;
  const auto asked = p.stop_token();
  int ran = 0;
  { auto dropped = p.get_future().then([&](int) { ++ran; }).then([&] { ++ran; }); }
  EXPECT_FALSE(asked.stop_requested());
  p.set_value(1);
  EXPECT_EQ(ran, 2);
}

TEST_F(future_cancel_test, ATimeoutEndsTheFutureAndCancelsTheProducer) {
  manual_clock clock;
  promise<tracked> p;
  const auto asked = p.stop_token();
  auto f = p.get_future().with_timeout(1s, clock);
  clock.advance(999ms);
  EXPECT_FALSE(f.is_ready());
  EXPECT_FALSE(asked.stop_requested());
  clock.advance(1ms);
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(1);  // too late
  try {
    f.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::timed_out);
  }
}

TEST_F(future_cancel_test, AValueInTimeDisarmsTheTimer) {
  manual_clock clock;
  promise<tracked> p;
  auto f = p.get_future().with_timeout(1s, clock);
  EXPECT_EQ(clock.pending(), 1U);
  p.set_value(1);
  EXPECT_EQ(clock.pending(), 0U);
  clock.advance(1h);
  EXPECT_EQ(f.get().value, 1);
}

TEST_F(future_cancel_test, AnErrorInTimeGoesThrough) {
  manual_clock clock;
  auto p = std::make_unique<promise<int>>();
  auto f = p->get_future().with_timeout(1s, clock);
  p.reset();
  EXPECT_EQ(clock.pending(), 0U);
  try {
    f.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::broken_promise);
  }
}

TEST_F(future_cancel_test, ATimeoutOfAReadyFutureOrOfForeverArmsNothing) {
  manual_clock clock;
  auto ready = make_ready_future(1).with_timeout(-1s, clock);
  EXPECT_EQ(ready.get(), 1) << "a set result stays, even after the timeout";
  promise<int> p;
  auto forever = p.get_future().with_timeout(std::chrono::hours::max(), clock);
  EXPECT_EQ(clock.pending(), 0U);
  p.set_value(2);
  EXPECT_EQ(forever.get(), 2);
}

TEST_F(future_cancel_test, ATimeoutThatHasPassedEndsAtOnce) {
  manual_clock clock;
  promise<tracked> p;
  const auto asked = p.stop_token();
  auto f = p.get_future().with_timeout(0s, clock);
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(asked.stop_requested());
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(future_cancel_test, ATimedOutFutureCanBeRecoveredOnAnExecutor) {
  manual_clock clock;
  manual_executor later;
  promise<int> p;
  auto f = p.get_future().via(later).with_timeout(1s, clock).recover([&](const future_error& e) {
    EXPECT_EQ(executor::current(), &later);
    return e.why() == future_error::timed_out ? -1 : -2;
  });
  clock.advance(1s);
  EXPECT_FALSE(f.is_ready());
  later.run_all();
  EXPECT_EQ(f.get(), -1);
}

TEST_F(future_cancel_test, TheRealClockTimesOutToo) {
  promise<int> p;
  auto f = p.get_future().with_timeout(1ms);
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(future_cancel_test, AStopEndsTheFutureAndCancelsTheProducer) {
  std::stop_source stop;
  promise<tracked> p;
  const auto asked = p.stop_token();
  auto f = p.get_future().with_stop(stop.get_token());
  EXPECT_FALSE(f.is_ready());
  EXPECT_FALSE(asked.stop_requested());
  stop.request_stop();
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(asked.stop_requested());
  p.set_value(1);  // too late
  try {
    f.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::cancelled);
  }
}

TEST_F(future_cancel_test, AValueBeforeTheStopStays) {
  std::stop_source stop;
  promise<tracked> p;
  auto f = p.get_future().with_stop(stop.get_token());
  p.set_value(1);
  stop.request_stop();
  EXPECT_EQ(f.get().value, 1);
}

TEST_F(future_cancel_test, AStopOfAReadyFutureOrAnEmptyTokenChangesNothing) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(make_ready_future(1).with_stop(stop.get_token()).get(), 1);
  promise<int> p;
  auto f = p.get_future().with_stop({});
  p.set_value(2);
  EXPECT_EQ(f.get(), 2);
}

TEST_F(future_cancel_test, AnEarlierStopEndsItAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  promise<tracked> p;
  const auto asked = p.stop_token();
  auto f = p.get_future().with_stop(stop.get_token());
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(asked.stop_requested());
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(future_cancel_test, AProducerThatAnswersTheStopIsTooLate) {
  std::stop_source stop;
  promise<tracked> p;
  const std::stop_callback answers(p.stop_token(), [&] { p.set_value(1); });
  auto f = p.get_future().with_stop(stop.get_token());
  stop.request_stop();
  EXPECT_THROW(f.get(), future_error);
}

TEST_F(future_cancel_test, AStoppedFutureThatWasDroppedIsFreed) {
  std::stop_source stop;
  promise<tracked> p;
  { auto dropped = p.get_future().with_stop(stop.get_token()); }
  stop.request_stop();
  EXPECT_TRUE(p.is_unset());
}

TEST_F(future_cancel_test, ManyTimeoutsOnOneClock) {
  manual_clock clock;
  std::vector<promise<int>> promises(1000);
  std::vector<future<int>> futures;
  for (std::size_t i = 0; i < promises.size(); ++i) {
    futures.push_back(promises[i].get_future().with_timeout(std::chrono::seconds(1 + i), clock));
  }
  EXPECT_EQ(clock.pending(), 1000U);
  clock.advance(500s);
  for (std::size_t i = 0; i < promises.size(); ++i) EXPECT_EQ(futures[i].is_ready(), i < 500);
  for (auto& p : promises) p.set_value(1);
  EXPECT_EQ(clock.pending(), 0U);
}

}  // namespace
}  // namespace sluice::testing::future_cancel_test
