#include "sluice/sync/condition.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::condition_test {
namespace {

using namespace std::chrono_literals;

// Shut until a flag under the lock is set.
template <class Hold>
class condition_gate {
 public:
  status wait(const wait_limits& limits) {
    Hold hold(lock_);
    const auto ended = condition_.wait(
        hold, [this] { return open_; }, limits);
    EXPECT_TRUE(hold.owns_lock());
    return ended;
  }
  template <class Where>
  static detached await(condition_gate& gate, Where&, wait_limits limits, ending& ended) {
    status result = status::ok;
    {
      Hold hold(gate.lock_);  // nothing is awaited while this thread holds it
      result = co_await gate.condition_.async_wait(
          hold, [&gate] { return gate.open_; }, std::move(limits));
      EXPECT_TRUE(hold.owns_lock());
    }
    ended.set(result);
  }
  void open() {
    {
      const std::lock_guard hold(lock_);
      open_ = true;
    }
    condition_.notify_all();
  }
  std::size_t waiting() const { return condition_.waiting(); }

 private:
  typename Hold::mutex_type lock_;
  condition condition_;
  bool open_ = false;  // protected by lock_
};

using gates = ::testing::Types<
    condition_gate<std::unique_lock<mutex>>, condition_gate<std::unique_lock<fair_mutex>>,
    condition_gate<std::unique_lock<shared_mutex>>, condition_gate<std::shared_lock<shared_mutex>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(condition, waiting_suite, gates);

class condition_test : public ::testing::Test {
 public:  // also to coroutines, which are not members
  void until_waiting(std::size_t count) {
    eventually([&] { return changed.waiting() == count; });
  }
  void set(int new_value) {
    const std::lock_guard hold(lock);
    value = new_value;
  }

  mutex lock;
  condition changed;
  int value = 0;  // protected by lock
};

TEST_F(condition_test, ATruePredicateDoesNotWait) {
  std::unique_lock hold(lock);
  changed.wait(hold, [] { return true; });
  EXPECT_EQ(changed.wait_for(hold, -1s, [] { return true; }), status::ok);
  EXPECT_EQ(changed.wait_until(hold, std::chrono::system_clock::now(), [] { return true; }),
            status::ok);
  EXPECT_EQ(changed.wait(
                hold, [] { return true; }, std::stop_token{}),
            status::ok);
  EXPECT_TRUE(hold.owns_lock());
}

TEST_F(condition_test, AnEarlierStopSkipsThePredicate) {
  std::stop_source source;
  source.request_stop();
  std::unique_lock hold(lock);
  const auto asked = [] {
    ADD_FAILURE() << "the predicate ran";
    return true;
  };
  EXPECT_EQ(changed.wait(hold, asked, source.get_token()), status::stopped);
}

TEST_F(condition_test, ANotificationThatLeavesThePredicateFalseDoesNotEndTheWait) {
  int asked = 0;
  std::jthread waits([&] {
    std::unique_lock hold(lock);
    changed.wait(hold, [&] {
      ++asked;
      return value == 2;
    });
  });
  until_waiting(1);
  set(1);
  changed.notify_one();
  eventually([&] {
    const std::lock_guard hold(lock);
    return asked == 2;
  });
  until_waiting(1);
  set(2);
  changed.notify_one();
  waits.join();
  EXPECT_EQ(asked, 3);
}

TEST_F(condition_test, NotifyOneWakesTheLongestWaiter) {
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      std::unique_lock hold(lock);
      const auto before = value;
      changed.wait(hold, [&] { return value != before; });
      order.push_back(i);
    });
    until_waiting(static_cast<std::size_t>(i) + 1);
  }
  set(1);
  for (std::size_t i = 1; i <= 5; ++i) {
    changed.notify_one();
    eventually([&] {
      const std::lock_guard hold(lock);
      return order.size() == i;
    });
    EXPECT_EQ(changed.waiting(), 5 - i) << "exactly one";
  }
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(condition_test, NotifyAllWakesTheWaitersOneAfterTheOther) {
  // Each is woken by its predecessor, once that has the lock: so while the lock is held, only the
  // first has been woken, and the others still sleep.
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      std::unique_lock hold(lock);
      changed.wait(hold, [&] { return value == 1; });
      order.push_back(i);
    });
    until_waiting(static_cast<std::size_t>(i) + 1);
  }
  {
    const std::lock_guard hold(lock);
    value = 1;
    changed.notify_all();
    EXPECT_EQ(changed.waiting(), 0U) << "all are notified at once";
    eventually([&] { return lock.waiting() == 1; });
    EXPECT_EQ(lock.waiting(), 1U) << "but they do not contend for the lock";
  }
  threads.clear();
  EXPECT_EQ(order.size(), 5U);
}

TEST_F(condition_test, ANotifyOneAfterANotifyAllIsForALaterWaiter) {
  // The first two were notified by notify_all and are not woken yet. They must not take the
  // notification of the third, which joined afterwards.
  std::atomic<int> first_two{0};
  std::atomic<bool> third{false};
  std::vector<std::jthread> threads;
  const auto tickets = [&] { return value > 0 ? value-- > 0 : false; };
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      std::unique_lock hold(lock);
      changed.wait(hold, tickets);
      ++first_two;
    });
  }
  until_waiting(2);
  {
    const std::lock_guard hold(lock);
    value = 2;
    changed.notify_all();
    EXPECT_EQ(changed.waiting(), 0U);
  }
  threads.emplace_back([&] {
    std::unique_lock hold(lock);
    changed.wait(hold, tickets);
    third = true;
  });
  // One of the three found no ticket and waits; it must get the new ticket and its notification.
  until_waiting(1);
  set(1);
  changed.notify_one();
  threads.clear();
  EXPECT_EQ(first_two, 2);
  EXPECT_TRUE(third);
}

TEST_F(condition_test, APredicateThatThrowsLeavesWithTheLockAndPassesItsNotificationOn) {
  std::jthread throws([&] {
    std::unique_lock hold(lock);
    EXPECT_THROW(changed.wait(hold,
                              [&] {
                                if (value == 1) throw std::runtime_error("predicate");
                                return false;
                              }),
                 std::runtime_error);
    EXPECT_TRUE(hold.owns_lock());
  });
  until_waiting(1);
  std::jthread waits([&] {
    std::unique_lock hold(lock);
    changed.wait(hold, [&] { return value == 1; });
  });
  until_waiting(2);
  set(1);
  changed.notify_one();  // for the waiter whose predicate throws
  throws.join();
  waits.join();
}

TEST_F(condition_test, ACoroutinesPredicateMayThrowToo) {
  bool caught = false;
  bool held = false;
  [](condition_test& test, bool& threw, bool& owned) -> detached {
    std::unique_lock hold(test.lock);
    try {
      (void)co_await test.changed.async_wait(hold, [&test]() -> bool {
        if (test.value == 1) throw std::runtime_error("predicate");
        return false;
      });
    } catch (const std::runtime_error&) {
      threw = true;
      owned = hold.owns_lock();
    }
  }(*this, caught, held);
  set(1);
  changed.notify_one();
  EXPECT_TRUE(caught);
  EXPECT_TRUE(held);
}

TEST_F(condition_test, ThePredicateIsCheckedAfterTheDeadline) {
  manual_clock clock;
  std::jthread waits([&] {
    std::unique_lock hold(lock);
    EXPECT_EQ(changed.wait(
                  hold, [&] { return value == 1; }, deadline::after(1s, clock)),
              status::ok);
  });
  eventually([&] { return clock.pending() == 1; });
  set(1);  // without a notification
  clock.advance(1s);
}

TEST_F(condition_test, ThePredicateIsCheckedAfterAStop) {
  std::stop_source source;
  std::jthread waits([&] {
    std::unique_lock hold(lock);
    EXPECT_EQ(changed.wait(
                  hold, [&] { return value == 1; }, source.get_token()),
              status::ok);
  });
  until_waiting(1);
  set(1);
  source.request_stop();
}

TEST_F(condition_test, ACoroutineGetsTheLockBackWithoutBlockingAThread) {
  manual_sink sink;
  ending ended;
  bool owned = false;
  [](manual_sink&, condition_test& test, ending& out, bool& held) -> detached {
    auto hold = *co_await test.lock.async_lock();
    const auto result = co_await test.changed.async_wait(hold, [&test] { return test.value == 1; });
    held = hold.owns_lock();
    hold.unlock();
    out.set(result);
  }(sink, *this, ended, owned);
  until_waiting(1);
  {
    const std::lock_guard hold(lock);
    value = 1;
    changed.notify_one();
    EXPECT_EQ(lock.waiting(), 1U) << "it waits for the lock";
    EXPECT_EQ(sink.pending(), 0U);
  }
  EXPECT_FALSE(lock.try_lock()) << "it was handed the lock";
  EXPECT_EQ(sink.run_all(), 1U);
  EXPECT_TRUE(ended.is_set() && ended.result());
  EXPECT_TRUE(owned);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_F(condition_test, ACoroutineWaitsAgainWhileThePredicateIsFalse) {
  ending ended;
  std::stop_source source;
  manual_clock clock;
  [](condition_test& test, wait_limits limits, ending& out) -> detached {
    std::unique_lock hold(test.lock);
    out.set(co_await test.changed.async_wait(
        hold, [&test] { return test.value == 3; }, limits));
  }(*this, {deadline::after(1h, clock), source.get_token()}, ended);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(ended.is_set());
    EXPECT_EQ(changed.waiting(), 1U);
    EXPECT_EQ(clock.pending(), 1U) << "its deadline is armed again in every round";
    set(i);
    changed.notify_all();
  }
  EXPECT_TRUE(ended.is_set() && ended.result());
  EXPECT_EQ(clock.pending(), 0U);
}

TEST_F(condition_test, ALimitEndsACoroutinesSecondRoundToo) {
  for (const bool by_stop : {false, true}) {
    ending ended;
    std::stop_source source;
    manual_clock clock;
    [](condition_test& test, wait_limits limits, ending& out) -> detached {
      std::unique_lock hold(test.lock);
      out.set(co_await test.changed.async_wait(
          hold, [] { return false; }, limits));
    }(*this, {deadline::after(1h, clock), source.get_token()}, ended);
    changed.notify_one();
    EXPECT_FALSE(ended.is_set());
    by_stop ? static_cast<void>(source.request_stop()) : clock.advance(1h);
    ASSERT_TRUE(ended.is_set());
    EXPECT_EQ(ended.result(), by_stop ? status::stopped : status::timed_out);
  }
}

TEST_F(condition_test, ALimitBetweenTwoRoundsIsNotMissed) {
  // The stop is requested when it is notified but has not checked yet, so there is no wait to end.
  manual_sink sink;
  ending ended;
  std::stop_source source;
  [](manual_sink&, condition_test& test, wait_limits limits, ending& out) -> detached {
    std::unique_lock hold(test.lock);
    out.set(co_await test.changed.async_wait(
        hold, [] { return false; }, limits));
  }(sink, *this, {{}, source.get_token()}, ended);
  changed.notify_one();
  EXPECT_EQ(sink.pending(), 1U);
  source.request_stop();
  sink.run_all();
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::stopped);
}

TEST_F(condition_test, AHundredThousandRoundsNeedNoStack) {
  // Two coroutines hand a number back and forth on one thread.
  constexpr int rounds = 100'000;
  int ended = 0;
  const auto player = [](condition_test& test, int me, int& count) -> detached {
    std::unique_lock hold(test.lock);
    while (test.value < rounds) {
      (void)co_await test.changed.async_wait(
          hold, [&test, me] { return test.value % 2 == me || test.value >= rounds; });
      if (test.value < rounds) ++test.value;
      test.changed.notify_all();
    }
    ++count;
  };
  player(*this, 1, ended);
  player(*this, 0, ended);
  eventually([&] { return ended == 2; });
  EXPECT_EQ(value, rounds);
}

// A queue of one condition, used by consumers whose waits time out or are stopped at the moment
// they are notified. If a notification were lost, an item would stay in the queue while a consumer
// without limits sleeps.
template <class Lock>
class condition_stress_test : public ::testing::Test {};
using locks = ::testing::Types<mutex, fair_mutex, shared_mutex>;
TYPED_TEST_SUITE(condition_stress_test, locks);

TYPED_TEST(condition_stress_test, NoNotificationIsLostToALimit) {
  stress run;
  constexpr int items = 6'000;
  TypeParam lock;
  condition not_empty;
  std::deque<int> queue;  // protected by lock
  bool closed = false;    // protected by lock
  std::atomic<int> taken{0};
  std::vector<std::jthread> threads;
  const auto take = [&](const wait_limits& limits) {
    std::unique_lock hold(lock);
    const auto ended = not_empty.wait(
        hold, [&] { return !queue.empty() || closed; }, limits);
    if (!ended) return true;
    if (queue.empty()) return false;
    queue.pop_front();
    ++taken;
    return true;
  };
  threads.emplace_back([&] {
    while (take({})) run.did();
  });
  for (int t = 1; t <= 3; ++t) {
    threads.emplace_back([&, t] {
      auto choose = run.generator(static_cast<std::uint64_t>(t));
      while (take({deadline::after(std::chrono::microseconds(choose.below(40))), {}})) run.did();
    });
  }
  manual_sink sink;
  std::atomic<int> coroutines{2};
  for (int c = 0; c < 2; ++c) {
    [](manual_sink&, TypeParam& m, condition& ready, std::deque<int>& q, const bool& end,
       std::atomic<int>& count, std::atomic<int>& running, bool limited) -> detached {
      for (bool more = true; more;) {
        auto hold = *co_await m.async_lock();
        const wait_limits limits{limited ? deadline::after(30us) : deadline::never(), {}};
        const auto result = co_await ready.async_wait(
            hold, [&] { return !q.empty() || end; }, limits);
        if (!result) continue;
        more = !q.empty();
        if (!more) continue;
        q.pop_front();
        ++count;
      }
      --running;
    }(sink, lock, not_empty, queue, closed, taken, coroutines, c == 0);
  }
  threads.emplace_back([&] {
    while (coroutines > 0) {
      if (sink.run_all() == 0) std::this_thread::yield();
    }
  });
  for (int i = 0; i < items; ++i) {
    {
      const std::lock_guard hold(lock);
      queue.push_back(i);
    }
    not_empty.notify_one();
    run.did();
    // At intervals, wait until every item pushed so far is taken.
    if (i % 20 == 0) eventually([&] { return taken == i + 1; }, "no item to be left behind");
  }
  eventually([&] { return taken == items; }, "no item to be left behind");
  {
    const std::lock_guard hold(lock);
    closed = true;
  }
  not_empty.notify_all();
  threads.clear();
  EXPECT_EQ(taken, items);
}

class condition_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(condition_DeathTest, WaitingWithoutTheLockIsABrokenContract) {
  EXPECT_DEATH(
      {
        mutex m;
        condition c;
        std::unique_lock hold(m, std::defer_lock);
        c.wait(hold, [] { return true; });
      },
      "sluice::condition.*the lock to be held by the caller");
}

TEST_F(condition_DeathTest, DestroyingItBeforeAWaitHasReturnedIsABrokenContract) {
  EXPECT_DEATH(
      {
        mutex m;
        auto* const c = new condition;
        std::jthread waits([&] {
          std::unique_lock hold(m);
          c->wait(hold, [] { return false; });
        });
        eventually([&] { return c->waiting() == 1; });
        const std::lock_guard hold(m);
        c->notify_one();  // notified, but it cannot have returned: the lock is held here
        delete c;
      },
      "sluice::condition.*all waits to have returned at its destruction");
}

}  // namespace
}  // namespace sluice::testing::condition_test
