#include "sluice/inspect/watchdog.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/inspect/testing/looking.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"

namespace sluice::testing::watchdog_test {
namespace {

using namespace std::chrono_literals;
using inspect::report;

// A watchdog that looks when the test says so, by the test's clock.
class watchdog_test : public ::testing::Test {
 protected:
  inspect::watchdog_options options() {
    return {.period = 0s,
            .deadlock_after = 1s,
            .stalled_after = 10s,
            .held_after = 5s,
            .on_report = [this](const report& r) { reports_.lock()->push_back(r); },
            .time = &time_};
  }
  std::vector<report> reports() {
    return reports_.with([](const auto& all) { return all; });
  }
  void clear() { reports_.lock()->clear(); }

  manual_clock time_;
  guarded<std::vector<report>> reports_;
};

// Two threads that wait for each other until they are stopped.
class two_stuck {
 public:
  two_stuck() {
    const auto take = [this](mutex& first, mutex& second) {
      const std::lock_guard hold(first);
      both_.arrive_and_wait();
      // One of the two that are stopped may get what the other lets go of.
      if (second.lock(stop_.get_token())) second.unlock();
    };
    ann_ = std::jthread([this, take] { take(left_, right_); });
    bob_ = std::jthread([this, take] { take(right_, left_); });
    until_waited_for(&left_);
    until_waited_for(&right_);
  }
  ~two_stuck() { stop_.request_stop(); }

 private:
  mutex left_{named("left")};
  mutex right_{named("right")};
  barrier both_{2};
  std::stop_source stop_;
  std::jthread ann_;
  std::jthread bob_;
};

TEST_F(watchdog_test, TellsOfADeadlockOnceWhenItIsOldEnough) {
  inspect::watchdog dog(options());
  const two_stuck stuck;
  dog.look();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].what, report::kind::deadlock);
  EXPECT_NE(reports()[0].text.find("mutex left"), std::string::npos);
  time_.advance(1s);
  dog.look();
  EXPECT_EQ(reports().size(), 1U);
}

// Somebody comes who could help, does not, and goes.
TEST_F(watchdog_test, TellsOfADeadlockOnceAlsoWhenALookHasMissedIt) {
  inspect::watchdog dog(options());
  mutex ledger(named("ledger"));
  bounded_queue<int> rows({.capacity = 1, .name = "rows"});
  barrier both(2);
  std::stop_source stop;
  std::jthread ann([&] {
    EXPECT_TRUE(rows.push(0));
    EXPECT_TRUE(rows.pop());
    both.arrive_and_wait();
    if (ledger.lock(stop.get_token())) ledger.unlock();
  });
  std::jthread bob([&] {
    const std::lock_guard hold(ledger);
    both.arrive_and_wait();
    while (rows.push(1, stop.get_token())) {
    }
  });
  until_waited_for(&ledger);
  until_waited_for(&rows);
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  {
    event go;
    event seen;
    std::jthread carl([&] {
      watch::used(&rows, watch::side::takes);
      seen.set();
      go.wait();
    });
    seen.wait();
    EXPECT_TRUE(inspect::find_deadlocks().empty());
    dog.look();
    go.set();
  }
  eventually([] { return inspect::find_deadlocks().size() == 1; });  // carl is gone
  dog.look();
  EXPECT_EQ(reports().size(), 1U) << reports().back().text;
  stop.request_stop();
}

TEST_F(watchdog_test, TellsOfADeadlockAgainWhenItIsAnotherOfTheSameParties) {
  inspect::watchdog dog(options());
  for (std::size_t round = 1; round <= 2; ++round) {
    const two_stuck stuck;
    time_.advance(1s);
    dog.look();
    EXPECT_EQ(reports().size(), round);
  }
}

TEST_F(watchdog_test, AfterManyOthersOneThatIsStillThereIsNotToldAgain) {
  auto o = options();
  o.held_after = 24h;
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  constexpr std::size_t others = 100;
  for (std::size_t i = 0; i < others; ++i) {
    const two_stuck another;
    time_.advance(1s);
    dog.look();
  }
  dog.look();
  EXPECT_EQ(reports().size(), 1 + others);
}

TEST_F(watchdog_test, HandsTheDeadlockToACallback) {
  auto o = options();
  std::vector<inspect::deadlock> found;
  o.deadlock_found = [&](const inspect::deadlock& d) { found.push_back(d); };
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), 2U);
}

TEST_F(watchdog_test, LooksByItselfEveryPeriod) {
  auto o = options();
  o.period = 1s;
  inspect::watchdog dog(o);
  const two_stuck stuck;
  eventually([&] { return time_.pending() == 1; });
  time_.advance(1s);
  eventually([&] { return !reports().empty(); });
}

TEST_F(watchdog_test, TellsOfAQueueThatNobodyTakesFrom) {
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  inspect::watchdog dog(options());
  const auto looked_after = dog.watch(q);
  time_.advance(20s);
  dog.look();
  EXPECT_TRUE(reports().empty());  // it has nothing to do
  ASSERT_TRUE(q.push(1));
  dog.look();
  time_.advance(9s);
  dog.look();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].what, report::kind::stall);
  EXPECT_NE(reports()[0].text.find("queue emails"), std::string::npos);
  dog.look();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, ProgressStartsTheTimeAnew) {
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  inspect::watchdog dog(options());
  const auto looked_after = dog.watch(q);
  ASSERT_TRUE(q.push(1));
  ASSERT_TRUE(q.push(2));
  dog.look();
  for (int i = 0; i < 2; ++i) {
    time_.advance(9s);
    if (i == 0) {
      ASSERT_TRUE(q.pop());
    }
    dog.look();
  }
  EXPECT_TRUE(reports().empty());
}

TEST_F(watchdog_test, TellsOfAPoolThatFinishesNothing) {
  event go;
  event begun;
  thread_pool pool({.core = 1, .capacity = 4, .name = "thumbs"});
  inspect::watchdog dog(options());
  {
    const auto looked_after = dog.watch(pool);
    ASSERT_TRUE(pool.submit([&] {
      begun.set();
      go.wait();
    }));
    begun.wait();
    dog.look();
    time_.advance(10s);
    dog.look();
    ASSERT_EQ(reports().size(), 1U);
    EXPECT_NE(reports()[0].text.find("pool thumbs"), std::string::npos);
  }
  go.set();
}

TEST_F(watchdog_test, WhatIsNoLongerLookedAfterIsNotAskedAgain) {
  inspect::watchdog dog(options());
  int asked = 0;
  {
    const auto looked_after = dog.watch("x", [&] {
      ++asked;
      return inspect::progress{};
    });
    dog.look();
    EXPECT_EQ(asked, 1);
  }
  dog.look();
  EXPECT_EQ(asked, 1);
}

TEST_F(watchdog_test, TellsOfALockThatIsHeldForLongOnce) {
  inspect::watchdog dog(options());
  mutex m(named("ledger"));
  const std::lock_guard hold(m);
  time_.advance(4s);
  dog.look();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].what, report::kind::long_hold);
  EXPECT_NE(reports()[0].text.find("mutex ledger"), std::string::npos);
  dog.look();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, PrintsWhatWaitsWhenTheSignalComes) {
  auto o = options();
  o.print_on_signal = SIGUSR1;
  inspect::watchdog dog(o);
  event never(named("godot"));
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(never.wait(stop.get_token())); });
  until_waited_for(&never);
  ::raise(SIGUSR1);
  eventually([&] { return reports().size() == 1; });
  EXPECT_EQ(reports()[0].what, report::kind::overview);
  EXPECT_NE(reports()[0].text.find("event godot"), std::string::npos);
  stop.request_stop();
}

TEST_F(watchdog_test, WhatIsToldMayCallTheWatchdog) {
  using looking_after = inspect::watchdog::looking_after;
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  ASSERT_TRUE(q.push(1));
  std::optional<inspect::watchdog> dog;
  std::optional<looking_after> first;
  std::optional<looking_after> second;
  std::vector<report::kind> told;
  int inside = 0;
  auto o = options();
  o.on_report = [&](const report& r) {
    EXPECT_EQ(++inside, 1);  // one at a time, also when it is the same thread
    told.push_back(r.what);
    if (r.what == report::kind::stall) {
      first.reset();
      second.emplace(dog->watch(q));
      dog->print();
      dog->look();
    }
    --inside;
  };
  dog.emplace(o);
  first.emplace(dog->watch(q));
  dog->look();
  time_.advance(10s);
  dog->look();
  EXPECT_EQ(told, (std::vector{report::kind::stall, report::kind::overview}));
  second.reset();
}

TEST_F(watchdog_test, ACallbackThatThrowsIsReportedAndTheNextLookReports) {
  auto o = options();
  int reports = 0;
  o.deadlock_found = [](const inspect::deadlock&) { throw std::runtime_error("no disk"); };
  o.on_report = [&](const report&) {
    ++reports;
    throw std::runtime_error("log is full");
  };
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  ::testing::internal::CaptureStderr();
  dog.look();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: deadlock_found of watchdog threw: no disk\n"
            "sluice: on_report of watchdog threw: log is full\n");
  ::testing::internal::CaptureStderr();
  dog.print();
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_EQ(reports, 2);
}

TEST_F(watchdog_test, TheCallbackOfADeadlockMayCallTheWatchdog) {
  std::optional<inspect::watchdog> dog;
  auto o = options();
  o.deadlock_found = [&](const inspect::deadlock&) { dog->print(); };
  dog.emplace(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog->look();
  ASSERT_EQ(reports().size(), 2U);
  EXPECT_EQ(reports()[0].what, report::kind::deadlock);
  EXPECT_EQ(reports()[1].what, report::kind::overview);
}

TEST_F(watchdog_test, OneThatDoesNotAnswerDoesNotKeepThePrintAway) {
  auto o = options();
  o.print_on_signal = SIGUSR1;
  inspect::watchdog dog(o);
  event asked;
  event answer;
  const auto looked_after = dog.watch("slow", [&] {
    asked.set();
    answer.wait();
    return inspect::progress{};
  });
  std::jthread looks([&] { dog.look(); });
  asked.wait();
  dog.print();
  EXPECT_EQ(reports().size(), 1U);
  ::raise(SIGUSR1);
  eventually([&] { return reports().size() == 2; });
  answer.set();
}

TEST_F(watchdog_test, ADeadlockIsToldBeforeOneThatDoesNotAnswerIsAsked) {
  inspect::watchdog dog(options());
  const two_stuck stuck;
  time_.advance(1s);
  bool told_before = false;
  const auto looked_after = dog.watch("slow", [&] {
    told_before = reports().size() == 1;
    return inspect::progress{};
  });
  dog.look();
  EXPECT_TRUE(told_before);
}

TEST_F(watchdog_test, WhatIsForgottenIsNotBeingAskedAnyMore) {
  inspect::watchdog dog(options());
  event asked;
  event answer;
  atomic<bool> answered{false};
  std::optional<inspect::watchdog::looking_after> looked_after(dog.watch("slow", [&] {
    asked.set();
    answer.wait();
    answered.store(true);
    return inspect::progress{};
  }));
  std::jthread looks([&] { dog.look(); });
  asked.wait();
  std::jthread forgets([&] {
    looked_after.reset();
    EXPECT_TRUE(answered.load());
  });
  eventually([] {
    const auto all = inspect::waits();
    return std::ranges::any_of(all, [](const auto& w) { return w.on[0].type == "condition"; });
  });
  answer.set();
}

TEST_F(watchdog_test, OneThatIsAskedMayCallTheWatchdogAndForgetItself) {
  inspect::watchdog dog(options());
  std::optional<inspect::watchdog::looking_after> me;
  std::optional<inspect::watchdog::looking_after> other;
  int asked = 0;
  me.emplace(dog.watch("me", [&] {
    ++asked;
    dog.look();
    dog.print();
    other.emplace(dog.watch("other", [] { return inspect::progress{}; }));
    me.reset();
    return inspect::progress{};
  }));
  dog.look();
  dog.look();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, TurnsInspectOnForItsOwnLife) {
  EXPECT_FALSE(inspect::is_on());
  {
    const inspect::watchdog dog(options());
    EXPECT_TRUE(inspect::is_on());
  }
  EXPECT_FALSE(inspect::is_on());
}

TEST_F(watchdog_test, LeavesInspectOnWhenItWasOn) {
  const inspect::enabled on;
  { const inspect::watchdog dog(options()); }
  EXPECT_TRUE(inspect::is_on());
}

TEST_F(watchdog_test, ADeadlockThatEndsByItselfDoesNotAbort) {
  auto o = options();
  o.on_deadlock = inspect::deadlock_action::abort;
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog.look();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, ADeadlockThatIsNotCertainIsToldAndDoesNotAbort) {
  auto o = options();
  o.on_deadlock = inspect::deadlock_action::abort;
  inspect::watchdog dog(o);
  bounded_queue<int> q({.capacity = 1, .name = "q"});
  mutex m(named("m"));
  barrier both(2);
  std::jthread ann([&] {
    EXPECT_TRUE(q.push(0));
    EXPECT_TRUE(q.pop());  // known to take
    both.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  std::jthread bob([&] {
    const std::lock_guard hold(m);
    both.arrive_and_wait();
    while (q.push(1)) {
    }
  });
  until_waited_for(&m);
  until_waited_for(&q);
  time_.advance(1s);
  dog.look();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].what, report::kind::deadlock);
  q.close();
}

TEST(watchdog_DeathTest, AbortsAfterItHasTold) {
  EXPECT_DEATH(
      {
        inspect::watchdog dog(
            {.period = 0s, .deadlock_after = 0s, .on_deadlock = inspect::deadlock_action::abort});
        semaphore slots(1, named("slots"));
        std::jthread ann([&] {
          slots.acquire();
          slots.acquire();
        });
        until_waited_for(&slots);
        dog.look();
      },
      "deadlock of 1 party");
}

}  // namespace
}  // namespace sluice::testing::watchdog_test
