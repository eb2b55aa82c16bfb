#pragma once

// The guarantees of every executor with a bounded queue when it is full and when it is closed.
// executor_kinds.hpp defines Kind.

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing {

template <class Kind>
class bounded_executor_suite : public executor_words<Kind> {
 public:
  // Submits on a thread of its own; `result` joins it.
  class submitter {
   public:
    submitter(bounded_executor_suite& test, wait_limits limits)
        : f_(test.job()), thread_([this, &test, limits = std::move(limits)] {
            result_ = test.ex().submit(std::move(f_), limits);
          }) {}
    status result() {
      thread_.join();
      return result_;
    }
    bool has_function() const { return static_cast<bool>(f_); }

   private:
    submission f_;
    status result_ = status::empty;
    std::jthread thread_;
  };

  static constexpr bool no_caller_runs = requires { Kind::refuses_caller_runs; };

  void until_waiting(std::size_t count) {
    eventually([&] { return this->ex().waiting_to_submit() == count; }, "submitters to wait");
  }
  static detached submit_and_tell(bounded_executor_suite* test, submission f, wait_limits limits,
                                  ending& ended) {
    ended.set(co_await test->ex().async_submit(std::move(f), std::move(limits)));
  }
};

TYPED_TEST_SUITE_P(bounded_executor_suite);

TYPED_TEST_P(bounded_executor_suite, ReturnsItsNameAndItsCapacity) {
  this->open({.capacity = 3, .name = "mails"});
  EXPECT_EQ(this->ex().capacity(), 3u);
  EXPECT_EQ(this->ex().name(), "mails");
  EXPECT_EQ(this->ex().queued(), 0u);
}

TYPED_TEST_P(bounded_executor_suite, QueuedCountsUnbegunSubmissions) {
  this->open_full(3, overflow::block);
  EXPECT_EQ(this->ex().queued(), 3u);
  EXPECT_EQ(this->ran, 0);
  this->release();
  this->until_ran(3);
  EXPECT_EQ(this->ex().queued(), 0u);
}

// ---- full: block

TYPED_TEST_P(bounded_executor_suite, TrySubmitWhenFullReturnsFullAndLeavesTheFunction) {
  this->open_full(2, overflow::block);
  submission f = this->job();
  EXPECT_EQ(this->ex().try_submit(std::move(f)), status::full);
  EXPECT_TRUE(f);
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2);
}

TYPED_TEST_P(bounded_executor_suite, SubmitWaitsWhileFull) {
  this->open_full(2, overflow::block);
  typename TestFixture::submitter waits(*this, {});
  this->until_waiting(1);
  EXPECT_EQ(this->ran, 0);
  this->release();
  this->until_ran(3);
  EXPECT_EQ(waits.result(), status::ok);
  EXPECT_EQ(this->ran, 3);
}

TYPED_TEST_P(bounded_executor_suite, ADeadlineEndsTheWaitForCapacity) {
  using namespace std::chrono_literals;
  manual_clock clock;
  this->open_full(2, overflow::block);
  typename TestFixture::submitter waits(*this, deadline::after(1h, clock));
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1h);
  EXPECT_EQ(waits.result(), status::timed_out);
  EXPECT_TRUE(waits.has_function());
  EXPECT_EQ(this->ex().submit(this->job(), 2ms), status::timed_out);
  EXPECT_EQ(this->ex().waiting_to_submit(), 0u);
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2) << "a submission that timed out is not run";
}

TYPED_TEST_P(bounded_executor_suite, AStopEndsTheWaitForCapacity) {
  this->open_full(2, overflow::block);
  std::stop_source source;
  typename TestFixture::submitter waits(*this, source.get_token());
  this->until_waiting(1);
  source.request_stop();
  EXPECT_EQ(waits.result(), status::stopped);
  EXPECT_TRUE(waits.has_function());
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2) << "a stopped submission is not run";
}

TYPED_TEST_P(bounded_executor_suite, CloseEndsTheWaitForCapacity) {
  this->open_full(2, overflow::block);
  typename TestFixture::submitter waits(*this, {});
  this->until_waiting(1);
  EXPECT_TRUE(this->ex().close());
  EXPECT_EQ(waits.result(), status::closed);
  EXPECT_TRUE(waits.has_function());
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2);
}

TYPED_TEST_P(bounded_executor_suite, ACoroutineAwaitsCapacity) {
  this->open_full(1, overflow::block);
  ending ended;
  this->submit_and_tell(this, this->job(), {}, ended);
  this->until_waiting(1);
  EXPECT_FALSE(ended.is_set());
  this->release();
  this->until_ran(2);
  this->until([&] { return ended.is_set(); });
  EXPECT_EQ(ended.result(), status::ok);
}

TYPED_TEST_P(bounded_executor_suite, LimitsEndTheWaitOfACoroutine) {
  using namespace std::chrono_literals;
  manual_clock clock;
  std::stop_source source;
  this->open_full(1, overflow::block);
  ending late;
  ending stopped;
  ending closed;
  this->submit_and_tell(this, this->job(), deadline::after(1h, clock), late);
  this->submit_and_tell(this, this->job(), source.get_token(), stopped);
  this->submit_and_tell(this, this->job(), {}, closed);
  this->until_waiting(3);
  clock.advance(1h);
  ASSERT_TRUE(late.is_set());
  EXPECT_EQ(late.result(), status::timed_out);
  source.request_stop();
  ASSERT_TRUE(stopped.is_set());
  EXPECT_EQ(stopped.result(), status::stopped);
  EXPECT_TRUE(this->ex().close());
  ASSERT_TRUE(closed.is_set());
  EXPECT_EQ(closed.result(), status::closed);
  this->release();
  this->until_ran(1);
  EXPECT_EQ(this->ran, 1);
}

TYPED_TEST_P(bounded_executor_suite, ACoroutineThatFindsCapacityDoesNotWait) {
  this->open({.capacity = 2});
  this->occupy();
  ending ended;
  this->submit_and_tell(this, this->job(), {}, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::ok);
  this->release();
  this->until_ran(1);
}

// ---- full: the other policies

TYPED_TEST_P(bounded_executor_suite, RejectReturnsFullAtOnceAndLeavesTheFunction) {
  using namespace std::chrono_literals;
  this->open_full(2, overflow::reject);
  submission f = this->job();
  EXPECT_EQ(this->ex().submit(std::move(f)), status::full);
  EXPECT_TRUE(f);
  EXPECT_EQ(this->ex().submit(std::move(f), deadline::after(1h)), status::full);
  EXPECT_TRUE(f);
  ending ended;
  this->submit_and_tell(this, this->job(), {}, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::full);
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2);
}

TYPED_TEST_P(bounded_executor_suite, CallerRunsMakesTheSubmitterDoIt) {
  if constexpr (TestFixture::no_caller_runs) GTEST_SKIP() << "refuses caller_runs";
  this->open_full(2, overflow::caller_runs);
  const auto here = std::this_thread::get_id();
  std::thread::id where;
  executor* current = nullptr;
  const auto look = [&] {
    where = std::this_thread::get_id();
    current = executor::current();
  };
  EXPECT_EQ(this->ex().submit(this->job(look)), status::ok);
  EXPECT_EQ(this->ran, 1) << "before submit returned";
  EXPECT_EQ(where, here);
  EXPECT_EQ(current, &this->ex());
  EXPECT_EQ(executor::current(), nullptr);
  EXPECT_EQ(this->ex().try_submit(this->job()), status::ok);
  EXPECT_EQ(this->ran, 2);
  submission f = this->job();
  EXPECT_EQ(this->ex().submit(std::move(f)), status::ok);
  EXPECT_FALSE(f);
  EXPECT_EQ(this->ran, 3);
  ending ended;
  this->submit_and_tell(this, this->job(), {}, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::ok);
  EXPECT_EQ(this->ran, 4);
  this->release();
  this->until_ran(6);
  EXPECT_EQ(this->ran, 6);
}

TYPED_TEST_P(bounded_executor_suite, AFunctionRunByTheCallerMayThrow) {
  if constexpr (TestFixture::no_caller_runs) GTEST_SKIP() << "refuses caller_runs";
  this->open_full(1, overflow::caller_runs);
  EXPECT_EQ(this->ex().submit(this->job([] { throw 1; })), status::ok);
  EXPECT_EQ(this->errors, 1);
  this->release();
  this->until_ran(1);
  EXPECT_EQ(this->errors, 1);
}

TYPED_TEST_P(bounded_executor_suite, ACallerRunsNothingWhenClosedOrStopped) {
  if constexpr (TestFixture::no_caller_runs) GTEST_SKIP() << "refuses caller_runs";
  this->open_full(1, overflow::caller_runs);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(this->ex().submit(this->job(), source.get_token()), status::stopped);
  EXPECT_TRUE(this->ex().close());
  EXPECT_EQ(this->ex().submit(this->job()), status::closed);
  EXPECT_EQ(this->ran, 0);
  this->release();
  this->until_ran(1);
  EXPECT_EQ(this->ran, 1);
}

TYPED_TEST_P(bounded_executor_suite, DropNewestDropsTheNewSubmission) {
  this->open_full(2, overflow::drop_newest);
  std::atomic<bool> newest{false};
  submission f = this->job([&] { newest = true; });
  EXPECT_EQ(this->ex().submit(std::move(f)), status::dropped);
  EXPECT_FALSE(f);
  EXPECT_EQ(this->ex().try_submit(this->job([&] { newest = true; })), status::dropped);
  EXPECT_EQ(this->drops, 2);
  EXPECT_EQ(this->ex().queued(), 2u);
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2);
  EXPECT_FALSE(newest);
}

TYPED_TEST_P(bounded_executor_suite, DropOldestFreesCapacity) {
  this->open_full(2, overflow::drop_oldest);
  std::atomic<int> newest{0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(this->ex().submit(this->job([&] { ++newest; })), status::ok);
  }
  EXPECT_EQ(this->drops, 5);
  EXPECT_EQ(this->ex().queued(), 2u);
  this->release();
  this->until_ran(2);
  EXPECT_EQ(this->ran, 2);
  EXPECT_EQ(newest, 2);
}

TYPED_TEST_P(bounded_executor_suite, LatestReplacesTheLastOne) {
  this->open({.capacity = 2, .overflow = overflow::latest});
  this->occupy();
  std::mutex guard;
  std::vector<int> ran_which;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(this->ex().submit(this->job([&, i] {
      const std::lock_guard hold(guard);
      ran_which.push_back(i);
    })),
              status::ok);
  }
  this->release();
  this->until_ran(2);
  std::ranges::sort(ran_which);  // a concurrent executor keeps no order
  EXPECT_EQ(ran_which, (std::vector<int>{0, 4}));
}

// ---- posts

TYPED_TEST_P(bounded_executor_suite, PostsAreTakenAtOnceWhenItIsFull) {
  this->open_full(1, overflow::block);
  std::vector<std::unique_ptr<posted>> items;
  std::atomic<int> posts_ran{0};
  for (int i = 0; i < 100; ++i) {
    items.push_back(std::make_unique<posted>([&] { ++posts_ran; }));
    this->ex().post(*items.back());
  }
  EXPECT_EQ(posts_ran, 0);
  EXPECT_EQ(this->ex().queued(), 1u) << "posts do not count against the bound";
  this->release();
  this->until([&] { return posts_ran == 100; });
  this->until_ran(1);
}

TYPED_TEST_P(bounded_executor_suite, PostsAreTakenAfterClose) {
  this->open_full(1, overflow::block);
  EXPECT_TRUE(this->ex().close());
  std::atomic<bool> done{false};
  posted item([&] { done = true; });
  this->ex().post(item);
  this->release();
  this->until([&] { return done.load(); });
  this->until_ran(1);
}

TYPED_TEST_P(bounded_executor_suite, APostAfterTheEndIsRunByThePoster) {
  if constexpr (!requires { this->kind->finish(); }) {
    GTEST_SKIP() << "lasts as long as the object";
  } else {
    this->open();
    ASSERT_EQ(this->ex().submit(this->job()), status::ok);
    this->kind->finish();
    EXPECT_EQ(this->ran, 1) << "queued submissions have run";
    std::thread::id where;
    posted item([&] { where = std::this_thread::get_id(); });
    this->ex().post(item);
    EXPECT_EQ(where, std::this_thread::get_id());
    EXPECT_EQ(this->ex().submit(this->job()), status::closed);
    EXPECT_EQ(this->ran, 1);
  }
}

// ---- closing

TYPED_TEST_P(bounded_executor_suite, SubmitAfterCloseReturnsClosedAndLeavesTheFunction) {
  using namespace std::chrono_literals;
  this->open();
  EXPECT_FALSE(this->ex().is_closed());
  EXPECT_TRUE(this->ex().close());
  EXPECT_FALSE(this->ex().close()) << "it was closed already";
  EXPECT_TRUE(this->ex().is_closed());
  submission f = this->job();
  EXPECT_EQ(this->ex().submit(std::move(f)), status::closed);
  EXPECT_TRUE(f);
  EXPECT_EQ(this->ex().try_submit(std::move(f)), status::closed);
  EXPECT_TRUE(f);
  EXPECT_EQ(this->ex().submit(std::move(f), deadline::after(1h)), status::closed);
  EXPECT_TRUE(f);
  ending ended;
  this->submit_and_tell(this, this->job(), {}, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::closed);
  EXPECT_EQ(this->ran, 0);
}

TYPED_TEST_P(bounded_executor_suite, QueuedFunctionsRunAfterClose) {
  this->open_full(5, overflow::block);
  EXPECT_TRUE(this->ex().close());
  this->release();
  this->until_ran(5);
  EXPECT_EQ(this->ran, 5);
}

TYPED_TEST_P(bounded_executor_suite, AFunctionMayCloseIt) {
  this->open_full(3, overflow::block);
  ASSERT_EQ(this->ex().try_submit(this->job()), status::full);
  this->release();
  this->until_ran(3);
  ASSERT_EQ(this->ex().submit(this->job([&] { EXPECT_TRUE(this->ex().close()); })), status::ok);
  this->until_ran(4);
  EXPECT_EQ(this->ex().submit(this->job()), status::closed);
}

TYPED_TEST_P(bounded_executor_suite, SubmittersThatRaceWithCloseGetTheTrueResult) {
  for (int round = 0; round < 50; ++round) {
    this->ran = 0;
    this->open({.capacity = 4});
    std::atomic<int> accepted{0};
    std::atomic<int> ended{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 20; ++n) {
          const auto result = this->ex().submit(this->job());
          if (result) ++accepted;
          EXPECT_TRUE(result || result == status::closed);
        }
        ++ended;
      });
    }
    this->until([&] { return this->ran >= 10; });
    this->ex().close();
    this->until([&] { return ended == 3; });
    this->until([&] { return this->ran == accepted; }, "exactly the accepted submissions to run");
    threads.clear();
    this->kind.reset();
    EXPECT_EQ(this->ran, accepted);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    bounded_executor_suite, ReturnsItsNameAndItsCapacity, QueuedCountsUnbegunSubmissions,
    TrySubmitWhenFullReturnsFullAndLeavesTheFunction, SubmitWaitsWhileFull,
    ADeadlineEndsTheWaitForCapacity, AStopEndsTheWaitForCapacity, CloseEndsTheWaitForCapacity,
    ACoroutineAwaitsCapacity, LimitsEndTheWaitOfACoroutine, ACoroutineThatFindsCapacityDoesNotWait,
    RejectReturnsFullAtOnceAndLeavesTheFunction, CallerRunsMakesTheSubmitterDoIt,
    AFunctionRunByTheCallerMayThrow, ACallerRunsNothingWhenClosedOrStopped,
    DropNewestDropsTheNewSubmission, DropOldestFreesCapacity, LatestReplacesTheLastOne,
    PostsAreTakenAtOnceWhenItIsFull, PostsAreTakenAfterClose, APostAfterTheEndIsRunByThePoster,
    SubmitAfterCloseReturnsClosedAndLeavesTheFunction, QueuedFunctionsRunAfterClose,
    AFunctionMayCloseIt, SubmittersThatRaceWithCloseGetTheTrueResult);

template <class Kind>
class bounded_executor_suite_DeathTest : public executor_words<Kind> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TYPED_TEST_SUITE_P(bounded_executor_suite_DeathTest);

TYPED_TEST_P(bounded_executor_suite_DeathTest, NoCapacityIsABrokenContract) {
  EXPECT_DEATH(this->open({.capacity = 0}), "under test.*a capacity of at least 1");
}

TYPED_TEST_P(bounded_executor_suite_DeathTest, CallerRunsIsABrokenContractWhereItCannotBe) {
  if constexpr (!requires { TypeParam::refuses_caller_runs; }) GTEST_SKIP() << "has caller_runs";
  EXPECT_DEATH(this->open({.overflow = overflow::caller_runs}),
               "under test.*a policy other than caller_runs");
}

REGISTER_TYPED_TEST_SUITE_P(bounded_executor_suite_DeathTest, NoCapacityIsABrokenContract,
                            CallerRunsIsABrokenContractWhereItCannotBe);

}  // namespace sluice::testing
