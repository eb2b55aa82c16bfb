#include "sluice/sync/barrier.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::barrier_test {
namespace {

using namespace std::chrono_literals;

// Shut: one of two has arrived. All waits use its token.
class barrier_gate {
 public:
  status wait(const wait_limits& limits) { return barrier_.wait(token_, limits); }
  template <class Where>
  static detached await(barrier_gate& gate, Where&, wait_limits limits, ending& ended) {
    ended.set(co_await gate.barrier_.async_wait(gate.token_, std::move(limits)));
  }
  void open() { (void)barrier_.arrive(); }
  std::size_t waiting() const { return barrier_.waiting(); }

 private:
  barrier barrier_{2};
  barrier::arrival_token token_ = barrier_.arrive();
};

INSTANTIATE_TYPED_TEST_SUITE_P(barrier, waiting_suite, barrier_gate);

TEST(barrier_test, NoRoundStartsBeforeAllHaveEndedTheLastOne) {
  stress run;
  constexpr int threads = 4;
  constexpr int rounds = 500;
  int done[threads] = {};  // no atomics: the barrier must be enough
  int completions = 0;
  barrier step(threads, [&] { ++completions; });
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) {
          ++done[t];
          step.arrive_and_wait();
          for (const int each : done) EXPECT_EQ(each, round + 1);
          EXPECT_EQ(completions, 2 * round + 1);
          step.arrive_and_wait();  // no thread continues before all have checked
        }
        run.did(2 * rounds);
      });
    }
  }
  EXPECT_EQ(completions, 2 * rounds);
}

TEST(barrier_test, TheCompletionRunsOnTheLastArrivalBeforeAnyRelease) {
  std::thread::id ran_on;
  std::atomic<bool> through{false};
  bool seen_through = true;
  barrier step(2, [&] {
    ran_on = std::this_thread::get_id();
    seen_through = through;
  });
  std::jthread first([&] {
    step.arrive_and_wait();
    through = true;
  });
  eventually([&] { return step.waiting() == 1; });
  (void)step.arrive();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_FALSE(seen_through);
}

TEST(barrier_test, ATokenBelongsToItsPhase) {
  barrier step(2);
  const auto first = step.arrive();
  EXPECT_FALSE(step.try_wait(first));
  const auto last = step.arrive();
  EXPECT_TRUE(step.try_wait(first));
  EXPECT_TRUE(step.try_wait(last));
  const auto next = step.arrive();
  EXPECT_FALSE(step.try_wait(next));
  EXPECT_TRUE(step.try_wait(first));
  step.wait(first);
  (void)step.arrive(1);
  EXPECT_EQ(step.wait(first, -1s), status::ok) << "however many phases have passed";
  EXPECT_EQ(step.wait(next, std::chrono::system_clock::now()), status::ok);
}

TEST(barrier_test, AnArrivalCountsHoweverItsWaitEnds) {
  int completions = 0;
  barrier step(4, [&] { ++completions; });
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(step.arrive_and_wait(source.get_token()), status::stopped);
  EXPECT_EQ(step.arrive_and_wait(1ms), status::timed_out);
  ending ended;
  [](barrier& b, wait_limits stopped, ending& out) -> detached {
    out.set(co_await b.async_arrive_and_wait(stopped));
  }(step, {{}, source.get_token()}, ended);
  EXPECT_TRUE(ended.is_set() && ended.result() == status::stopped);
  const auto token = step.arrive();
  EXPECT_TRUE(step.try_wait(token)) << "the three that gave up are counted";
  EXPECT_EQ(completions, 1);
}

TEST(barrier_test, ATokenWhoseWaitEndedCanBeWaitedWithAgain) {
  barrier step(2);
  const auto token = step.arrive();
  EXPECT_EQ(step.wait(token, 1ms), status::timed_out);
  std::jthread last([&] { (void)step.arrive(); });
  EXPECT_EQ(step.wait(token, std::stop_token{}), status::ok);
}

TEST(barrier_test, AfterADropFewerArrivalsAreExpected) {
  int completions = 0;
  barrier step(3, [&] { ++completions; });
  step.arrive_and_drop();
  (void)step.arrive(2);
  EXPECT_EQ(completions, 1);
  (void)step.arrive(2);
  EXPECT_EQ(completions, 2) << "two arrivals are enough now";
  step.arrive_and_drop();
  step.arrive_and_drop();
  EXPECT_EQ(completions, 3) << "dropped arrivals still complete their phase";
}

TEST(barrier_test, CoroutinesAndThreadsMeet) {
  barrier step(3);
  ending ended;
  [](barrier& b, ending& out) -> detached { out.set(co_await b.async_arrive_and_wait()); }(step,
                                                                                           ended);
  std::jthread thread([&] { step.arrive_and_wait(); });
  eventually([&] { return step.waiting() == 2; });
  EXPECT_FALSE(ended.is_set());
  step.arrive_and_wait();
  EXPECT_TRUE(ended.is_set());
}

TEST(barrier_test, WaitsThatGiveUpDoNotDisturbTheRounds) {
  stress run;
  constexpr int rounds = 1'000;
  barrier step(3);
  std::vector<std::jthread> pool;
  for (int t = 0; t < 3; ++t) {
    pool.emplace_back([&, t] {
      auto choose = run.generator(static_cast<std::uint64_t>(t));
      for (int round = 0; round < rounds; ++round) {
        const auto token = step.arrive();
        while (!step.wait(token, std::chrono::microseconds(choose.below(20)))) run.did();
        run.did();
      }
    });
  }
}

TEST(barrier_DeathTest, InvalidCountsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(barrier(-1), "sluice::barrier.*expect at least one arrival");
  EXPECT_DEATH(barrier(0), "sluice::barrier.*expect at least one arrival");
  EXPECT_DEATH((void)barrier(2).arrive(-1), "sluice::barrier.*at least one arrival");
  EXPECT_DEATH((void)barrier(2).arrive(3), "sluice::barrier.*at most the expected arrivals");
}

TEST(barrier_test, ACompletionThatThrowsIsReportedAndThePhaseEnds) {
  barrier step(1, [] { throw std::runtime_error("log is full"); });
  ::testing::internal::CaptureStderr();
  step.arrive_and_wait();
  step.arrive_and_wait();
  const std::string line = "sluice: the completion of barrier threw: log is full\n";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), line + line);
}

TEST(barrier_DeathTest, ArrivingFromTheCompletionIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        barrier* self = nullptr;
        barrier step(1, [&self] { (void)self->arrive(); });
        self = &step;
        (void)step.arrive();
      },
      "sluice::barrier.*at most the expected arrivals");
}

TEST(barrier_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const b = new barrier(2);
        std::jthread waits([b] { b->arrive_and_wait(); });
        eventually([&] { return b->waiting() == 1; });
        delete b;
      },
      "sluice::barrier.*no waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::barrier_test
