#include "sluice/executor/strand.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::strand_test {
namespace {

using namespace std::chrono_literals;

// ---- turns

TEST(strand_test, IsQueuedAtMostOnceInTheUnderlyingExecutor) {
  manual_executor later;
  strand serial(later);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(serial.submit([] {}));
  EXPECT_EQ(later.pending(), 1u);
  EXPECT_TRUE(later.run_one());
  EXPECT_EQ(later.pending(), 1u) << "64 per turn, then back to the end of the queue";
  EXPECT_EQ(serial.queued(), 36u);
  EXPECT_TRUE(later.run_one());
  EXPECT_EQ(later.pending(), 0u) << "it leaves the queue when it is idle";
  EXPECT_EQ(serial.stats().turns, 2u);
  EXPECT_EQ(serial.stats().completed, 100u);
}

TEST(strand_test, StrandsShareTheUnderlyingExecutorInTurns) {
  manual_executor later;
  strand a(later, {.per_turn = 2});
  strand b(later, {.per_turn = 2});
  std::string order;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.submit([&] { order += 'a'; }));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(b.submit([&] { order += 'b'; }));
  ASSERT_TRUE(later.submit([&] { order += '.'; }));
  later.run_all();
  EXPECT_EQ(order.find('.'), 2u) << order << ": others run after one turn";
  std::erase(order, '.');
  EXPECT_EQ(order, "aabbaaba");
}

TEST(strand_test, AFunctionThatArrivesDuringATurnIsPartOfIt) {
  manual_executor later;
  strand serial(later);
  std::string order;
  ASSERT_TRUE(serial.submit([&] {
    order += '1';
    ASSERT_TRUE(serial.submit([&] { order += '3'; }));
  }));
  ASSERT_TRUE(serial.submit([&] { order += '2'; }));
  EXPECT_TRUE(later.run_one());
  EXPECT_EQ(order, "123");
  EXPECT_FALSE(later.run_one());
}

TEST(strand_test, CountsItsWork) {
  manual_executor later;
  strand serial(later, {.capacity = 2, .overflow = overflow::drop_newest,
                        .on_error = [](const std::exception_ptr&) {}});
  ASSERT_TRUE(serial.submit([] { throw 1; }));
  ASSERT_TRUE(serial.submit([] {}));
  EXPECT_EQ(serial.submit([] {}), status::dropped);
  posted item([] {});
  serial.post(item);
  EXPECT_EQ(serial.stats().queued, 2u);
  later.run_all();
  const auto now = serial.stats();
  EXPECT_EQ(now.queued, 0u);
  EXPECT_EQ(now.completed, 2u);
  EXPECT_EQ(now.failed, 1u);
  EXPECT_EQ(now.posts, 1u);
  EXPECT_EQ(now.dropped, 1u);
  EXPECT_EQ(now.turns, 1u);
}

// ---- inside and outside

TEST(strand_test, KnowsWhetherItRunsHere) {
  manual_executor later;
  inline_executor here;
  strand lower(later);
  strand upper(lower);  // a strand is an executor: it may run on another
  strand other(later);
  EXPECT_EQ(&upper.underlying(), &lower);
  EXPECT_FALSE(lower.running_here());
  bool ran = false;
  ASSERT_TRUE(upper.submit([&] {
    ran = true;
    EXPECT_TRUE(upper.running_here());
    EXPECT_TRUE(lower.running_here());
    EXPECT_FALSE(other.running_here());
    EXPECT_EQ(executor::current(), &upper);
    ASSERT_TRUE(here.submit([&] {
      EXPECT_EQ(executor::current(), &here);
      EXPECT_TRUE(upper.running_here()) << "also in functions called by its functions";
    }));
    std::jthread([&] { EXPECT_FALSE(upper.running_here()) << "but not on another thread"; }).join();
  }));
  later.run_all();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(upper.running_here());
}

TEST(strand_test, ASubmitFromInsideThatWouldHaveToWaitReturnsFull) {
  manual_executor later;
  strand serial(later, {.capacity = 1});
  std::vector<status> outcomes;
  std::stop_source source;
  source.request_stop();
  ASSERT_TRUE(serial.submit([&] {
    outcomes.push_back(serial.submit([] {}));
    outcomes.push_back(serial.submit([] {}));
    outcomes.push_back(serial.submit([] {}, 1h));
    outcomes.push_back(serial.submit([] {}, source.get_token()));
  }));
  later.run_all();
  EXPECT_EQ(outcomes,
            (std::vector<status>{status::ok, status::full, status::full, status::stopped}));
}

detached submit_three(strand& on, std::string& order) {
  for (const char c : {'1', '2', '3'}) {
    submission f = [&order, c] { order += c; };
    EXPECT_EQ(co_await on.async_submit(std::move(f)), status::ok);
    EXPECT_TRUE(order.empty() || on.running_here()) << "it is resumed on the strand";
  }
  order += '.';
}

TEST(strand_test, ACoroutineInsideAwaitsCapacityWhileTheStrandContinues) {
  manual_executor later;
  strand serial(later, {.capacity = 1});
  std::string order;
  ASSERT_TRUE(serial.submit([&] { submit_three(serial, order); }));
  later.run_all();
  EXPECT_EQ(order, "12.3") << "the last was accepted when the coroutine ended";
}

// ---- shutdown

TEST(strand_test, DrainWaitsUntilAllHasRun) {
  thread_pool pool(2);
  strand serial(pool, {.per_turn = 7});
  int ran = 0;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(serial.submit([&] { ++ran; }));
  serial.drain();
  EXPECT_EQ(ran, 1000) << "no atomic: drain must be enough";
  EXPECT_EQ(serial.submit([] {}), status::closed);
  serial.drain();  // a second call does nothing
}

TEST(strand_test, ItsDestructorDrains) {
  thread_pool pool(2);
  int ran = 0;
  {
    strand serial(pool);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(serial.submit([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 500);
}

TEST(strand_test, StopReturnsUnbegunSubmissionsInOrder) {
  thread_pool pool(2);
  strand serial(pool);
  event inside;
  bool was_asked = false;
  ASSERT_TRUE(serial.submit([&] {
    inside.set();
    eventually([&] { return serial.stop_token().stop_requested(); });
    was_asked = true;
  }));
  inside.wait();
  std::string order;
  for (const char c : {'a', 'b', 'c'}) ASSERT_TRUE(serial.submit([&order, c] { order += c; }));
  auto unstarted = serial.stop();
  EXPECT_TRUE(was_asked) << "stop waits for the running function";
  EXPECT_EQ(order, "");
  for (auto& f : unstarted) f();
  EXPECT_EQ(order, "abc");
  EXPECT_TRUE(serial.stop().empty());
}

TEST(strand_test, ShutdownWithinDrainsUntilItsLimitAndThenStops) {
  thread_pool pool(2);
  manual_clock clock;
  strand serial(pool);
  event inside;
  ASSERT_TRUE(serial.submit([&] {
    inside.set();
    eventually([&] { return serial.stop_token().stop_requested(); });
  }));
  inside.wait();
  ASSERT_TRUE(serial.submit([] {}));
  std::vector<submission> unstarted;
  std::jthread ends([&] { unstarted = serial.shutdown(deadline::after(1min, clock)); });
  eventually([&] { return clock.pending() == 1; });
  EXPECT_TRUE(serial.is_closed());
  EXPECT_FALSE(serial.stop_token().stop_requested());
  clock.advance(1min);
  ends.join();
  EXPECT_EQ(unstarted.size(), 1u);

  strand quick(pool);
  std::atomic<int> ran{0};
  ASSERT_TRUE(quick.submit([&] { ++ran; }));
  EXPECT_TRUE(quick.shutdown(deadline::after(1h)).empty());
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(quick.stop_token().stop_requested());
}

TEST(strand_test, JoinWaitsForAnEndMadeByAnotherThread) {
  manual_executor later;
  strand serial(later);
  std::stop_source source;
  EXPECT_EQ(serial.join(deadline::after(-1s)), status::timed_out) << "it is open";
  source.request_stop();
  EXPECT_EQ(serial.join(source.get_token()), status::stopped);
  ASSERT_TRUE(serial.submit([] {}));
  std::optional<status> ended;
  std::jthread joins([&] { ended = serial.join(); });
  serial.close();
  EXPECT_EQ(serial.join(deadline::after(-1s)), status::timed_out) << "a submission is inside";
  later.run_all();
  joins.join();
  EXPECT_EQ(*ended, status::ok);
}

TEST(strand_test, ClosingAnIdleOneEndsTheWaitForItsEnd) {
  manual_executor later;
  strand serial(later);
  ending ended;
  [](strand* s, ending& out) -> detached { out.set(co_await s->async_join()); }(&serial, ended);
  EXPECT_FALSE(ended.is_set());
  serial.close();
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::ok);
}

TEST(strand_test, PostsAfterTheEndStillRunOnItAndOneAtATime) {
  manual_executor later;
  strand serial(later);
  serial.drain();
  bool on_it = false;
  posted item([&] { on_it = serial.running_here(); });
  serial.post(item);
  EXPECT_FALSE(on_it);
  EXPECT_EQ(serial.join(deadline::after(-1s)), status::timed_out) << "it has work again";
  later.run_all();
  EXPECT_TRUE(on_it);
  EXPECT_EQ(serial.join(), status::ok);
}

// ---- an underlying executor that has ended

TEST(strand_test, OnAnExecutorThatHasEndedTheSubmitterRunsIt) {
  thread_pool pool(1);
  strand serial(pool);
  pool.drain();
  std::thread::id where;
  ASSERT_TRUE(serial.submit([&] { where = std::this_thread::get_id(); }));
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(strand_test, OnAnExecutorThatEndsUnderItEverythingIsRunOneAtATime) {
  stress run;
  constexpr int threads = 3;
  constexpr int each = 2'000;
  for (int round = 0; round < 10; ++round) {
    int total = 0;  // no atomic: the strand must be enough
    thread_pool pool(2);
    {
      strand serial(pool, {.capacity = 16, .per_turn = 5});
      std::vector<std::jthread> submitters;
      for (int i = 0; i < threads; ++i) {
        submitters.emplace_back([&] {
          for (int n = 0; n < each; ++n) {
            EXPECT_EQ(serial.submit([&] { ++total; }), status::ok);
          }
        });
      }
      pool.drain();
    }
    EXPECT_EQ(total, threads * each);
    run.did(threads * each);
  }
}

// ---- many threads

// Accounts that only their strands touch; money moves between them by submissions and by
// coroutines that hop from strand to strand.
struct account {
  explicit account(executor& on) : serial(on, {.capacity = 4096, .per_turn = 8}) {}
  long balance = 1000;  // plain
  strand serial;
};

class hop final : public work {
 public:
  explicit hop(executor& target) : target_(target) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) noexcept {
    handle_ = h;
    target_.post(*this);
  }
  void await_resume() const noexcept {}
  void run() noexcept override { handle_.resume(); }

 private:
  executor& target_;
  std::coroutine_handle<> handle_;
};

detached transfer(account* payer, account* payee, long amount, latch* done) {
  hop to_first(payer->serial);
  co_await to_first;
  payer->balance -= amount;
  hop to_second(payee->serial);
  co_await to_second;
  payee->balance += amount;
  done->count_down();
}

TEST(strand_test, StateUsedOnlyByItsFunctionsNeedsNoLock) {
  stress run;
  constexpr int threads = 4;
  constexpr int each = 3'000;
  thread_pool pool(4);
  std::deque<account> accounts;
  for (int i = 0; i < 8; ++i) accounts.emplace_back(pool);
  latch done(threads * each);
  {
    std::vector<std::jthread> movers;
    for (int who = 0; who < threads; ++who) {
      movers.emplace_back([&, who] {
        auto choose = run.generator(static_cast<std::uint64_t>(who));
        for (int n = 0; n < each; ++n) {
          account& payer = accounts[choose.below(8)];
          account& payee = accounts[choose.below(8)];
          const long amount = choose.below(100);
          if (choose.below(2) == 0) {
            transfer(&payer, &payee, amount, &done);
            continue;
          }
          EXPECT_EQ(payer.serial.submit([&payer, &payee, amount, &done] {
            payer.balance -= amount;
            const auto deposit = [&payee, amount, &done] {
              payee.balance += amount;
              done.count_down();
            };
            submission f = deposit;
            while (!payee.serial.try_submit(std::move(f))) std::this_thread::yield();
          }),
                    status::ok);
        }
        run.did(each);
      });
    }
  }
  done.wait();
  for (auto& a : accounts) a.serial.drain();
  long total = 0;
  for (auto& a : accounts) total += a.balance;
  EXPECT_EQ(total, 8 * 1000);
}

// A post during the destruction of the strand must find a valid strand, and the destructor must
// wait for the turn that ran it. The sanitizers check this.
TEST(strand_test, EndingItRacesWithItsLastTurns) {
  stress run;
  thread_pool pool(3);
  for (int round = 0; round < 2'000; ++round) {
    std::atomic<int> ran{0};
    posted item([&] { ++ran; });
    {
      auto serial = std::make_unique<strand>(pool, strand_options{.capacity = 4});
      ASSERT_TRUE(serial->submit([&ran, &item, on = serial.get()] {
        ++ran;
        on->post(item);
      }));
      if (round % 2 == 0) {
        serial->drain();
      }
    }
    EXPECT_EQ(ran, 2);
    run.did(2);
  }
}

// A running turn may run the item before its post has returned. The sanitizers check this.
TEST(strand_test, ItMayBeDestroyedAsSoonAsAPostedItemHasRun) {
  stress run;
  thread_pool pool(2);
  const auto rounds =
      effort(test_name(), "strands", {.ci = 3'000, .full = 10'000, .sanitized = 600});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto serial = std::make_unique<strand>(pool);
    std::atomic<bool> turn_began{false};
    std::atomic<bool> turn_goes_on{false};
    std::atomic<bool> ran{false};
    posted item([&] { ran = true; });
    ASSERT_TRUE(serial->submit([&] {
      turn_began = true;
      while (!turn_goes_on) seam::yield();
    }));
    std::jthread posts([&, on = serial.get()] {
      while (!turn_began) seam::yield();
      turn_goes_on = true;
      on->post(item);
    });
    while (!ran) seam::yield();
    serial.reset();
    run.did(1);
  }
}

// The post itself runs the function that destroys the strand, after the turn.
TEST(strand_test, WorkMadeReadyByATurnMayDestroyTheStrandInsideThePost) {
  inline_executor here;
  auto serial = std::make_unique<strand>(here);
  posted ends([&] { serial.reset(); });
  posted item([&] { here.post(ends); });
  serial->post(item);
  EXPECT_EQ(serial, nullptr);
}

// ---- misuse

class strand_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  template <class End>
  static void end_from_inside(End&& end) {
    inline_executor here;
    strand serial(here, {.name = "mails"});
    (void)serial.submit([&] { end(serial); });
  }
};

TEST_F(strand_DeathTest, EndingItFromInsideIsABrokenContract) {
  constexpr auto expected = "strand \"mails\": expected not to be ended from inside";
  EXPECT_DEATH(end_from_inside([](strand& s) { s.drain(); }), expected);
  EXPECT_DEATH(end_from_inside([](strand& s) { (void)s.stop(); }), expected);
  EXPECT_DEATH(end_from_inside([](strand& s) { (void)s.shutdown({}); }), expected);
  EXPECT_DEATH(end_from_inside([](strand& s) { (void)s.join(); }), expected);
}

TEST_F(strand_DeathTest, OptionsThatMakeNoSenseAreBrokenContracts) {
  inline_executor here;
  EXPECT_DEATH(strand(here, {.per_turn = 0}), "to run at least one function a turn");
  EXPECT_DEATH(strand(here, {.overflow = overflow::caller_runs}), "would run two at once");
}

}  // namespace
}  // namespace sluice::testing::strand_test
