#include "sluice/sync/wait.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing::wait_test {
namespace {

using namespace std::chrono_literals;

// A minimal primitive: one mark that is put and taken. Its operation records the calls to it, so
// that the tests can check the sequence of a wait.
class mark {
 public:
  class op {
   public:
    explicit op(mark& m) : mark_(m) {}
    bool ready() const { return mark_.there_.load() > 0; }
    bool attempt() {
      const std::lock_guard hold(mark_.guard_);
      ++mark_.attempts;
      return mark_.take();
    }
    enlisted enlist(waiter& waiting) {
      const std::lock_guard hold(mark_.guard_);
      ++mark_.enlists;
      if (mark_.take()) return enlisted::finished;
      return link_waiter(mark_.list_, node_, waiting);
    }
    bool woken() { return true; }
    void retract() {
      const std::lock_guard hold(mark_.guard_);
      ++mark_.retracts;
      if (node_.linked()) node_.unlink();
    }
    spin_budget& spin() { return mark_.spin_; }
    status result(status ended) const { return ended; }

   private:
    mark& mark_;
    wait_node node_;
  };

  void put() {
    wake_batch wakes;
    const std::lock_guard hold(guard_);
    if (auto* const node = claim_front(list_)) {
      wakes.add(*node->waiting);
    } else {
      ++there_;
    }
  }
  std::size_t waiting() {
    const std::lock_guard hold(guard_);
    return list_.size();
  }

  int attempts = 0;
  int enlists = 0;
  int retracts = 0;

 private:
  bool take() {
    if (there_ == 0) return false;
    --there_;
    return true;
  }

  spin_lock guard_;
  spin_budget spin_;
  std::atomic<int> there_{0};
  wait_list list_;
};

TEST(wait_test, AReadyMarkIsTakenWithoutJoiningTheList) {
  mark m;
  m.put();
  EXPECT_EQ(block_on(mark::op(m)), status::ok);
  EXPECT_EQ(m.attempts, 1);
  EXPECT_EQ(m.enlists, 0);
}

TEST(wait_test, AnEarlierStopTriesNothing) {
  mark m;
  m.put();
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(block_on(mark::op(m), {{}, source.get_token()}), status::stopped);
  EXPECT_EQ(m.attempts, 0);
}

TEST(wait_test, ADeadlineThatHasPassedTriesOnceAndDoesNotJoin) {
  mark m;
  EXPECT_EQ(block_on(mark::op(m), {deadline::after(-1s), {}}), status::timed_out);
  EXPECT_EQ(m.attempts, 1);
  EXPECT_EQ(m.enlists, 0);
}

TEST(wait_test, AWaitThatEndsByALimitIsRetractedOnce) {
  mark m;
  EXPECT_EQ(block_on(mark::op(m), {deadline::after(1ms), {}}), status::timed_out);
  EXPECT_EQ(m.enlists, m.retracts);
  EXPECT_EQ(m.waiting(), 0U);
}

TEST(wait_test, AServedWaitIsNotRetracted) {
  mark m;
  std::jthread waits([&] { EXPECT_EQ(block_on(mark::op(m)), status::ok); });
  eventually([&] { return m.waiting() == 1; });
  m.put();
  waits.join();
  EXPECT_EQ(m.retracts, 0);
}

TEST(wait_test, ACoroutineThatIsReadyDoesNotSuspend) {
  mark m;
  m.put();
  manual_sink sink;
  bool done = false;
  [](manual_sink&, mark& on, wait_limits limits, bool& out) -> detached {
    (void)co_await awaitable<mark::op>(limits, on);
    out = true;
  }(sink, m, {}, done);
  EXPECT_TRUE(done);
  EXPECT_EQ(sink.pending(), 0U);
}

TEST(wait_test, ACoroutineIsResumedOnItsSinkHoweverItsWaitEnds) {
  for (int way = 0; way < 3; ++way) {
    mark m;
    manual_sink sink;
    manual_clock clock;
    std::stop_source source;
    std::optional<status> result;
    [](manual_sink&, mark& on, wait_limits limits, std::optional<status>& out) -> detached {
      out = co_await awaitable<mark::op>(limits, on);
    }(sink, m, {deadline::after(1s, clock), source.get_token()}, result);
    if (way == 0) m.put();
    if (way == 1) clock.advance(1s);
    if (way == 2) source.request_stop();
    EXPECT_FALSE(result.has_value()) << "only its sink resumes it";
    EXPECT_EQ(sink.pending(), 1U);
    m.put();            // after the end of the wait: no effect
    clock.advance(1s);  // and so are these
    source.request_stop();
    EXPECT_EQ(sink.run_all(), 1U);
    const status expected[] = {status::ok, status::timed_out, status::stopped};
    EXPECT_EQ(*result, expected[way]);
    EXPECT_EQ(clock.pending(), 0U) << "no timer is left behind";
  }
}

TEST(wait_test, AStopWhileACoroutineIsBeingSetUpEndsIt) {
  // The stop is requested when its callback is installed and the wait is not linked yet.
  class stops_when_enlisted {
   public:
    stops_when_enlisted(mark& m, std::stop_source s) : op_(m), source_(std::move(s)) {}
    bool ready() const { return op_.ready(); }
    spin_budget& spin() { return op_.spin(); }
    bool attempt() { return false; }
    enlisted enlist(waiter& waiting) {
      source_.request_stop();
      return op_.enlist(waiting);
    }
    bool woken() { return op_.woken(); }
    void retract() { op_.retract(); }
    status result(status ended) { return ended; }

   private:
    mark::op op_;
    std::stop_source source_;
  };
  mark m;
  std::stop_source source;
  std::optional<status> result;
  [](mark& on, std::stop_source stop, std::optional<status>& out) -> detached {
    wait_limits limits;
    limits.stop = stop.get_token();
    out = co_await awaitable<stops_when_enlisted>(limits, on, stop);
  }(m, source, result);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, status::stopped);
  EXPECT_EQ(m.waiting(), 0U);
}

// A coroutine that gives each of its waits its own token, as a task does.
detached wait_inheriting(mark& on, std::stop_token given, std::stop_token inherited,
                         std::optional<status>& out) {
  awaitable<mark::op> wait(std::move(given), on);
  wait.inherit(inherited);
  out = co_await wait;
}

TEST(wait_test, AWaitWithoutATokenIsStoppedByTheOneItInherits) {
  mark m;
  std::stop_source awaiting;
  std::optional<status> result;
  wait_inheriting(m, {}, awaiting.get_token(), result);
  EXPECT_FALSE(result.has_value());
  awaiting.request_stop();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, status::stopped);
  result.reset();
  m.put();
  wait_inheriting(m, {}, awaiting.get_token(), result);
  EXPECT_EQ(*result, status::stopped) << "also a stop that was requested before";
}

TEST(wait_test, AWaitWithATokenOfItsOwnInheritsNone) {
  mark m;
  std::stop_source own;
  std::stop_source awaiting;
  std::optional<status> result;
  wait_inheriting(m, own.get_token(), awaiting.get_token(), result);
  awaiting.request_stop();
  EXPECT_FALSE(result.has_value());
  own.request_stop();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, status::stopped);
}

TEST(wait_test, ABudgetGrowsWhenSpinningPaysAndShrinksWhenItDoesNot) {
  spin_budget budget;
  for (int i = 0; i < 100; ++i) budget.paid();
  EXPECT_EQ(budget.pauses(), spin_budget::most);
  for (int i = 0; i < 100; ++i) budget.wasted();
  EXPECT_LT(budget.pauses(), spin_budget::least + 8);
  EXPECT_GE(budget.pauses(), spin_budget::least);
}

TEST(wait_test, AHundredThousandResumptionsOnOneThreadNeedNoStack) {
  // Two coroutines pass one permit back and forth; each resumption happens inside the other's
  // release.
  semaphore ping(0);
  semaphore pong(0);
  constexpr int rounds = 100'000;
  int played = 0;
  const auto player = [](semaphore& own, semaphore& other, int& count) -> detached {
    for (int i = 0; i < rounds; ++i) {
      (void)co_await own.async_acquire();
      ++count;
      other.release();
    }
  };
  player(ping, pong, played);
  player(pong, ping, played);
  ping.release();
  EXPECT_EQ(played, 2 * rounds);
}

TEST(wait_test, ABlockingCallInACoroutineThatAWaitResumedDoesNotTakeThatWaitsWake) {
  mutex m;
  condition changed;
  event nested;
  std::atomic<bool> ready = false;
  std::atomic<bool> nested_set = false;
  std::atomic<bool> returned_early = false;
  std::unique_lock first(m);  // so that the coroutine waits for it
  [](mutex& lock, event& gate, std::atomic<bool>& set, std::atomic<bool>& early) -> detached {
    auto hold = co_await lock.async_lock();
    gate.wait();  // blocks the thread that released it, which is in the middle of its own wait
    early = !set;
  }(m, nested, nested_set, returned_early);
  ASSERT_EQ(m.waiting(), 1U);
  first.release();
  std::jthread notifier([&] {
    eventually([&] { return nested.waiting() == 1; });
    ready = true;
    changed.notify_one();  // for the outer wait, while its thread sleeps in the inner one
    nested_set = true;
    nested.set();
  });
  std::unique_lock hold(m, std::adopt_lock);
  changed.wait(hold, [&] { return ready.load(); });
  EXPECT_FALSE(returned_early);
}

TEST(wait_test, ThreadsAreWokenBeforeACoroutineRunsOnTheWakersThread) {
  event go;
  event thread_went;
  bool coroutine_went = false;
  [](event& start, event& other, bool& done) -> detached {
    (void)co_await start.async_wait();
    other.wait();  // would wait for ever if the thread were woken after this
    done = true;
  }(go, thread_went, coroutine_went);
  std::jthread thread([&] {
    go.wait();
    thread_went.set();
  });
  eventually([&] { return go.waiting() == 2; });
  go.set();
  EXPECT_TRUE(coroutine_went);
}

}  // namespace
}  // namespace sluice::testing::wait_test
