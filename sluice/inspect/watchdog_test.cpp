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

// A watchdog that scans when the test calls it, with the test's clock.
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
      // A stopped thread may still acquire the lock that the other releases.
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

TEST_F(watchdog_test, ReportsADeadlockOnceWhenItIsOldEnough) {
  inspect::watchdog dog(options());
  const two_stuck stuck;
  dog.scan();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].type, report::kind::deadlock);
  EXPECT_NE(reports()[0].text.find("mutex left"), std::string::npos);
  time_.advance(1s);
  dog.scan();
  EXPECT_EQ(reports().size(), 1U);
}

// A party that could end the deadlock appears, does not, and leaves.
TEST_F(watchdog_test, ReportsADeadlockOnceAlsoIfAScanMissedIt) {
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
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  {
    event go;
    event seen;
    std::jthread carl([&] {
      wait_report::used(&rows, wait_report::side::consumer);
      seen.set();
      go.wait();
    });
    seen.wait();
    EXPECT_TRUE(inspect::find_deadlocks().empty());
    dog.scan();
    go.set();
  }
  eventually([] { return inspect::find_deadlocks().size() == 1; });  // carl has ended
  dog.scan();
  EXPECT_EQ(reports().size(), 1U) << reports().back().text;
  stop.request_stop();
}

TEST_F(watchdog_test, ReportsAnotherDeadlockOfTheSameParties) {
  inspect::watchdog dog(options());
  for (std::size_t round = 1; round <= 2; ++round) {
    const two_stuck stuck;
    time_.advance(1s);
    dog.scan();
    EXPECT_EQ(reports().size(), round);
  }
}

TEST_F(watchdog_test, ADeadlockThatPersistsIsNotReportedAgainAfterManyOthers) {
  auto o = options();
  o.held_after = 24h;
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  constexpr std::size_t others = 100;
  for (std::size_t i = 0; i < others; ++i) {
    const two_stuck another;
    time_.advance(1s);
    dog.scan();
  }
  dog.scan();
  EXPECT_EQ(reports().size(), 1 + others);
}

TEST_F(watchdog_test, PassesTheDeadlockToACallback) {
  auto o = options();
  std::vector<inspect::deadlock> found;
  o.deadlock_found = [&](const inspect::deadlock& d) { found.push_back(d); };
  inspect::watchdog dog(o);
  const two_stuck stuck;
  time_.advance(1s);
  dog.scan();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), 2U);
}

TEST_F(watchdog_test, ScansEveryPeriod) {
  auto o = options();
  o.period = 1s;
  inspect::watchdog dog(o);
  const two_stuck stuck;
  eventually([&] { return time_.pending() == 1; });
  time_.advance(1s);
  eventually([&] { return !reports().empty(); });
}

TEST_F(watchdog_test, ReportsAQueueWithoutAConsumer) {
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  inspect::watchdog dog(options());
  const auto watched = dog.watch(q);
  time_.advance(20s);
  dog.scan();
  EXPECT_TRUE(reports().empty());  // it has nothing to do
  ASSERT_TRUE(q.push(1));
  dog.scan();
  time_.advance(9s);
  dog.scan();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].type, report::kind::stall);
  EXPECT_NE(reports()[0].text.find("queue emails"), std::string::npos);
  dog.scan();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, ProgressRestartsTheTime) {
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  inspect::watchdog dog(options());
  const auto watched = dog.watch(q);
  ASSERT_TRUE(q.push(1));
  ASSERT_TRUE(q.push(2));
  dog.scan();
  for (int i = 0; i < 2; ++i) {
    time_.advance(9s);
    if (i == 0) {
      ASSERT_TRUE(q.pop());
    }
    dog.scan();
  }
  EXPECT_TRUE(reports().empty());
}

TEST_F(watchdog_test, ReportsAPoolThatFinishesNothing) {
  event go;
  event begun;
  thread_pool pool({.core = 1, .capacity = 4, .name = "thumbs"});
  inspect::watchdog dog(options());
  {
    const auto watched = dog.watch(pool);
    ASSERT_TRUE(pool.submit([&] {
      begun.set();
      go.wait();
    }));
    begun.wait();
    dog.scan();
    time_.advance(10s);
    dog.scan();
    ASSERT_EQ(reports().size(), 1U);
    EXPECT_NE(reports()[0].text.find("pool thumbs"), std::string::npos);
  }
  go.set();
}

TEST_F(watchdog_test, AnEndedRegistrationIsNotPolledAgain) {
  inspect::watchdog dog(options());
  int asked = 0;
  {
    const auto watched = dog.watch("x", [&] {
      ++asked;
      return inspect::progress{};
    });
    dog.scan();
    EXPECT_EQ(asked, 1);
  }
  dog.scan();
  EXPECT_EQ(asked, 1);
}

TEST_F(watchdog_test, ReportsALongHeldLockOnce) {
  inspect::watchdog dog(options());
  mutex m(named("ledger"));
  const std::lock_guard hold(m);
  time_.advance(4s);
  dog.scan();
  EXPECT_TRUE(reports().empty());
  time_.advance(1s);
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].type, report::kind::long_hold);
  EXPECT_NE(reports()[0].text.find("mutex ledger"), std::string::npos);
  dog.scan();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, PrintsAllWaitsOnTheSignal) {
  auto o = options();
  o.print_on_signal = SIGUSR1;
  inspect::watchdog dog(o);
  event never(named("godot"));
  std::stop_source stop;
  std::jthread other([&] { EXPECT_FALSE(never.wait(stop.get_token())); });
  until_waited_for(&never);
  ::raise(SIGUSR1);
  eventually([&] { return reports().size() == 1; });
  EXPECT_EQ(reports()[0].type, report::kind::overview);
  EXPECT_NE(reports()[0].text.find("event godot"), std::string::npos);
  stop.request_stop();
}

TEST_F(watchdog_test, OnReportMayCallTheWatchdog) {
  using registration = inspect::watchdog::registration;
  bounded_queue<int> q({.capacity = 4, .name = "emails"});
  ASSERT_TRUE(q.push(1));
  std::optional<inspect::watchdog> dog;
  std::optional<registration> first;
  std::optional<registration> second;
  std::vector<report::kind> kinds;
  int inside = 0;
  auto o = options();
  o.on_report = [&](const report& r) {
    EXPECT_EQ(++inside, 1);  // one at a time, also when it is the same thread
    kinds.push_back(r.type);
    if (r.type == report::kind::stall) {
      first.reset();
      second.emplace(dog->watch(q));
      dog->print();
      dog->scan();
    }
    --inside;
  };
  dog.emplace(o);
  first.emplace(dog->watch(q));
  dog->scan();
  time_.advance(10s);
  dog->scan();
  EXPECT_EQ(kinds, (std::vector{report::kind::stall, report::kind::overview}));
  second.reset();
}

TEST_F(watchdog_test, ACallbackThatThrowsIsReportedAndTheNextScanReports) {
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
  dog.scan();
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
  dog->scan();
  ASSERT_EQ(reports().size(), 2U);
  EXPECT_EQ(reports()[0].type, report::kind::deadlock);
  EXPECT_EQ(reports()[1].type, report::kind::overview);
}

TEST_F(watchdog_test, AGetProgressThatDoesNotReturnDoesNotBlockPrint) {
  auto o = options();
  o.print_on_signal = SIGUSR1;
  inspect::watchdog dog(o);
  event asked;
  event answer;
  const auto watched = dog.watch("slow", [&] {
    asked.set();
    answer.wait();
    return inspect::progress{};
  });
  std::jthread looks([&] { dog.scan(); });
  asked.wait();
  dog.print();
  EXPECT_EQ(reports().size(), 1U);
  ::raise(SIGUSR1);
  eventually([&] { return reports().size() == 2; });
  answer.set();
}

TEST_F(watchdog_test, ADeadlockIsReportedBeforeGetProgressIsCalled) {
  inspect::watchdog dog(options());
  const two_stuck stuck;
  time_.advance(1s);
  bool was_reported = false;
  const auto watched = dog.watch("slow", [&] {
    was_reported = reports().size() == 1;
    return inspect::progress{};
  });
  dog.scan();
  EXPECT_TRUE(was_reported);
}

TEST_F(watchdog_test, EndingARegistrationWaitsForItsGetProgress) {
  inspect::watchdog dog(options());
  event asked;
  event answer;
  atomic<bool> answered{false};
  std::optional<inspect::watchdog::registration> watched(dog.watch("slow", [&] {
    asked.set();
    answer.wait();
    answered.store(true);
    return inspect::progress{};
  }));
  std::jthread looks([&] { dog.scan(); });
  asked.wait();
  std::jthread forgets([&] {
    watched.reset();
    EXPECT_TRUE(answered.load());
  });
  eventually([] {
    const auto all = inspect::waits();
    return std::ranges::any_of(all, [](const auto& w) { return w.on[0].type == "condition"; });
  });
  answer.set();
}

TEST_F(watchdog_test, AGetProgressMayCallTheWatchdogAndEndItsRegistration) {
  inspect::watchdog dog(options());
  std::optional<inspect::watchdog::registration> me;
  std::optional<inspect::watchdog::registration> other;
  int asked = 0;
  me.emplace(dog.watch("me", [&] {
    ++asked;
    dog.scan();
    dog.print();
    other.emplace(dog.watch("other", [] { return inspect::progress{}; }));
    me.reset();
    return inspect::progress{};
  }));
  dog.scan();
  dog.scan();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, TurnsInspectOnForItsLife) {
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
  dog.scan();
  EXPECT_EQ(reports().size(), 1U);
}

TEST_F(watchdog_test, AnUncertainDeadlockIsReportedAndDoesNotAbort) {
  auto o = options();
  o.on_deadlock = inspect::deadlock_action::abort;
  inspect::watchdog dog(o);
  bounded_queue<int> q({.capacity = 1, .name = "q"});
  mutex m(named("m"));
  barrier both(2);
  std::jthread ann([&] {
    EXPECT_TRUE(q.push(0));
    EXPECT_TRUE(q.pop());  // recorded as a consumer
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
  dog.scan();
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0].type, report::kind::deadlock);
  q.close();
}

TEST(watchdog_DeathTest, AbortsAfterTheReport) {
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
        dog.scan();
      },
      "deadlock of 1 party");
}

}  // namespace
}  // namespace sluice::testing::watchdog_test
