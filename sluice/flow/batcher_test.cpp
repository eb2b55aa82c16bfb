#include "sluice/flow/batcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::batcher_test {
namespace {

using namespace std::chrono_literals;
using numbers = batcher<int>;
using batch = std::vector<int>;

class batcher_test : public ::testing::Test {
 protected:
  numbers::options sized(std::size_t size, std::size_t capacity = 0,
                         overflow full = overflow::block) {
    return {.size = size, .wait = 10ms, .capacity = capacity, .overflow = full, .clock = &clock};
  }
  static void push_all(numbers& target, std::initializer_list<int> items) {
    for (const int item : items) ASSERT_EQ(target.try_push(item), status::ok) << item;
  }
  static detached take_once(numbers* from, std::optional<outcome<batch>>& got,
                            wait_limits limits = {}) {
    got.emplace(co_await from->async_take(std::move(limits)));
  }

  manual_clock clock;
};

// ---- due batches

TEST_F(batcher_test, ABatchIsDueWhenItIsFull) {
  numbers b(sized(3));
  push_all(b, {1, 2});
  EXPECT_EQ(b.try_take().status(), status::empty);
  push_all(b, {3, 4});
  EXPECT_EQ(*b.try_take(), (batch{1, 2, 3}));
  EXPECT_EQ(b.try_take().status(), status::empty);
  EXPECT_EQ(b.queued(), 1u);
}

TEST_F(batcher_test, ABatchIsDueAfterTheWaitOfItsFirstItem) {
  numbers b(sized(10));
  push_all(b, {1});
  clock.advance(6ms);
  push_all(b, {2});
  clock.advance(3ms);
  EXPECT_EQ(b.try_take().status(), status::empty);
  clock.advance(1ms);
  EXPECT_EQ(*b.try_take(), (batch{1, 2})) << "since the first, not since the last";
}

TEST_F(batcher_test, TheNextBatchIsTimedFromItsOwnFirstItem) {
  numbers b(sized(2));
  push_all(b, {1});
  clock.advance(9ms);
  push_all(b, {2, 3});
  EXPECT_EQ(*b.try_take(), (batch{1, 2}));
  clock.advance(9ms);
  EXPECT_EQ(b.try_take().status(), status::empty) << "3 arrived only 9 ms ago";
  clock.advance(1ms);
  EXPECT_EQ(*b.try_take(), (batch{3}));
}

TEST_F(batcher_test, FlushMakesTheItemsInsideDue) {
  numbers b(sized(10));
  b.flush();
  EXPECT_EQ(b.try_take().status(), status::empty) << "a batch is never empty";
  push_all(b, {1, 2});
  b.flush();
  EXPECT_EQ(*b.try_take(), (batch{1, 2}));
  push_all(b, {3});
  EXPECT_EQ(b.try_take().status(), status::empty);
}

TEST_F(batcher_test, CloseFlushes) {
  numbers b(sized(2));
  push_all(b, {1, 2, 3});
  EXPECT_TRUE(b.close());
  EXPECT_FALSE(b.close());
  EXPECT_EQ(b.push(4), status::closed);
  EXPECT_EQ(*b.take(), (batch{1, 2}));
  EXPECT_EQ(*b.take(), (batch{3}));
  EXPECT_EQ(b.take().status(), status::closed);
  EXPECT_EQ(b.wait_ended(), status::ok);
}

// ---- consumers

TEST_F(batcher_test, ATakerIsWokenOnceABatch) {
  numbers b(sized(3));
  std::optional<outcome<batch>> got;
  take_once(&b, got);
  EXPECT_EQ(b.waiting_to_take(), 1u);
  push_all(b, {1, 2});
  EXPECT_FALSE(got.has_value());
  push_all(b, {3});
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(**got, (batch{1, 2, 3}));
  EXPECT_EQ(clock.pending(), 0u) << "no timer is left behind";
}

TEST_F(batcher_test, TheTimerWakesTheTaker) {
  numbers b(sized(3));
  std::optional<outcome<batch>> got;
  take_once(&b, got);
  EXPECT_EQ(clock.pending(), 0u) << "nothing is inside";
  push_all(b, {1});
  EXPECT_EQ(clock.pending(), 1u);
  clock.advance(9ms);
  EXPECT_FALSE(got.has_value());
  clock.advance(1ms);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(**got, (batch{1}));
}

TEST_F(batcher_test, ALaterTakerIsWokenAtTheSameTime) {
  numbers b(sized(3));
  push_all(b, {1});
  clock.advance(4ms);
  std::optional<outcome<batch>> got;
  take_once(&b, got);
  EXPECT_EQ(clock.pending(), 1u);
  clock.advance(6ms);
  ASSERT_TRUE(got.has_value());
}

TEST_F(batcher_test, AThreadWaitsForABatch) {
  numbers b({.size = 100, .wait = 1ms});  // the real clock
  std::optional<outcome<batch>> got;
  std::jthread taker([&] { got.emplace(b.take()); });
  ASSERT_TRUE(b.push(1));
  taker.join();
  EXPECT_EQ(**got, (batch{1}));
}

TEST_F(batcher_test, LimitsAndCloseEndTheWaitForABatch) {
  numbers b(sized(3));
  std::stop_source source;
  std::optional<outcome<batch>> late;
  std::optional<outcome<batch>> stopped;
  std::optional<outcome<batch>> closed;
  push_all(b, {1});
  take_once(&b, late, deadline::after(5ms, clock));
  take_once(&b, stopped, source.get_token());
  clock.advance(5ms);
  EXPECT_EQ(late->status(), status::timed_out);
  source.request_stop();
  EXPECT_EQ(stopped->status(), status::stopped);
  EXPECT_EQ(clock.pending(), 0u) << "no waiters are left";
  EXPECT_EQ(b.take(-1s).status(), status::timed_out);
  EXPECT_EQ(b.queued(), 1u) << "nothing was taken";
  clock.advance(5ms);
  EXPECT_EQ(*b.take(), (batch{1}));
  take_once(&b, closed);
  b.close();
  EXPECT_EQ(closed->status(), status::closed);
}

TEST_F(batcher_test, ATakerMayDestroyItAtOnce) {
  auto b = std::make_unique<numbers>(sized(2));
  [](std::unique_ptr<numbers>* owner) -> detached {
    (void)co_await (*owner)->async_take();
    owner->reset();
  }(&b);
  push_all(*b, {1});
  clock.advance(10ms);  // the timer resumes it
  EXPECT_EQ(b, nullptr);
}

// ---- full

TEST_F(batcher_test, APushWaitsForCapacityAndABatchFreesCapacityForMany) {
  numbers b(sized(2, 2));
  push_all(b, {1, 2});
  EXPECT_EQ(b.try_push(3), status::full);
  std::vector<std::jthread> threads;
  std::atomic<int> ok{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { ok += static_cast<bool>(b.push(10 + i)); });
  }
  eventually([&] { return b.waiting_to_push() == 2; });
  EXPECT_EQ(*b.take(), (batch{1, 2}));
  threads.clear();
  EXPECT_EQ(ok, 2);
  EXPECT_EQ(b.try_take()->size(), 2u);
}

TEST_F(batcher_test, LimitsAndCloseEndTheWaitForCapacity) {
  batcher<std::unique_ptr<int>> b({.size = 1, .capacity = 1, .clock = &clock});
  ASSERT_TRUE(b.push(std::make_unique<int>(0)));
  std::stop_source source;
  auto item = std::make_unique<int>(1);
  EXPECT_EQ(b.push(std::move(item), 1ms), status::timed_out);
  ASSERT_NE(item, nullptr);
  const auto push = [](auto* target, auto* pushed, wait_limits limits, ending* ended) -> detached {
    ended->set(co_await target->async_push(*pushed, std::move(limits)));
  };
  ending stopped;
  ending closed;
  auto other = std::make_unique<int>(2);
  push(&b, &item, source.get_token(), &stopped);
  push(&b, &other, {}, &closed);
  EXPECT_EQ(b.waiting_to_push(), 2u);
  source.request_stop();
  EXPECT_EQ(stopped.result(), status::stopped);
  b.close();
  EXPECT_EQ(closed.result(), status::closed);
  EXPECT_NE(item, nullptr);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(b.stats().rejected, 1u);
}

TEST_F(batcher_test, AnExceptionOfOnDropGoesToOnErrorAndTheItemIsTaken) {
  int errors = 0;
  auto o = sized(2, 2, overflow::drop_oldest);
  o.on_drop = [](int&&) { throw 1; };
  o.on_error = [&](const std::exception_ptr&) { ++errors; };
  numbers b(o);
  push_all(b, {1, 2, 3});
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(*b.try_take(), (batch{2, 3}));
}

TEST(batcher_DeathTest, ABatcherThatOutlivesItsPoolIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<batcher<int>> late;
        thread_pool pool({.core = 1, .name = "io"});
        late.emplace(batcher<int>::options{}, pool, [](std::vector<int>) {});
      },
      "sluice::thread_pool \"io\": .*found 1 batcher ");
}

TEST_F(batcher_test, TheOtherPoliciesRejectOrDrop) {
  std::vector<int> dropped;
  const auto open = [&](overflow full) {
    dropped.clear();
    auto o = sized(2, 3, full);
    o.on_drop = [&](int&& item) { dropped.push_back(item); };
    return o;
  };
  {
    numbers b(open(overflow::reject));
    push_all(b, {1, 2, 3});
    EXPECT_EQ(b.push(4), status::full);
  }
  {
    numbers b(open(overflow::drop_newest));
    push_all(b, {1, 2, 3});
    EXPECT_EQ(b.push(4), status::dropped);
    EXPECT_EQ(dropped, (std::vector<int>{4}));
  }
  {
    numbers b(open(overflow::drop_oldest));
    push_all(b, {1, 2, 3, 4});
    EXPECT_EQ(dropped, (std::vector<int>{1}));
    EXPECT_EQ(*b.try_take(), (batch{2, 3}));
    EXPECT_EQ(b.stats().dropped, 1u);
  }
  {
    numbers b(open(overflow::latest));
    push_all(b, {1, 2, 3, 4});
    EXPECT_EQ(dropped, (std::vector<int>{3}));
    b.close();
    EXPECT_EQ(*b.try_take(), (batch{1, 2}));
    EXPECT_EQ(*b.try_take(), (batch{4}));
  }
}

// ---- a handler

TEST_F(batcher_test, AHandlerGetsTheBatchesOnItsExecutor) {
  manual_executor later;
  std::vector<batch> got;
  numbers b(sized(2), later, [&](batch items) {
    EXPECT_EQ(executor::current(), &later);
    got.push_back(std::move(items));
  });
  push_all(b, {1});
  EXPECT_EQ(later.pending(), 0u);
  clock.advance(10ms);
  EXPECT_EQ(later.pending(), 1u);
  push_all(b, {2, 3});
  later.run_all();
  EXPECT_EQ(got, (std::vector<batch>{{1, 2}})) << "2 arrived before the handler ran; 3 is new";
  clock.advance(10ms);
  later.run_all();
  EXPECT_EQ(got, (std::vector<batch>{{1, 2}, {3}}));
}

TEST_F(batcher_test, AHandlerThatThrowsIsReportedAndTheNextBatchFollows) {
  inline_executor here;
  int errors = 0;
  auto o = sized(1);
  o.on_error = [&](const std::exception_ptr&) { ++errors; };
  int handled = 0;
  numbers b(std::move(o), here, [&](const batch& items) {
    if (items[0] == 1) throw std::runtime_error("one");
    ++handled;
  });
  push_all(b, {1, 2});
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(b.stats().failed, 1u);
}

TEST_F(batcher_test, ItsDestructorPassesTheRestToTheHandler) {
  thread_pool pool(2);
  std::size_t handled = 0;
  {
    numbers b(sized(64), pool, [&](const batch& items) { handled += items.size(); });
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(b.push(i));
  }
  EXPECT_EQ(handled, 1000u);
}

TEST_F(batcher_test, StopReturnsTheItemsNotTaken) {
  thread_pool pool(1);
  std::atomic<bool> inside{false};
  numbers* self = nullptr;
  numbers b(sized(2), pool, [&](const batch&) {
    inside = true;
    eventually([&] { return self->stop_token().stop_requested(); });
  });
  self = &b;
  push_all(b, {1, 2});
  eventually([&] { return inside.load(); });
  push_all(b, {3, 4, 5});
  EXPECT_EQ(b.stop(), (batch{3, 4, 5}));
  EXPECT_EQ(b.wait_ended(), status::ok);
}

TEST_F(batcher_test, ShutdownDrainsUntilItsLimitAndThenStops) {
  numbers b(sized(2));
  push_all(b, {1, 2, 3});
  EXPECT_EQ(b.shutdown(-1s), (batch{1, 2, 3}));
  numbers quick(sized(2));
  EXPECT_TRUE(quick.shutdown({}).empty());
}

TEST_F(batcher_test, CountsItsOperations) {
  numbers b(sized(2));
  push_all(b, {1, 2, 3});
  (void)b.try_take();
  b.flush();
  (void)b.try_take();
  EXPECT_EQ(b.stats().pushed, 3u);
  EXPECT_EQ(b.stats().batches, 2u);
  EXPECT_EQ(b.stats().full, 1u);
  EXPECT_EQ(b.capacity(), 20u) << "ten batches";
}

// ---- many at once

TEST_F(batcher_test, EveryItemIsInExactlyOneBatchUnderStress) {
  stress run;
  constexpr int pushers = 3;
  constexpr int each = 5'000;
  for (const bool with_handler : {false, true}) {
    std::vector<std::atomic<int>> times(pushers * each);
    const auto note = [&](const batch& items) {
      EXPECT_LE(items.size(), 16u);
      EXPECT_GE(items.size(), 1u);
      for (const int i : items) ++times[static_cast<std::size_t>(i)];
    };
    thread_pool pool(2);
    const numbers::options o{.size = 16, .wait = 50us, .capacity = 64};
    auto b = with_handler ? std::make_unique<numbers>(o, pool, note)
                          : std::make_unique<numbers>(o);
    std::vector<std::jthread> takers;
    if (!with_handler) {
      for (int i = 0; i < 2; ++i) {
        takers.emplace_back([&] {
          while (auto got = b->take()) note(*got);
        });
      }
    }
    {
      std::vector<std::jthread> threads;
      for (int who = 0; who < pushers; ++who) {
        threads.emplace_back([&, who] {
          auto choose = run.generator(static_cast<std::uint64_t>(who));
          for (int n = 0; n < each; ++n) {
            EXPECT_EQ(b->push(who * each + n), status::ok);
            if (choose.below(500) == 0) b->flush();
          }
          run.did(each);
        });
      }
    }
    b->drain();
    takers.clear();
    for (const auto& count : times) EXPECT_EQ(count, 1);
  }
}

task<std::size_t> count_items(numbers* from) {
  std::size_t count = 0;
  while (auto got = co_await from->async_take()) count += got->size();
  co_return count;
}

TEST_F(batcher_test, ATaskTakesBatches) {
  numbers b({.size = 8, .wait = 100us});
  std::jthread pusher([&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(b.push(i), status::ok);
    b.close();
  });
  EXPECT_EQ(sync_wait(count_items(&b)), 100u);
}

// ---- misuse

TEST(batcher_DeathTest, MisuseIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(numbers({.size = 0}), "batcher \"batcher\": expected batches of at least 1 item");
  EXPECT_DEATH(numbers({.size = 5, .capacity = 4}), "a capacity of at least one batch");
  EXPECT_DEATH(numbers({.wait = -1ms}), "a wait that is not negative");
  EXPECT_DEATH(numbers({.overflow = overflow::caller_runs}), "other than caller_runs");
  EXPECT_DEATH(
      {
        inline_executor here;
        numbers b({}, here, [](const batch&) {});
        (void)b.take();
      },
      "no take, because it has a handler");
  EXPECT_DEATH(
      {
        inline_executor here;
        numbers* self = nullptr;
        numbers b({.size = 1}, here, [&](const batch&) { self->drain(); });
        self = &b;
        (void)b.push(1);
      },
      "not to be waited for in its own handler");
}

}  // namespace
}  // namespace sluice::testing::batcher_test
