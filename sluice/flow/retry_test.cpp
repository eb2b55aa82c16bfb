#include "sluice/flow/retry.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::retry_test {
namespace {

using namespace std::chrono_literals;

// The end of a detached task, which is resumed by the party that ends its waits.
template <class T>
struct outcome_of {
  std::optional<T> value;
  std::exception_ptr error;
  bool ended() const { return value.has_value() || error != nullptr; }
  std::optional<retry_error> given_up() const {
    try {
      if (error != nullptr) std::rethrow_exception(error);
    } catch (const retry_error& e) {
      return e;
    } catch (...) {
    }
    return std::nullopt;
  }
};
template <class T>
detached follow(task<T> t, outcome_of<T>& outcome) {
  try {
    outcome.value = co_await std::move(t);
  } catch (...) {
    outcome.error = std::current_exception();
  }
}

struct flaky : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class retry_test : public ::testing::Test {
 protected:
  retry_policy policy(retry_policy p = {}) {
    p.clock = &clock;
    if (!p.seed) p.seed = 1;
    return p;
  }
  // Fails a number of times, then returns its number; records the times of the calls.
  auto fails(int times) {
    return [this, times] {
      called.push_back(clock.now() - start);
      if (static_cast<int>(called.size()) <= times) {
        throw flaky("attempt " + std::to_string(called.size()));
      }
      return static_cast<int>(called.size());
    };
  }

  manual_clock clock;
  const time_point start = clock.now();
  std::vector<std::chrono::nanoseconds> called;
};

TEST_F(retry_test, TriesUntilItSucceedsWithGrowingWaits) {
  outcome_of<int> got;
  follow(async_retry(policy({.attempts_max = 5, .first_delay = 100ms, .jitter = jitter::none}),
                     fails(3)),
         got);
  clock.advance(1h);
  EXPECT_EQ(got.value, 4);
  EXPECT_EQ(called, (std::vector<std::chrono::nanoseconds>{0ms, 100ms, 300ms, 700ms}));
}

TEST_F(retry_test, GivesUpAfterTheLastAttemptAndCarriesItsError) {
  outcome_of<int> got;
  follow(async_retry(policy({.attempts_max = 3}), fails(9)), got);
  clock.advance(1h);
  const auto error = got.given_up();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->why(), retry_error::reason::attempts);
  EXPECT_EQ(error->attempts(), 3U);
  EXPECT_STREQ(error->what(),
               "sluice: gave up after 3 attempts: no attempts are left; the last error: attempt 3");
  EXPECT_THROW(std::rethrow_exception(error->last_error()), flaky);
}

TEST_F(retry_test, AnErrorThatIsNotRetriedIsThrownUnchanged) {
  const auto only_flaky = [](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const flaky&) {
      return true;
    } catch (...) {
      return false;
    }
  };
  int calls = 0;
  EXPECT_THROW(retry(policy({.first_delay = 0ms, .jitter = jitter::none, .retry_if = only_flaky}),
                     [&] {
                       if (++calls == 2) throw std::invalid_argument("never works");
                       throw flaky("now and then");
                     }),
               std::invalid_argument);
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_THROW(retry(policy(),
                     [&] {
                       ++calls;
                       throw future_error(future_error::cancelled);
                     }),
               future_error);
  EXPECT_EQ(calls, 1) << "a cancelled call is not retried";
}

TEST_F(retry_test, NoAttemptBeginsAfterTheTimeAllowed) {
  outcome_of<int> got;
  follow(async_retry(policy({.attempts_max = 0,
                             .first_delay = 1s,
                             .growth = 1,
                             .jitter = jitter::none,
                             .elapsed_max = 10s}),
                     fails(1'000)),
         got);
  clock.advance(10s);
  ASSERT_TRUE(got.given_up());
  EXPECT_EQ(got.given_up()->why(), retry_error::reason::elapsed);
  EXPECT_EQ(got.given_up()->attempts(), 11U);
  EXPECT_EQ(clock.now() - start, 10s);
}

TEST_F(retry_test, GivesUpAtOnceWhenTheNextAttemptWouldBeTooLate) {
  outcome_of<int> got;
  follow(async_retry(policy({.attempts_max = 9, .first_delay = 1s, .jitter = jitter::none}),
                     fails(9), deadline::after(2s, clock)),
         got);
  clock.advance(1s);  // the second failure; a third attempt would be at 3 s
  ASSERT_TRUE(got.given_up());
  EXPECT_EQ(got.given_up()->why(), retry_error::reason::timed_out);
  EXPECT_EQ(got.given_up()->attempts(), 2U);
}

TEST_F(retry_test, ADeadlineThatHasPassedStillAllowsTheFirstAttempt) {
  EXPECT_EQ(retry(policy(), fails(0), deadline::after(-1s, clock)), 1);
  called.clear();
  try {
    retry(policy(), fails(1), deadline::after(-1s, clock));
    FAIL();
  } catch (const retry_error& e) {
    EXPECT_EQ(e.why(), retry_error::reason::timed_out);
    EXPECT_EQ(e.attempts(), 1U);
  }
}

TEST_F(retry_test, ADeadlineOnAnotherClockIsHonoured) {
  EXPECT_THROW(retry(policy({.first_delay = 2h, .delay_max = 2h, .jitter = jitter::none}), fails(9),
                     deadline::after(1h)),
               retry_error);
  EXPECT_EQ(called.size(), 1U);
}

TEST_F(retry_test, AStopEndsTheWaitBetweenAttempts) {
  std::stop_source source;
  outcome_of<int> got;
  follow(async_retry(policy({.first_delay = 1h, .delay_max = 1h}), fails(9), source.get_token()),
         got);
  EXPECT_FALSE(got.ended());
  EXPECT_EQ(clock.pending(), 1U);
  source.request_stop();
  ASSERT_TRUE(got.given_up());
  EXPECT_EQ(got.given_up()->why(), retry_error::reason::stopped);
  EXPECT_EQ(got.given_up()->attempts(), 1U);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(retry_test, AStopEndsTheWaitOfAThread) {
  std::stop_source source;
  std::optional<retry_error> error;
  std::jthread caller([&] {
    try {
      retry(policy({.first_delay = 1h, .delay_max = 1h, .jitter = jitter::none}), fails(9),
            source.get_token());
    } catch (const retry_error& e) {
      error = e;
    }
  });
  eventually([&] { return clock.pending() == 1; });
  source.request_stop();
  caller.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->why(), retry_error::reason::stopped);
}

TEST_F(retry_test, AnEarlierStopCallsNothing) {
  std::stop_source source;
  source.request_stop();
  try {
    retry(policy(), fails(0), source.get_token());
    FAIL();
  } catch (const retry_error& e) {
    EXPECT_EQ(e.attempts(), 0U);
    EXPECT_EQ(e.last_error(), nullptr);
  }
  EXPECT_TRUE(called.empty());
}

TEST_F(retry_test, CancellingTheTaskThatAwaitsEndsTheWaitToo) {
  std::stop_source own;
  for (const bool both : {false, true}) {
    std::stop_source outer;
    std::jthread canceller([&] {
      eventually([&] { return clock.pending() == 1; });
      outer.request_stop();
    });
    int calls = 0;
    const auto fails_always = [&]() -> int {
      ++calls;
      throw flaky("no");
    };
    auto t = async_retry(policy({.first_delay = 1h, .delay_max = 1h, .jitter = jitter::none}),
                         fails_always, both ? wait_limits(own.get_token()) : wait_limits());
    EXPECT_THROW((void)sync_wait(std::move(t), outer.get_token()), retry_error);
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(retry_test, AThreadWaitsBetweenAttempts) {
  std::optional<int> result;
  std::jthread caller(
      [&] { result = retry(policy({.first_delay = 1s, .jitter = jitter::none}), fails(2)); });
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1s);
  eventually([&] { return clock.pending() == 1; });
  clock.advance(2s);
  caller.join();
  EXPECT_EQ(result, 3);
}

TEST_F(retry_test, WrapsFuturesAndTasks) {
  int calls = 0;
  const auto soon = [&calls]() -> task<std::string> {
    if (++calls < 3) throw flaky("not yet");
    co_return "there";
  };
  outcome_of<std::string> from_task;
  follow(async_retry(policy(), [&] { return soon(); }), from_task);
  clock.advance(1h);
  EXPECT_EQ(from_task.value, "there");

  calls = 0;
  outcome_of<int> from_future;
  follow(async_retry(policy(),
                     [&] {
                       promise<int> p;
                       if (++calls < 2) {
                         p.set_exception(flaky("not yet"));
                       } else {
                         p.set_value(8);
                       }
                       return p.get_future();
                     }),
         from_future);
  clock.advance(1h);
  EXPECT_EQ(from_future.value, 8);
}

TEST_F(retry_test, ReportsEachRetryBeforeItsWait) {
  std::vector<std::uint32_t> reported;
  auto p = policy({.first_delay = 1s, .jitter = jitter::none});
  p.on_retry = [&](const retry_event& e) {
    reported.push_back(e.attempts);
    EXPECT_EQ(e.delay, e.attempts == 1 ? 1s : 2s);
    EXPECT_THROW(std::rethrow_exception(e.error), flaky);
  };
  outcome_of<int> got;
  follow(async_retry(p, fails(2)), got);
  EXPECT_EQ(reported, (std::vector<std::uint32_t>{1}));
  clock.advance(1h);
  EXPECT_EQ(reported, (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(retry_test, AnExceptionOfOnRetryIsReportedAndChangesNothing) {
  auto p = policy({.first_delay = 1s, .jitter = jitter::none});
  p.on_retry = [](const retry_event&) { throw std::runtime_error("log is full"); };
  outcome_of<int> got;
  ::testing::internal::CaptureStderr();
  follow(async_retry(p, fails(1)), got);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "sluice: on_retry threw: log is full\n");
  clock.advance(1h);
  EXPECT_TRUE(got.value.has_value());
}

TEST_F(retry_test, WaitsAtLeastAsLongAsACircuitStaysOpen) {
  circuit_breaker breaker({.consecutive_failures = 1, .open_for = 5s, .clock = &clock});
  outcome_of<int> got;
  auto real = fails(1);
  follow(async_retry(policy({.attempts_max = 3, .first_delay = 1ms, .jitter = jitter::none}),
                     [&] { return breaker.call(real); }),
         got);
  clock.advance(1h);
  EXPECT_EQ(got.value, 2);
  EXPECT_EQ(called, (std::vector<std::chrono::nanoseconds>{0ms, 5s}))
      << "the second attempt was refused with a known duration";
}

// ---- delays

TEST(retry_delays_test, EveryJitterStaysInItsBoundsAndUsesThem) {
  stress run;
  constexpr int waits = 12;
  constexpr int rounds = 2'000;
  for (const auto kind : {jitter::none, jitter::full, jitter::equal, jitter::decorrelated}) {
    std::vector<double> sums(waits, 0);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      retry_delays delays({.first_delay = 100ms,
                           .growth = 2,
                           .delay_max = 5s,
                           .jitter = kind,
                           .seed = run.generator(round).next()});
      std::chrono::nanoseconds last = 100ms;
      for (int i = 0; i < waits; ++i) {
        const std::chrono::nanoseconds d = std::min<std::chrono::nanoseconds>(5s, 100ms * (1 << i));
        const auto wait = delays.next();
        switch (kind) {
          case jitter::none:
            EXPECT_EQ(wait, d);
            break;
          case jitter::full:
            EXPECT_GE(wait, 0ns);
            EXPECT_LE(wait, d);
            break;
          case jitter::equal:
            EXPECT_GE(wait, d / 2 - 1ns);
            EXPECT_LE(wait, d);
            break;
          case jitter::decorrelated:
            EXPECT_GE(wait, 100ms);
            EXPECT_LE(wait, std::min<std::chrono::nanoseconds>(5s, last * 3 + 3ns));
            break;
        }
        last = wait;
        sums[static_cast<std::size_t>(i)] += static_cast<double>(wait.count());
        run.did();
      }
    }
    if (kind == jitter::full || kind == jitter::equal) {
      for (int i = 0; i < waits; ++i) {
        const double d = std::min(5e9, 1e8 * (1 << i));
        const double mean = sums[static_cast<std::size_t>(i)] / rounds / d;
        EXPECT_NEAR(mean, kind == jitter::full ? 0.5 : 0.75, 0.05);
      }
    }
  }
}

TEST(retry_delays_test, TheSameSeedGivesTheSameWaits) {
  retry_delays a({.seed = 7});
  retry_delays b({.seed = 7});
  retry_delays c({.seed = 8});
  bool differs = false;
  for (int i = 0; i < 10; ++i) {
    const auto wait = a.next();
    EXPECT_EQ(wait, b.next());
    differs |= wait != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(retry_delays_test, NeverOverflows) {
  retry_delays delays({.first_delay = 1h,
                       .growth = 1e9,
                       .delay_max = std::chrono::hours(24 * 365 * 100),
                       .jitter = jitter::none});
  for (int i = 0; i < 100; ++i) EXPECT_LE(delays.next(), std::chrono::hours(24 * 365 * 100));
}

// ---- budget

TEST_F(retry_test, ABudgetKeepsRetriesToAShareOfCalls) {
  retry_budget budget({.ratio = 0.1, .reserve = 5});
  int calls = 0;
  int refused = 0;
  for (int i = 0; i < 1'000; ++i) {
    try {
      retry(policy({.attempts_max = 4, .first_delay = 0s, .budget = &budget}), [&] {
        ++calls;
        throw flaky("down");
      });
    } catch (const retry_error& e) {
      refused += e.why() == retry_error::reason::budget ? 1 : 0;
      EXPECT_NE(e.last_error(), nullptr);
    }
  }
  EXPECT_EQ(calls, 1'000 + 100 + 5) << "every call once, a tenth of them again, and the reserve";
  EXPECT_GT(refused, 900);
  EXPECT_EQ(budget.refused(), static_cast<std::uint64_t>(refused));
}

TEST(retry_budget_test, SavesUpToItsMaximum) {
  retry_budget budget({.ratio = 0.5, .reserve = 0, .saved_max = 3});
  EXPECT_FALSE(budget.try_retry());
  for (int i = 0; i < 100; ++i) budget.call();
  EXPECT_DOUBLE_EQ(budget.left(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.try_retry());
  EXPECT_FALSE(budget.try_retry());
}

TEST(retry_budget_test, ThreadsTogetherNeverExceedIt) {
  stress run;
  retry_budget budget({.ratio = 0.25, .reserve = 8, .saved_max = 1'000'000});
  std::atomic<int> retries{0};
  constexpr int each = 4'000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          budget.call();
          if (budget.try_retry()) ++retries;
        }
        run.did(each);
      });
    }
  }
  while (budget.try_retry()) ++retries;
  EXPECT_EQ(retries, 8 + 4 * each / 4);
}

TEST(retry_DeathTest, InvalidPoliciesAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto f = [] {};
  EXPECT_DEATH(retry({.attempts_max = 0}, f), "a limit: attempts_max or elapsed_max");
  EXPECT_DEATH(retry({.first_delay = -1s}, f), "first_delay");
  EXPECT_DEATH(retry({.growth = 0.5}, f), "growth of at least 1");
  EXPECT_DEATH(retry_budget({.ratio = -1}), "ratio");
  EXPECT_DEATH(retry_budget({.reserve = 200}), "saved_max");
}

}  // namespace
}  // namespace sluice::testing::retry_test
