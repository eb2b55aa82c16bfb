#pragma once

// Tests of the guarantees of every waiting call: it waits, it is released, and a deadline or a
// stop_token ends it without taking anything, on threads and in coroutines; asleep, it costs no
// CPU.
//
// A primitive joins with an adapter `Gate` that makes it look like a gate. The gate is shut when
// it is made; `open()`, from any thread, opens it for good:
//
//   status wait(const wait_limits&)    on this thread; gives back the permit it took
//   template <class Where> static detached await(Gate&, Where&, wait_limits, ending&)
//                                      the same in a coroutine; calls `ending.set` at the end
//   void open()
//   std::size_t waiting()              the number of waiters
//   opened_by_another_thread           a member of that name: `open` only asks another thread
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(event, waiting_suite, event_gate);

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/cpu_time.hpp"
#include "sluice/sync/testing/stress.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::testing {

// Passed in place of a manual_sink: the coroutine is resumed by the thread that ends its wait.
struct nowhere {};

// A thread that waits; `result` joins it.
template <class Gate>
class waiting_thread {
 public:
  waiting_thread(Gate& gate, wait_limits limits)
      : thread_([this, &gate, limits] { result_ = gate.wait(limits); }) {}
  status result() {
    thread_.join();
    return *result_;
  }

 private:
  std::optional<status> result_;
  std::jthread thread_;
};

template <class Gate>
class waiting_suite : public ::testing::Test {
 protected:
  void until_waiting(std::size_t count) {
    eventually([&] { return gate.waiting() == count; }, "the expected number of waiters");
  }

  Gate gate;
  manual_clock clock;  // advanced only by the tests
  manual_sink sink;
  std::stop_source source;
  nowhere here;
};

TYPED_TEST_SUITE_P(waiting_suite);

TYPED_TEST_P(waiting_suite, AThreadWaitsUntilItOpens) {
  waiting_thread<TypeParam> waits(this->gate, {});
  this->until_waiting(1);
  this->gate.open();
  EXPECT_EQ(waits.result(), status::ok);
  EXPECT_EQ(this->gate.wait({}), status::ok) << "it stays open";
}

TYPED_TEST_P(waiting_suite, OpeningReleasesEveryThread) {
  std::vector<std::unique_ptr<waiting_thread<TypeParam>>> threads;
  for (int i = 0; i < 5; ++i) {
    threads.push_back(std::make_unique<waiting_thread<TypeParam>>(this->gate, wait_limits{}));
  }
  this->until_waiting(5);
  this->gate.open();
  for (auto& each : threads) EXPECT_EQ(each->result(), status::ok);
}

TYPED_TEST_P(waiting_suite, AStopEndsTheWaitOfAThread) {
  waiting_thread<TypeParam> waits(this->gate, {{}, this->source.get_token()});
  this->until_waiting(1);
  this->source.request_stop();
  EXPECT_EQ(waits.result(), status::stopped);
  EXPECT_EQ(this->gate.waiting(), 0U);
  this->gate.open();
  EXPECT_EQ(this->gate.wait({}), status::ok) << "the stopped wait took nothing";
}

TYPED_TEST_P(waiting_suite, ADeadlineEndsTheWaitOfAThread) {
  const auto start = std::chrono::steady_clock::now();
  const auto wait = std::chrono::milliseconds(5);
  EXPECT_EQ(this->gate.wait({deadline::after(wait), {}}), status::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - start, wait) << "never early";
  EXPECT_EQ(this->gate.waiting(), 0U);
  this->gate.open();
  EXPECT_EQ(this->gate.wait({}), status::ok) << "the timed-out wait took nothing";
}

TYPED_TEST_P(waiting_suite, ADeadlineOnAnotherClockEndsTheWaitOfAThread) {
  using namespace std::chrono_literals;
  waiting_thread<TypeParam> waits(this->gate, {deadline::after(1h, this->clock), {}});
  eventually([&] { return this->clock.pending() == 1; });
  this->until_waiting(1);  // some arm the clock before they wait
  this->clock.advance(59min);
  EXPECT_EQ(this->gate.waiting(), 1U);
  this->clock.advance(1min);
  EXPECT_EQ(waits.result(), status::timed_out);
  this->gate.open();
}

TYPED_TEST_P(waiting_suite, AnEarlierStopWinsOverReadiness) {
  this->gate.open();
  this->source.request_stop();
  const wait_limits stopped{{}, this->source.get_token()};
  EXPECT_EQ(this->gate.wait(stopped), status::stopped);
  ending ended;
  TypeParam::await(this->gate, this->here, stopped, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::stopped);
  EXPECT_EQ(this->gate.wait({}), status::ok);
}

TYPED_TEST_P(waiting_suite, ADeadlineThatHasPassedStillTriesOnce) {
  using namespace std::chrono_literals;
  const deadline passed[] = {deadline::after(0s), deadline::after(-1h),
                             deadline::after(std::chrono::nanoseconds::min()),
                             deadline::at(std::chrono::steady_clock::time_point::min())};
  for (const auto& each : passed) {
    EXPECT_EQ(this->gate.wait({each, {}}), status::timed_out);
    ending ended;
    TypeParam::await(this->gate, this->here, {each, {}}, ended);
    eventually([&] { return ended.is_set(); });  // on the clock's thread, or at once
    EXPECT_EQ(ended.result(), status::timed_out);
  }
  this->gate.open();
  for (const auto& each : passed) {
    EXPECT_EQ(this->gate.wait({each, {}}), status::ok);
    ending ended;
    TypeParam::await(this->gate, this->here, {each, {}}, ended);
    ASSERT_TRUE(ended.is_set());
    EXPECT_EQ(ended.result(), status::ok);
  }
}

TYPED_TEST_P(waiting_suite, AnOverlongTimeoutNeverEnds) {
  waiting_thread<TypeParam> waits(this->gate, {deadline::after(std::chrono::hours::max()), {}});
  ending ended;
  TypeParam::await(this->gate, this->here, {deadline::after(std::chrono::hours::max()), {}}, ended);
  this->until_waiting(2);
  this->gate.open();
  EXPECT_EQ(waits.result(), status::ok);
  eventually([&] { return ended.is_set(); });
  EXPECT_EQ(ended.result(), status::ok);
}

TYPED_TEST_P(waiting_suite, ACoroutineResumesOnItsSink) {
  ending ended;
  TypeParam::await(this->gate, this->sink, {}, ended);
  this->until_waiting(1);
  std::jthread([&] { this->gate.open(); }).join();
  // Some need several steps, but every one of them runs here and on no other thread.
  eventually([&] {
    this->sink.run_all();
    return ended.is_set();
  });
  EXPECT_EQ(ended.result(), status::ok);
  EXPECT_EQ(ended.thread(), std::this_thread::get_id());
}

TYPED_TEST_P(waiting_suite, ACoroutineWithoutASinkResumesWhereItsWaitEnded) {
  ending ended;
  TypeParam::await(this->gate, this->here, {}, ended);
  this->until_waiting(1);
  this->gate.open();
  eventually([&] { return ended.is_set(); });
  EXPECT_EQ(ended.result(), status::ok);
  if constexpr (!requires { TypeParam::opened_by_another_thread; }) {
    EXPECT_EQ(ended.thread(), std::this_thread::get_id());
  }
}

TYPED_TEST_P(waiting_suite, AStopEndsTheWaitOfACoroutine) {
  ending ended;
  TypeParam::await(this->gate, this->here, {{}, this->source.get_token()}, ended);
  this->until_waiting(1);
  this->source.request_stop();
  this->gate.open();
  eventually([&] { return ended.is_set(); });
  EXPECT_EQ(ended.result(), status::stopped);
  EXPECT_EQ(this->gate.wait({}), status::ok) << "the stopped wait took nothing";
}

TYPED_TEST_P(waiting_suite, ADeadlineEndsTheWaitOfACoroutine) {
  using namespace std::chrono_literals;
  ending ended;
  ending ended_by_real_clock;
  TypeParam::await(this->gate, this->here, {deadline::after(1h, this->clock), {}}, ended);
  TypeParam::await(this->gate, this->here, {deadline::after(1ms), {}}, ended_by_real_clock);
  eventually([&] { return ended_by_real_clock.is_set(); });
  EXPECT_EQ(ended_by_real_clock.result(), status::timed_out);
  EXPECT_FALSE(ended.is_set());
  this->clock.advance(1h);
  this->gate.open();
  eventually([&] { return ended.is_set(); });
  EXPECT_EQ(ended.result(), status::timed_out);
  EXPECT_EQ(this->gate.wait({}), status::ok) << "the timed-out wait took nothing";
}

TYPED_TEST_P(waiting_suite, ThreadsThatWaitUseNoCpu) {
  using namespace std::chrono_literals;
  std::vector<std::unique_ptr<waiting_thread<TypeParam>>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(std::make_unique<waiting_thread<TypeParam>>(this->gate, wait_limits{}));
  }
  this->until_waiting(8);
  EXPECT_LT(least_cpu_time_while_idle(1ms), 1ms);
  this->gate.open();
  for (auto& each : threads) EXPECT_EQ(each->result(), status::ok);
}

// Opening, deadlines and stops at the same moment: every wait ends exactly once, with one of the
// three, and no waiter stays behind (the primitive's destructor checks).
TYPED_TEST_P(waiting_suite, LimitsThatRaceWithTheOpeningLoseNothing) {
  stress run;
  for (int round = 0; round < 100; ++round) {
    TypeParam shut;
    std::stop_source stop;
    std::vector<ending> coroutines(3);
    std::vector<std::jthread> threads;
    auto choose = run.generator(static_cast<std::uint64_t>(round));
    const auto limits = [&]() -> wait_limits {
      switch (choose.below(3)) {
        case 0:
          return {deadline::after(std::chrono::microseconds(choose.below(200))), {}};
        case 1:
          return {{}, stop.get_token()};
        default:
          return {};
      }
    };
    for (int i = 0; i < 3; ++i) {
      const auto own_limits = limits();
      threads.emplace_back([&shut, own_limits] {
        const auto ended = shut.wait(own_limits);
        EXPECT_TRUE(ended || ended == status::timed_out || ended == status::stopped);
        const bool unlimited = own_limits.deadline.is_never() && !own_limits.stop.stop_possible();
        EXPECT_TRUE(ended || !unlimited);
      });
    }
    for (auto& each : coroutines) TypeParam::await(shut, this->here, limits(), each);
    threads.emplace_back([&stop] { stop.request_stop(); });
    shut.open();
    threads.clear();
    for (auto& each : coroutines) eventually([&] { return each.is_set(); });
    EXPECT_EQ(shut.wait({}), status::ok);
    EXPECT_EQ(shut.waiting(), 0U);
    run.did(7);
  }
}

REGISTER_TYPED_TEST_SUITE_P(waiting_suite, AThreadWaitsUntilItOpens, OpeningReleasesEveryThread,
                            AStopEndsTheWaitOfAThread, ADeadlineEndsTheWaitOfAThread,
                            ADeadlineOnAnotherClockEndsTheWaitOfAThread,
                            AnEarlierStopWinsOverReadiness, ADeadlineThatHasPassedStillTriesOnce,
                            AnOverlongTimeoutNeverEnds, ACoroutineResumesOnItsSink,
                            ACoroutineWithoutASinkResumesWhereItsWaitEnded,
                            AStopEndsTheWaitOfACoroutine, ADeadlineEndsTheWaitOfACoroutine,
                            ThreadsThatWaitUseNoCpu, LimitsThatRaceWithTheOpeningLoseNothing);

}  // namespace sluice::testing
