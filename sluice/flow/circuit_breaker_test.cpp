#include "sluice/flow/circuit_breaker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/future/promise.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::circuit_breaker_test {
namespace {

using namespace std::chrono_literals;

class circuit_breaker_test : public ::testing::Test {
 protected:
  circuit_breaker_options options(circuit_breaker_options o = {.consecutive_failures = 3}) {
    o.clock = &clock;
    if (!o.on_change) {
      o.on_change = [this](const circuit_change& c) { changes.push_back(c); };
    }
    return o;
  }
  static void succeed(circuit_breaker& b, int times = 1) {
    for (int i = 0; i < times; ++i) b.try_enter().success();
  }
  static void fail(circuit_breaker& b, int times = 1) {
    for (int i = 0; i < times; ++i) b.try_enter().failure();
  }

  manual_clock clock;
  std::vector<circuit_change> changes;
};

TEST_F(circuit_breaker_test, TripsAfterConsecutiveFailures) {
  circuit_breaker breaker(options());
  fail(breaker, 2);
  succeed(breaker);
  fail(breaker, 2);
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  fail(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::open);
  EXPECT_FALSE(breaker.try_enter());
}

TEST_F(circuit_breaker_test, AnExceptionOfOnChangeIsReportedAndChangesNothing) {
  int changed = 0;
  circuit_breaker breaker(options({.name = "mail",
                                   .consecutive_failures = 1,
                                   .on_change = [&](const circuit_change&) {
                                     ++changed;
                                     throw std::runtime_error("log is full");
                                   }}));
  ::testing::internal::CaptureStderr();
  fail(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::open);
  breaker.reset();
  EXPECT_EQ(changed, 2);
  const std::string line = "sluice: on_change of circuit_breaker 'mail' threw: log is full\n";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), line + line);
}

TEST_F(circuit_breaker_test, ARefusalHasTheRemainingTime) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .open_for = 5s}));
  fail(breaker);
  EXPECT_EQ(breaker.try_enter().retry_after(), 5s);
  clock.advance(2s);
  EXPECT_EQ(breaker.try_enter().retry_after(), 3s);
  EXPECT_EQ(breaker.open_for(), 3s);
  EXPECT_EQ(breaker.stats().refused, 2U);
}

TEST_F(circuit_breaker_test, AfterItsTimeItAdmitsTheProbes) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .open_for = 1s, .probes = 2}));
  fail(breaker);
  clock.advance(1s);
  auto first = breaker.try_enter();
  EXPECT_EQ(breaker.state(), circuit_state::half_open);
  auto second = breaker.try_enter();
  auto third = breaker.try_enter();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(third);
  EXPECT_EQ(third.retry_after(), 0s);
  first.success();
  EXPECT_FALSE(breaker.try_enter()) << "two probes are two calls, not two at a time";
  second.success();
  EXPECT_EQ(breaker.state(), circuit_state::closed);
}

TEST_F(circuit_breaker_test, AProbeThatFailsOpensItForLongerEachTime) {
  circuit_breaker breaker(
      options({.consecutive_failures = 1, .open_for = 1s, .open_growth = 3, .open_for_max = 10s}));
  fail(breaker);
  for (const auto expected : {1s, 3s, 9s, 10s, 10s}) {
    EXPECT_EQ(breaker.open_for(), expected);
    clock.advance(expected - 1ns);
    EXPECT_FALSE(breaker.try_enter());
    clock.advance(1ns);
    fail(breaker);
  }
  clock.advance(10s);
  succeed(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  fail(breaker);
  EXPECT_EQ(breaker.open_for(), 1s) << "closing resets the growth";
}

TEST_F(circuit_breaker_test, TripsByShareOfTheLastCallsButNotOnTooFew) {
  circuit_breaker breaker(options({.failure_share = 0.5, .window_calls = 10, .calls_min = 4}));
  fail(breaker, 3);
  EXPECT_EQ(breaker.state(), circuit_state::closed) << "three calls are too few";
  breaker.reset();
  succeed(breaker, 10);
  fail(breaker, 4);
  EXPECT_EQ(breaker.state(), circuit_state::closed) << "4 of the last 10";
  fail(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::open) << "5 of the last 10";
}

TEST_F(circuit_breaker_test, AWindowOfTimeDropsOlderResults) {
  circuit_breaker breaker(options({.failure_share = 0.5, .window_time = 10s, .calls_min = 4}));
  fail(breaker, 3);
  clock.advance(11s);
  fail(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::closed) << "one call in the window";
  clock.advance(5s);
  fail(breaker, 3);
  EXPECT_EQ(breaker.state(), circuit_state::open);
}

TEST_F(circuit_breaker_test, ASlowCallCountsAsAFailure) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .slow_after = 100ms}));
  auto quick = breaker.try_enter();
  clock.advance(100ms - 1ns);
  quick.success();
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  auto slow = breaker.try_enter();
  clock.advance(100ms);
  slow.success();
  EXPECT_EQ(breaker.state(), circuit_state::open);
  EXPECT_EQ(breaker.stats().slow, 1U);
}

TEST_F(circuit_breaker_test, ADroppedPermitIsAFailureAnAbandonedOneIsNothing) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .open_for = 1s}));
  breaker.try_enter().abandon();
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  { const auto dropped = breaker.try_enter(); }
  EXPECT_EQ(breaker.state(), circuit_state::open);
  clock.advance(1s);
  breaker.try_enter().abandon();
  EXPECT_EQ(breaker.state(), circuit_state::half_open);
  EXPECT_TRUE([&] {
    auto again = breaker.try_enter();
    const bool entered = static_cast<bool>(again);
    again.success();
    return entered;
  }()) << "an abandoned probe gives its place back";
  EXPECT_EQ(breaker.state(), circuit_state::closed);
}

TEST_F(circuit_breaker_test, AResultFromBeforeAChangeHasNoEffect) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .open_for = 1s, .probes = 2}));
  auto from_closed = breaker.try_enter();
  auto another = breaker.try_enter();
  fail(breaker);
  clock.advance(1s);
  auto probe = breaker.try_enter();
  from_closed.failure();
  EXPECT_EQ(breaker.state(), circuit_state::half_open);
  another.success();
  probe.success();
  EXPECT_EQ(breaker.state(), circuit_state::half_open) << "one of two probes";
  EXPECT_EQ(breaker.stats().late, 2U);
  succeed(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::closed);
}

TEST_F(circuit_breaker_test, ChangesAreReportedInOrder) {
  circuit_breaker breaker(options({.consecutive_failures = 1, .open_for = 1s}));
  fail(breaker);
  clock.advance(1s);
  succeed(breaker);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].new_state, circuit_state::open);
  EXPECT_EQ(changes[0].open_for, 1s);
  EXPECT_EQ(changes[1].new_state, circuit_state::half_open);
  EXPECT_EQ(changes[2].from, circuit_state::half_open);
  EXPECT_EQ(changes[2].new_state, circuit_state::closed);
}

TEST_F(circuit_breaker_test, OnChangeMayUseTheBreaker) {
  circuit_breaker* self = nullptr;
  std::vector<circuit_state> seen;
  circuit_breaker breaker(
      options({.consecutive_failures = 1, .on_change = [&](const circuit_change& c) {
                 seen.push_back(c.new_state);
                 if (c.new_state == circuit_state::open) self->reset();
               }}));
  self = &breaker;
  fail(breaker);
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  EXPECT_EQ(seen, (std::vector{circuit_state::open, circuit_state::closed}));
}

TEST_F(circuit_breaker_test, CanBeOpenedAndClosedByHand) {
  circuit_breaker breaker(options());
  breaker.trip(std::chrono::nanoseconds::max());
  clock.advance(24h * 365);
  EXPECT_FALSE(breaker.try_enter());
  breaker.reset();
  succeed(breaker);
  EXPECT_EQ(breaker.stats().successes, 1U);
}

// ---- wrapped calls

TEST_F(circuit_breaker_test, WrapsAFunction) {
  circuit_breaker breaker(options({.name = "mail", .consecutive_failures = 2, .open_for = 1s}));
  EXPECT_EQ(breaker.call([] { return 7; }), 7);
  int kept = 1;
  int& same = breaker.call([&]() -> int& { return kept; });
  EXPECT_EQ(&same, &kept);
  breaker.call([] {});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(breaker.call([] { throw std::runtime_error("no"); }), std::runtime_error);
  }
  bool called = false;
  try {
    breaker.call([&] { called = true; });
    FAIL() << "it is open";
  } catch (const refused_error& e) {
    EXPECT_EQ(e.why(), refused_error::reason::open);
    EXPECT_EQ(e.retry_after(), 1s);
    EXPECT_STREQ(e.what(),
                 "sluice: the call was refused by mail: the circuit is open; try again in 1000 ms");
  }
  EXPECT_FALSE(called);
}

TEST_F(circuit_breaker_test, TheUserDecidesWhatCountsAsAFailure) {
  auto o = options({.consecutive_failures = 2});
  o.judge = [](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::invalid_argument&) {
      return circuit_verdict::success;  // it replied: the request was wrong
    } catch (const std::logic_error&) {
      return circuit_verdict::ignored;
    } catch (...) {
      return circuit_verdict::failure;
    }
  };
  circuit_breaker breaker(o);
  const auto throws = [&](auto error) { EXPECT_ANY_THROW(breaker.call([&] { throw error; })); };
  throws(std::runtime_error("1"));
  throws(std::invalid_argument(""));
  throws(std::runtime_error("1 again"));
  throws(std::logic_error(""));
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  throws(7);
  EXPECT_EQ(breaker.state(), circuit_state::open);
  breaker.reset();
  const auto bad = [](int code) { return code >= 500; };
  EXPECT_EQ(breaker.call([] { return 503; }, bad), 503);
  EXPECT_EQ(breaker.call([] { return 404; }, bad), 404);
  EXPECT_EQ(breaker.call([] { return 500; }, bad), 500);
  EXPECT_EQ(breaker.call([] { return 500; }, bad), 500);
  EXPECT_EQ(breaker.state(), circuit_state::open);
}

TEST_F(circuit_breaker_test, WrapsAFunctionThatReturnsAFuture) {
  circuit_breaker breaker(options({.consecutive_failures = 2}));
  promise<int> first;
  auto result = breaker.call([&] { return first.get_future(); });
  EXPECT_EQ(breaker.stats().successes, 0U) << "counted when it completes";
  first.set_value(5);
  EXPECT_EQ(result.get(), 5);
  EXPECT_EQ(breaker.stats().successes, 1U);

  promise<void> second;
  auto failed = breaker.call([&] { return second.get_future(); });
  second.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_THROW(failed.get(), std::runtime_error);
  auto thrown = breaker.call([&]() -> future<int> { throw std::logic_error("at once"); });
  EXPECT_THROW(thrown.get(), std::logic_error);
  auto refused = breaker.call([&]() -> future<int> { return promise<int>().get_future(); });
  EXPECT_THROW(refused.get(), refused_error);
}

TEST_F(circuit_breaker_test, WrapsAFunctionThatReturnsATask) {
  circuit_breaker breaker(options({.consecutive_failures = 2}));
  int calls = 0;
  const auto work = [&calls](int n) -> task<int> {
    ++calls;
    if (n < 0) throw std::runtime_error("no");
    co_return n;
  };
  auto later = breaker.call([&] { return work(3); });
  EXPECT_EQ(calls, 0) << "enters when it is awaited";
  EXPECT_EQ(sync_wait(std::move(later)), 3);
  const auto nothing = []() -> task<> { co_return; };
  sync_wait(breaker.call([&] { return nothing(); }));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(sync_wait(breaker.call([&] { return work(-1); })), std::runtime_error);
  }
  EXPECT_THROW(sync_wait(breaker.call([&] { return work(1); })), refused_error);
  EXPECT_EQ(calls, 3);
}

TEST_F(circuit_breaker_test, ACancelledCallIsIgnored) {
  circuit_breaker breaker(options({.consecutive_failures = 1}));
  EXPECT_THROW(breaker.call([] { throw future_error(future_error::cancelled); }), future_error);
  EXPECT_EQ(breaker.state(), circuit_state::closed);
  EXPECT_EQ(breaker.stats().abandoned, 1U);
  EXPECT_THROW(breaker.call([] { throw future_error(future_error::timed_out); }), future_error);
  EXPECT_EQ(breaker.state(), circuit_state::open);
}

// ---- against a model

// The same rules without optimization: every result of the current state is kept with its time, and
// all counts are computed from them each time.
class breaker_model {
 public:
  explicit breaker_model(const circuit_breaker_options& o, time_point start)
      : o_(o), start_(start), open_for_(o.open_for) {}

  // Returns the number of the period in which it began; empty if refused.
  std::optional<int> enter(time_point now) {
    if (state_ == circuit_state::open && now >= until_) change(circuit_state::half_open);
    if (state_ == circuit_state::open) return std::nullopt;
    if (state_ == circuit_state::half_open && probes_ == o_.probes) return std::nullopt;
    probes_ += state_ == circuit_state::half_open ? 1 : 0;
    return period_;
  }
  void leave(int period, time_point began, time_point now, circuit_verdict v) {
    if (period != period_) return;
    if (v == circuit_verdict::ignored) {
      probes_ -= state_ == circuit_state::half_open ? 1 : 0;
      return;
    }
    const bool slow = o_.slow_after > 0ns && now - began >= o_.slow_after;
    results_.push_back({now, v == circuit_verdict::failure || slow});
    if (state_ == circuit_state::half_open) {
      if (results_.back().failed) return open(now);
      if (results_.size() == o_.probes) {
        open_for_ = o_.open_for;
        change(circuit_state::closed);
      }
    } else if (results_.back().failed && must_trip(now)) {
      open(now);
    }
  }
  circuit_state state() const { return state_; }
  std::chrono::nanoseconds left(time_point now) const {
    return state_ == circuit_state::open ? std::max(until_ - now, 0ns) : 0ns;
  }

 private:
  struct result {
    time_point at;
    bool failed;
  };
  void change(circuit_state new_state) {
    state_ = new_state;
    ++period_;
    probes_ = 0;
    results_.clear();
  }
  void open(time_point now) {
    change(circuit_state::open);
    until_ = now + open_for_;
    open_for_ = std::min<std::chrono::nanoseconds>(
        o_.open_for_max, std::chrono::nanoseconds(static_cast<std::int64_t>(
                             static_cast<double>(open_for_.count()) * o_.open_growth)));
  }
  bool must_trip(time_point now) const {
    std::uint32_t row = 0;
    for (auto r = results_.rbegin(); r != results_.rend() && r->failed; ++r) ++row;
    if (o_.consecutive_failures > 0 && row >= o_.consecutive_failures) return true;
    if (o_.failure_share == 0) return false;
    const auto slice = [&](time_point t) { return (t - start_) / (o_.window_time / 10); };
    std::size_t calls = 0;
    std::size_t failures = 0;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const bool inside = o_.window_time > 0ns ? slice(results_[i].at) > slice(now) - 10
                                               : i + o_.window_calls >= results_.size();
      if (inside) ++calls;
      if (inside && results_[i].failed) ++failures;
    }
    return calls >= o_.calls_min &&
           static_cast<double>(failures) >= o_.failure_share * static_cast<double>(calls);
  }

  const circuit_breaker_options o_;
  const time_point start_;
  std::chrono::nanoseconds open_for_;
  circuit_state state_ = circuit_state::closed;
  int period_ = 0;
  std::uint32_t probes_ = 0;
  time_point until_{};
  std::vector<result> results_;
};

TEST_F(circuit_breaker_test, AgreesWithTheModel) {
  stress run;
  for (std::uint64_t round = 0; round < 60; ++round) {
    auto choose = run.generator(round);
    circuit_breaker_options o{.clock = &clock};
    if (choose.below(2) == 0) o.consecutive_failures = 1 + choose.below(6);
    if (o.consecutive_failures == 0 || choose.below(2) == 0) {
      o.failure_share = 0.1 + choose.below(90) / 100.0;
    }
    o.window_calls = 1 + choose.below(30);
    o.calls_min = 1 + choose.below(o.window_calls);
    if (choose.below(2) == 0) o.window_time = std::chrono::milliseconds(10 + choose.below(2'000));
    if (choose.below(2) == 0) o.slow_after = std::chrono::milliseconds(1 + choose.below(200));
    o.open_for = std::chrono::milliseconds(1 + choose.below(500));
    o.open_for_max = o.open_for + std::chrono::milliseconds(choose.below(5'000));
    o.open_growth = 1 + choose.below(30) / 10.0;
    o.probes = 1 + choose.below(4);
    const auto failing = choose.below(100);

    circuit_breaker breaker(o);
    breaker_model model(o, clock.now());
    struct call {
      circuit_breaker::permit permit;
      int period;
      time_point began;
    };
    std::deque<call> under_way;
    const auto end_one = [&] {
      auto one = std::move(under_way.front());
      under_way.pop_front();
      const auto dice = choose.below(100);
      const auto v = dice < failing          ? circuit_verdict::failure
                     : choose.below(20) == 0 ? circuit_verdict::ignored
                                             : circuit_verdict::success;
      one.permit.end(v);
      model.leave(one.period, one.began, clock.now(), v);
    };
    for (int i = 0; i < 600; ++i) {
      clock.advance(std::chrono::milliseconds(choose.below(20)));
      if (!under_way.empty() && (under_way.size() > 5 || choose.below(2) == 0)) {
        end_one();
      } else {
        auto entered = breaker.try_enter();
        const auto expected = model.enter(clock.now());
        ASSERT_EQ(static_cast<bool>(entered), expected.has_value()) << round << ' ' << i;
        if (!entered) {
          ASSERT_EQ(entered.retry_after(), model.left(clock.now()));
        } else {
          under_way.push_back({std::move(entered), *expected, clock.now()});
        }
      }
      ASSERT_EQ(breaker.state(), model.state()) << "round " << round << " step " << i;
      ASSERT_EQ(breaker.open_for(), model.left(clock.now()));
      run.did();
    }
    while (!under_way.empty()) end_one();
  }
}

TEST(circuit_breaker_stress_test, ThreadsLoseNoResultAndTheChangesFormAChain) {
  stress run;
  std::mutex mutex;
  std::vector<circuit_change> changes;  // protected by mutex
  circuit_breaker breaker({.consecutive_failures = 3,
                           .failure_share = 0.5,
                           .window_calls = 20,
                           .open_for = 20us,
                           .open_for_max = 100us,
                           .probes = 2,
                           .on_change = [&](const circuit_change& c) {
                             const std::lock_guard hold(mutex);
                             changes.push_back(c);
                           }});
  std::atomic<std::uint64_t> good{0};
  std::atomic<std::uint64_t> bad{0};
  std::atomic<std::uint64_t> refused{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 3'000; ++i) {
          auto entered = breaker.try_enter();
          if (!entered) {
            ++refused;
          } else if (choose.below(3) == 0) {
            ++bad;
            entered.failure();
          } else {
            ++good;
            entered.success();
          }
        }
        run.did(3'000);
      });
    }
  }
  const auto stats = breaker.stats();
  EXPECT_EQ(stats.successes, good.load());
  EXPECT_EQ(stats.failures, bad.load());
  EXPECT_EQ(stats.refused, refused.load());
  auto state = circuit_state::closed;
  for (const auto& c : changes) {
    ASSERT_EQ(c.from, state);
    ASSERT_NE(c.new_state, state);
    state = c.new_state;
  }
  EXPECT_EQ(breaker.state(), state);
}

TEST(circuit_breaker_DeathTest, InvalidOptionsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(circuit_breaker({}), "sluice::circuit_breaker.*so that it can trip");
  EXPECT_DEATH(circuit_breaker({.failure_share = 1.5}), "between 0 and 1");
  EXPECT_DEATH(circuit_breaker({.failure_share = .5, .window_calls = 5}), "holds calls_min");
  EXPECT_DEATH(circuit_breaker({.consecutive_failures = 1, .open_for = 0s}), "longer than zero");
  EXPECT_DEATH(circuit_breaker({.consecutive_failures = 1, .open_growth = 0.5}), "at least 1");
  EXPECT_DEATH(circuit_breaker({.consecutive_failures = 1, .probes = 0}), "at least one probe");
}

TEST(circuit_breaker_DeathTest, AResultWithoutAPermitIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        circuit_breaker breaker({.consecutive_failures = 1});
        auto p = breaker.try_enter();
        p.success();
        p.success();
      },
      "granted and has not been used");
  EXPECT_DEATH(
      {
        auto* breaker = new circuit_breaker({.name = "mail", .consecutive_failures = 1});
        auto p = breaker->try_enter();
        delete breaker;
      },
      "circuit_breaker.*mail.*no open permit");
}

}  // namespace
}  // namespace sluice::testing::circuit_breaker_test
