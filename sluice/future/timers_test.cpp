#include "sluice/future/timers.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::timers_test {
namespace {

using namespace std::chrono_literals;

class timers_test : public leak_checked {
 protected:
  manual_clock clock;
  manual_executor ex;
};

// ---- sleep

task<status> sleep_one(clock& on, std::chrono::nanoseconds d, std::stop_token stop = {}) {
  co_return co_await sleep_for(d, on, stop);
}

TEST_F(timers_test, SleepResumesAtItsTimeOnTheTasksExecutor) {
  auto f = spawn(ex, sleep_one(clock, 10s));
  ex.run_all();
  clock.advance(10s - 1ns);
  EXPECT_EQ(ex.pending(), 0U);
  clock.advance(1ns);
  EXPECT_FALSE(f.is_ready()) << "not on the clock's thread";
  ex.run_all();
  EXPECT_EQ(f.get(), status::ok);
}

TEST_F(timers_test, APassedTimeIsNoWait) {
  const auto sleeps = [](sluice::clock& on) -> task<bool> {
    bool all = static_cast<bool>(co_await sleep_for(0s, on));
    all = all && co_await sleep_for(-1h, on);
    all = all && co_await sleep_until(deadline::at(on.now(), on));
    all = all && co_await sleep_for(-1s);
    all = all && co_await sleep_until(std::chrono::steady_clock::now());
    all = all && co_await sleep_until(std::chrono::system_clock::now() - 1h);
    co_return all;
  };
  auto f = spawn(ex, sleeps(clock));
  EXPECT_TRUE(ex.run_one());
  EXPECT_TRUE(f.is_ready());
  EXPECT_TRUE(f.get());
}

TEST_F(timers_test, OnTheRealClockItNeverResumesEarly) {
  const auto sleeps = []() -> task<bool> {
    const auto start = std::chrono::steady_clock::now();
    bool ok = static_cast<bool>(co_await sleep_for(2ms));
    ok = ok && std::chrono::steady_clock::now() - start >= 2ms;
    ok = ok && co_await sleep_until(start + 4ms);
    co_return ok && std::chrono::steady_clock::now() - start >= 4ms;
  };
  EXPECT_TRUE(sync_wait(sleeps()));
}

TEST_F(timers_test, AStopEndsTheSleepAndTakesTheTimerOut) {
  auto f = spawn(ex, sleep_one(clock, 1h));
  std::stop_source source;
  auto g = spawn(ex, sleep_one(clock, 1h, source.get_token()));
  ex.run_all();
  EXPECT_EQ(clock.pending(), 2U);
  f.cancel();
  ex.run_all();
  EXPECT_EQ(f.get(), status::stopped);
  EXPECT_EQ(clock.pending(), 1U);
  source.request_stop();
  ex.run_all();
  EXPECT_EQ(g.get(), status::stopped);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(timers_test, ASleepTooLongToCountEndsOnlyByAStop) {
  const auto sleeps = [](sluice::clock& on) -> task<status> {
    co_return co_await sleep_for(std::chrono::hours::max(), on);
  };
  auto f = spawn(ex, sleeps(clock));
  ex.run_all();
  clock.advance(std::chrono::hours(24 * 365 * 200));
  EXPECT_EQ(ex.pending(), 0U);
  f.cancel();
  ex.run_all();
  EXPECT_EQ(f.get(), status::stopped);
}

TEST_F(timers_test, SleepersResumeInTheOrderOfTheirTimes) {
  std::vector<int> order;
  const auto sleeps = [&](int n, std::chrono::seconds d) -> task<> {
    (void)co_await sleep_for(d, clock);
    order.push_back(n);
  };
  inline_executor here;
  scope s(here);
  s.start(sleeps(3, 30s));
  s.start(sleeps(1, 10s));
  s.start(sleeps(2, 20s));
  s.start(sleeps(4, 30s));
  clock.advance(1min);
  s.join();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

// ---- a million

TEST_F(timers_test, AMillionSleepersFireInOrder) {
  constexpr int count = 1'000'000;
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 7);
  random choose(seed);
  inline_executor here;
  std::vector<std::uint32_t> woke;
  woke.reserve(count);
  int stopped = 0;
  const auto sleeps = [](sluice::clock& on, std::uint32_t at, std::vector<std::uint32_t>& order,
                         int& unwanted) -> task<> {
    const status s = co_await sleep_for(std::chrono::microseconds(at), on);
    if (s) {
      order.push_back(at);
    } else {
      ++unwanted;
    }
  };
  const auto before = ::mallinfo2().uordblks;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto start = now();
  scope kept(here, count);
  scope cancelled(here, count);
  for (int i = 0; i < count; ++i) {
    scope& s = i % 2 == 0 ? kept : cancelled;
    s.start(sleeps(clock, 1 + choose.below(1'000'000'000), woke, stopped));
  }
  const auto armed = now();
  const auto bytes = ::mallinfo2().uordblks - before;
  EXPECT_EQ(clock.pending(), static_cast<std::size_t>(count));
  cancelled.cancel();
  const auto half = now();
  EXPECT_EQ(stopped, count / 2);
  EXPECT_EQ(clock.pending(), static_cast<std::size_t>(count / 2));
  clock.advance(1'000s);
  const auto fired = now();
  EXPECT_EQ(woke.size(), static_cast<std::size_t>(count / 2));
  EXPECT_TRUE(std::ranges::is_sorted(woke));
  EXPECT_EQ(clock.pending(), 0U);
  kept.join();
  cancelled.join();
  const auto ms = [](auto d) { return static_cast<long long>(d / 1ms); };
  std::printf("1000000 sleeping tasks: armed in %lld ms, half cancelled in %lld ms, the rest fired "
              "in order in %lld ms, %zu bytes each, seed %llu\n",
              ms(armed - start), ms(half - armed), ms(fired - half), bytes / count,
              static_cast<unsigned long long>(seed));
}

// ---- after

TEST_F(timers_test, AfterIsCompleteAtItsTime) {
  auto f = after(1h, clock);
  auto now = after(-1s, clock);
  EXPECT_TRUE(now.is_ready());
  now.get();
  clock.advance(59min);
  EXPECT_FALSE(f.is_ready());
  bool ran = false;
  auto g = std::move(f).via(ex).then([&] { ran = true; });
  clock.advance(1min);
  EXPECT_FALSE(ran);
  ex.run_all();
  EXPECT_TRUE(ran);
  g.get();
  after(1ms).get();
  after(deadline::after(1ms)).get();
}

TEST_F(timers_test, CancellingAfterTakesTheTimerOut) {
  auto f = after(1h, clock);
  auto g = after(1h, clock).then([] { return 1; });
  EXPECT_EQ(clock.pending(), 2U);
  f.cancel();
  g.cancel();
  EXPECT_EQ(clock.pending(), 0U);
  EXPECT_THROW(f.get(), future_error);
  EXPECT_THROW((void)g.get(), future_error);
}

TEST_F(timers_test, CancelsThatRaceWithTheClockEndAnAfterOnce) {
  stress run;
  auto choose = run.generator(0);
  for (int round = 0; round < 2'000; ++round) {
    auto f = after(std::chrono::microseconds(choose.below(60)));
    for (auto spin = choose.below(3'000); spin > 0; --spin) seam::pause();
    f.cancel();
    try {
      f.get();
    } catch (const future_error& e) {
      EXPECT_EQ(e.why(), future_error::cancelled);
    }
    run.did();
  }
}

// ---- every

TEST_F(timers_test, EveryCallsAtMultiplesOfItsPeriodWithoutDrift) {
  std::vector<std::chrono::nanoseconds> at;
  const auto start = clock.now();
  auto ticking = every(10s, ex, [&] { at.push_back(clock.now() - start); }, clock);
  ex.run_all();
  for (int i = 0; i < 35; ++i) {
    clock.advance(1s + 1ms);  // later each time
    ex.run_all();
  }
  ASSERT_EQ(at.size(), 3U);
  for (std::size_t n = 0; n < at.size(); ++n) {
    const auto due = 10s * (n + 1);
    EXPECT_GE(at[n], due);
    EXPECT_LT(at[n], due + 1s + 1ms) << "late calls do not move the next one";
  }
  ticking.cancel();
  ex.run_all();
  ticking.get();
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(timers_test, ASlowHandlerMissesCallsAndTheyDoNotPileUp) {
  std::vector<std::chrono::nanoseconds> at;
  const auto start = clock.now();
  auto ticking = every(
      10s, ex,
      [&] {
        at.push_back(clock.now() - start);
        if (at.size() == 1) clock.advance(25s);  // the calls at 20 s and 30 s are missed
      },
      clock);
  ex.run_all();
  clock.advance(10s);
  ex.run_all();
  EXPECT_EQ(at.size(), 1U);
  clock.advance(5s);
  ex.run_all();
  EXPECT_EQ(at, (std::vector<std::chrono::nanoseconds>{10s, 40s}));
  ticking.cancel();
  ex.run_all();
  ticking.get();
}

TEST_F(timers_test, EveryAwaitsAHandlerThatIsATask) {
  event go;
  int began = 0;
  int ended = 0;
  const auto handler = [&]() -> task<> {
    ++began;
    (void)co_await go.async_wait();
    ++ended;
  };
  auto ticking = every(1s, ex, handler, clock);
  ex.run_all();
  for (int i = 0; i < 3; ++i) {
    clock.advance(1s);
    ex.run_all();
  }
  EXPECT_EQ(began, 1) << "calls never overlap";
  go.set();
  ex.run_all();
  EXPECT_EQ(ended, 1);
  clock.advance(1s);
  ex.run_all();
  EXPECT_EQ(ended, 2);
  ticking.cancel();
  ex.run_all();
  ticking.get();
}

TEST_F(timers_test, ATokenEndsEvery) {
  std::stop_source source;
  int calls = 0;
  auto ticking = every(1s, ex, [&] { ++calls; }, {clock, source.get_token()});
  ex.run_all();
  clock.advance(1s);
  ex.run_all();
  source.request_stop();
  ex.run_all();
  ticking.get();
  EXPECT_EQ(calls, 1);
}

TEST_F(timers_test, AnExceptionOfTheHandlerEndsEvery) {
  auto ticking = every(1s, ex, [] { throw std::logic_error("tick"); }, clock);
  ex.run_all();
  clock.advance(1s);
  ex.run_all();
  EXPECT_THROW(ticking.get(), std::logic_error);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(timers_test, APeriodThatIsNotPositiveIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)every(0s, ex, [] {}), "every.*a period > 0");
}

TEST_F(timers_test, EveryRunsOnTheRealClockToo) {
  thread_pool pool(1);
  std::atomic<int> calls{0};
  auto ticking = every(1ms, pool, [&] { ++calls; });
  eventually([&] { return calls >= 3; });
  ticking.cancel();
  ticking.get();
}

}  // namespace
}  // namespace sluice::testing::timers_test
