#include "sluice/flow/rate_limiter.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::rate_limiter_test {
namespace {

using namespace std::chrono_literals;
__extension__ using wide = __int128;

// Shut: a rate of 0 and no token. Open: more tokens than the tests take.
class rate_limiter_gate {
 public:
  status wait(const wait_limits& limits) { return limiter_.acquire(2, limits); }
  template <class Where>
  static detached await(rate_limiter_gate& gate, Where&, wait_limits limits, ending& ended) {
    ended.set(co_await gate.limiter_.async_acquire(2, std::move(limits)));
  }
  void open() {
    limiter_.set_rate({many, 1ns});
    clock_.advance(1ns);
  }
  std::size_t waiting() const { return limiter_.waiting(); }

 private:
  static constexpr std::int64_t many = std::int64_t{1} << 40;
  manual_clock clock_;
  rate_limiter limiter_{{.rate = {0, 1s}, .burst = many, .initial = 0, .clock = &clock_}};
};

INSTANTIATE_TYPED_TEST_SUITE_P(rate_limiter, waiting_suite, rate_limiter_gate);

class rate_limiter_test : public ::testing::Test {
 protected:
  // A coroutine that makes one request and records when it was served.
  struct request {
    std::optional<status> ended;
    time_point at{};
  };
  static detached ask(rate_limiter& from, const clock& time, std::int64_t n, request& r,
                      wait_limits limits = {}) {
    const auto result = co_await from.async_acquire(n, std::move(limits));
    r.at = time.now();
    r.ended = result;
  }

  manual_clock clock;
  const time_point start = clock.now();
};

TEST_F(rate_limiter_test, GivesABurstAndThenTheRate) {
  rate_limiter limiter({.rate = {10, 1s}, .burst = 3, .clock = &clock});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.try_acquire());
  EXPECT_FALSE(limiter.try_acquire());
  clock.advance(100ms - 1ns);
  EXPECT_FALSE(limiter.try_acquire()) << "not a nanosecond early";
  clock.advance(1ns);
  EXPECT_TRUE(limiter.try_acquire());
  clock.advance(24h);
  EXPECT_EQ(limiter.available(), 3) << "an idle time is not saved up beyond the burst";
  EXPECT_TRUE(limiter.try_acquire(3));
  EXPECT_FALSE(limiter.try_acquire());
}

TEST_F(rate_limiter_test, StartsWithTheInitialTokens) {
  rate_limiter empty({.rate = {1, 1s}, .burst = 5, .initial = 0, .clock = &clock});
  EXPECT_FALSE(empty.try_acquire());
  rate_limiter some({.rate = {1, 1s}, .burst = 5, .initial = 2, .clock = &clock});
  EXPECT_TRUE(some.try_acquire(2));
  EXPECT_FALSE(some.try_acquire());
}

TEST_F(rate_limiter_test, ServesInOrderOfArrivalEachAtItsMoment) {
  rate_limiter limiter({.rate = {10, 1s}, .burst = 5, .initial = 0, .clock = &clock});
  std::vector<request> requests(4);
  const std::int64_t wanted[] = {5, 1, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) ask(limiter, clock, wanted[i], requests[i]);
  EXPECT_EQ(limiter.waiting(), 4U);
  EXPECT_EQ(clock.pending(), 1U) << "one timer, for the first waiter";
  EXPECT_EQ(limiter.time_until(1), 1000ms);
  clock.advance(1h);
  EXPECT_EQ(requests[0].at - start, 500ms);
  EXPECT_EQ(requests[1].at - start, 600ms);
  EXPECT_EQ(requests[2].at - start, 800ms);
  EXPECT_EQ(requests[3].at - start, 900ms);
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(rate_limiter_test, ALargeRequestIsNotOvertakenByATry) {
  rate_limiter limiter({.rate = {1, 1s}, .burst = 10, .initial = 0, .clock = &clock});
  request many;
  ask(limiter, clock, 10, many);
  clock.advance(9s);
  EXPECT_EQ(limiter.available(), 9);
  EXPECT_FALSE(limiter.try_acquire());
  clock.advance(1s);
  EXPECT_EQ(many.ended, status(status::ok));
}

TEST_F(rate_limiter_test, AWaiterThatGivesUpUnblocksLaterOnesAtOnce) {
  rate_limiter limiter({.rate = {1, 1s}, .burst = 10, .initial = 0, .clock = &clock});
  request many;
  request few;
  std::stop_source source;
  ask(limiter, clock, 10, many, source.get_token());
  ask(limiter, clock, 2, few);
  clock.advance(3s);
  EXPECT_FALSE(few.ended);
  source.request_stop();
  EXPECT_EQ(many.ended, status(status::stopped));
  EXPECT_EQ(few.ended, status(status::ok));
  EXPECT_EQ(limiter.available(), 1) << "the stopped wait took nothing";
}

TEST_F(rate_limiter_test, MoreThanTheBurstIsRefusedAtOnceByEveryForm) {
  rate_limiter limiter({.rate = {1, 1s}, .burst = 2, .clock = &clock});
  EXPECT_EQ(limiter.acquire(3), status::full);
  EXPECT_FALSE(limiter.try_acquire(3));
  EXPECT_EQ(limiter.acquire(3, 1h), status::full);
  EXPECT_EQ(limiter.acquire(3, std::stop_token{}), status::full);
  request r;
  ask(limiter, clock, 3, r);
  EXPECT_EQ(r.ended, status(status::full));
  EXPECT_EQ(limiter.time_until(3), std::chrono::nanoseconds::max());
  EXPECT_EQ(limiter.available(), 2);
}

TEST_F(rate_limiter_test, LoweringTheBurstRefusesLargerWaitingRequests) {
  rate_limiter limiter({.rate = {1, 1s}, .burst = 8, .initial = 0, .clock = &clock});
  std::vector<request> requests(3);
  ask(limiter, clock, 3, requests[0]);
  ask(limiter, clock, 8, requests[1]);
  ask(limiter, clock, 1, requests[2]);
  limiter.set({1, 1s}, 4);
  EXPECT_FALSE(requests[0].ended);
  EXPECT_EQ(requests[1].ended, status(status::full));
  clock.advance(4s);
  EXPECT_EQ(requests[0].ended, status(status::ok));
  EXPECT_EQ(requests[2].ended, status(status::ok));
  EXPECT_EQ(requests[2].at - start, 4s);
}

TEST_F(rate_limiter_test, AChangedRateAppliesToWaitersToo) {
  rate_limiter limiter({.rate = {1, 1s}, .burst = 10, .initial = 0, .clock = &clock});
  request r;
  ask(limiter, clock, 4, r);
  clock.advance(2s);           // two tokens are inside
  limiter.set_rate({10, 1s});  // the other two take 200 ms
  clock.advance(200ms - 1ns);
  EXPECT_FALSE(r.ended);
  clock.advance(1ns);
  EXPECT_EQ(r.ended, status(status::ok));
  EXPECT_EQ(limiter.rate(), (rate{10, 1s}));
}

TEST_F(rate_limiter_test, ARateOfZeroAddsNoTokens) {
  rate_limiter limiter({.rate = {5, 1s}, .burst = 5, .clock = &clock});
  limiter.set_rate({0, 1s});
  EXPECT_TRUE(limiter.try_acquire(5)) << "tokens inside may be taken";
  request r;
  ask(limiter, clock, 1, r);
  clock.advance(24h * 365);
  EXPECT_FALSE(r.ended);
  EXPECT_EQ(clock.pending(), 0U);
  EXPECT_EQ(limiter.time_until(), std::chrono::nanoseconds::max());
  limiter.set_rate({5, 1s});
  clock.advance(200ms);
  EXPECT_TRUE(r.ended);
}

TEST_F(rate_limiter_test, ChangingTheRateMakesNoTokens) {
  rate_limiter limiter({.rate = {1, 3s}, .burst = 1, .initial = 0, .clock = &clock});
  for (int i = 0; i < 1'000; ++i) {
    limiter.set_rate({1, std::chrono::nanoseconds(3s) + std::chrono::nanoseconds(i % 7)});
    EXPECT_FALSE(limiter.try_acquire());
  }
  clock.advance(3s + 1us);
  EXPECT_TRUE(limiter.try_acquire());
}

// ---- precision

detached take_for_ever(rate_limiter& from, std::stop_token stop) {
  for (auto result = status(status::ok); result;) result = co_await from.async_acquire(1, stop);
}

TEST_F(rate_limiter_test, CountsEveryTokenOfADayExactly) {
  struct day {
    rate per;
    std::int64_t burst;
  };
  // Among them rates whose tokens fall between nanoseconds.
  for (const auto& [per, burst] : {day{{7, 3s}, 1}, day{{1, 1s}, 10}, day{{3, 1s}, 1},
                                   day{{1'000, 7'777s}, 3}, day{{11, 13s}, 2}}) {
    rate_limiter limiter({.rate = per, .burst = burst, .clock = &clock});
    std::stop_source source;
    take_for_ever(limiter, source.get_token());
    stress run;
    auto choose = run.generator(0);
    for (auto left = std::chrono::nanoseconds(24h); left > 0ns;) {
      const auto step =
          std::min(left, std::chrono::nanoseconds(1 + choose.next() % 400'000'000'000));
      clock.advance(step);
      left -= step;
      run.did();
    }
    const auto earned = static_cast<std::int64_t>(
        wide{per.count} * std::chrono::nanoseconds(24h).count() / per.per.count());
    EXPECT_EQ(limiter.stats().granted, burst + earned);
    source.request_stop();
  }
}

detached take_ten_million(rate_limiter& from, random choose, bool& done) {
  constexpr std::int64_t all = 10'000'000;
  for (std::int64_t taken = 0; taken < all;) {
    const auto n = std::min<std::int64_t>(1 + choose.below(100), all - taken);
    (void)co_await from.async_acquire(n);
    taken += n;
  }
  done = true;
}

TEST_F(rate_limiter_test, TenMillionAtFiftyThousandASecondTakeTwoHundredSeconds) {
  stress run;
  rate_limiter limiter({.rate = {50'000, 1s}, .burst = 100, .initial = 0, .clock = &clock});
  bool done = false;
  take_ten_million(limiter, run.generator(0), done);
  clock.advance(200s - 1ns);
  EXPECT_FALSE(done);
  clock.advance(1ns);
  EXPECT_TRUE(done);
  EXPECT_EQ(limiter.stats().granted, 10'000'000);
  run.did(limiter.stats().served);
}

// A clock whose timers fire late, as on a busy machine.
class late_clock final : public clock {
 public:
  explicit late_clock(std::chrono::nanoseconds late) : late_(late) {}
  time_point now() const noexcept override { return time_.now(); }
  bool arm(timer& t, time_point when) override {
    return when > time_.now() && time_.arm(t, when + late_);
  }
  bool disarm(timer& t) noexcept override { return time_.disarm(t); }
  void advance(std::chrono::nanoseconds by) { time_.advance(by); }

 private:
  const std::chrono::nanoseconds late_;
  manual_clock time_;
};

TEST(rate_limiter_lateness_test, LateTimersDoNotAddUp) {
  late_clock time(300us);
  rate_limiter limiter({.rate = {1'000, 1s}, .burst = 1, .initial = 0, .clock = &time});
  std::stop_source source;
  take_for_ever(limiter, source.get_token());
  time.advance(100s);
  const auto granted = limiter.stats().granted;
  EXPECT_LE(granted, 100'000);
  EXPECT_GE(granted, 99'999) << "each is 0.3 ms late, not 0.3 ms later than its predecessor";
  source.request_stop();
}

TEST(rate_limiter_lateness_test, AfterALongStallAtMostABurstAndOneRequestPass) {
  late_clock time(1h);
  rate_limiter limiter({.rate = {10, 1s}, .burst = 5, .initial = 0, .clock = &time});
  std::stop_source source;
  for (int i = 0; i < 100; ++i) take_for_ever(limiter, source.get_token());
  time.advance(1h + 100ms);  // the first timer fires: its tokens were there an hour ago
  EXPECT_EQ(limiter.stats().granted, 6);
  source.request_stop();
}

// ---- against models

// The rule of a grant: n tokens may be given at time t if, from the start and from every earlier
// grant on, at most a burst plus the tokens added since are given. No bucket, no level, no
// rounding.
class window_model {
 public:
  window_model(rate r, std::int64_t burst) : rate_(r), burst_(burst) {}

  bool allows(std::int64_t n, std::chrono::nanoseconds t) const {
    wide sum = n;
    for (auto one = grants_.rbegin(); one != grants_.rend(); ++one) {
      sum += one->n;
      if ((sum - burst_) * rate_.per.count() > wide{rate_.count} * (t - one->t).count()) {
        return false;
      }
    }
    return n <= burst_;
  }
  // Returns the first time from `t` on at which it allows n.
  std::chrono::nanoseconds when(std::int64_t n, std::chrono::nanoseconds t) const {
    wide sum = n;
    auto earliest = t;
    for (auto one = grants_.rbegin(); one != grants_.rend(); ++one) {
      sum += one->n;
      if (sum <= burst_) continue;
      const wide wait = ((sum - burst_) * rate_.per.count() + rate_.count - 1) / rate_.count;
      const std::chrono::nanoseconds after(static_cast<std::int64_t>(wait));
      earliest = std::max(earliest, one->t + after);
    }
    return earliest;
  }
  void grant(std::int64_t n, std::chrono::nanoseconds t) { grants_.push_back({n, t}); }

 private:
  struct given {
    std::int64_t n;
    std::chrono::nanoseconds t;
  };
  const rate rate_;
  const std::int64_t burst_;
  std::vector<given> grants_;
};

TEST_F(rate_limiter_test, TriesAgreeWithTheModel) {
  stress run;
  for (std::uint64_t round = 0; round < 30; ++round) {
    auto choose = run.generator(round);
    const rate r{1 + choose.below(1'000'000),
                 std::chrono::nanoseconds(1 + choose.below(3'000'000'000))};
    const std::int64_t burst = 1 + choose.below(20);
    rate_limiter limiter({.rate = r, .burst = burst, .clock = &clock});
    window_model model(r, burst);
    const auto began = clock.now();
    const auto token_ns = static_cast<std::uint64_t>(r.per.count() / r.count + 1);
    for (int i = 0; i < 300; ++i) {
      clock.advance(std::chrono::nanoseconds(choose.next() % (2 * token_ns)));
      const std::int64_t n = 1 + choose.below(static_cast<std::uint32_t>(burst) + 1);
      const auto t = clock.now() - began;
      const bool expected = model.allows(n, t);
      ASSERT_EQ(limiter.try_acquire(n), expected) << "round " << round << " step " << i;
      if (expected) model.grant(n, t);
      run.did();
    }
  }
}

TEST_F(rate_limiter_test, WaitsAgreeWithTheModelToTheNanosecond) {
  stress run;
  for (std::uint64_t round = 0; round < 30; ++round) {
    auto choose = run.generator(round);
    // A whole number of nanoseconds a token: then the model, which steps by nanoseconds, is never
    // late.
    const rate r{1, std::chrono::nanoseconds(1 + choose.below(1'000'000))};
    const std::int64_t burst = 1 + choose.below(20);
    rate_limiter limiter({.rate = r, .burst = burst, .clock = &clock});
    window_model model(r, burst);
    std::deque<request> requests;
    const auto began = clock.now();
    auto turn = 0ns;  // requests are served in order of arrival
    std::vector<std::chrono::nanoseconds> expected;
    for (int i = 0; i < 200; ++i) {
      clock.advance(std::chrono::nanoseconds(
          choose.next() % static_cast<std::uint64_t>(1 + burst * r.per.count())));
      const std::int64_t n = 1 + choose.below(static_cast<std::uint32_t>(burst));
      turn = model.when(n, std::max(turn, clock.now() - began));
      model.grant(n, turn);
      expected.push_back(turn);
      ask(limiter, clock, n, requests.emplace_back());
      run.did();
    }
    clock.advance(24h);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(requests[i].at - began, expected[i]) << "round " << round << " request " << i;
    }
  }
}

// ---- threads

TEST(rate_limiter_stress_test, NeverGivesMoreThanTheBurstAndTheRate) {
  stress run;
  rate_limiter limiter({.rate = {200'000, 1s}, .burst = 50});
  std::atomic<std::int64_t> taken{0};
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 1'500; ++i) {
          const std::int64_t n = 1 + choose.below(8);
          bool got = false;
          switch (choose.below(4)) {
            case 0:
              got = limiter.try_acquire(n);
              break;
            case 1:
              got = static_cast<bool>(
                  limiter.acquire(n, std::chrono::microseconds(choose.below(100))));
              break;
            case 2:
              got = static_cast<bool>(limiter.acquire(n));
              break;
            default:
              limiter.set({200'000, 1s}, 50);
              break;
          }
          if (got) taken += n;
        }
        run.did(1'500);
      });
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LE(static_cast<double>(taken.load()), 50 + 8 + 200'000 * took.count());
  EXPECT_EQ(limiter.stats().granted, taken.load()) << "waits that ended early took nothing";
  EXPECT_EQ(limiter.waiting(), 0U);
}

detached use_and_destroy(std::optional<rate_limiter>& limiter, bool& done) {
  (void)co_await limiter->async_acquire();
  limiter.reset();
  done = true;
}

TEST_F(rate_limiter_test, MayBeDestroyedByTheWaiterItsTimerServed) {
  std::optional<rate_limiter> limiter;
  limiter.emplace(rate_limiter_options{.rate = {1, 1s}, .initial = 0, .clock = &clock});
  bool done = false;
  use_and_destroy(limiter, done);
  clock.advance(1s);
  EXPECT_TRUE(done);
}

TEST(rate_limiter_DeathTest, InvalidNumbersAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(rate_limiter({.rate = {-1, 1s}}), "sluice::rate_limiter.*not negative");
  EXPECT_DEATH(rate_limiter({.rate = {1, 0s}}), "sluice::rate_limiter.*period longer than zero");
  EXPECT_DEATH(rate_limiter({.rate = {1, 1s}, .burst = 0}), "sluice::rate_limiter.*at least 1");
  EXPECT_DEATH(rate_limiter({.rate = {1, 1s}, .burst = 1, .initial = 2}), "initial tokens");
  EXPECT_DEATH((void)rate_limiter({.rate = {1, 1s}}).acquire(0), "at least one token");
}

TEST(rate_limiter_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const l = new rate_limiter({.rate = {0, 1s}, .initial = 0});
        std::jthread waits([l] { l->acquire(); });
        eventually([&] { return l->waiting() == 1; });
        delete l;
      },
      "sluice::rate_limiter.*no waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::rate_limiter_test
