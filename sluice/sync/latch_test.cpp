#include "sluice/sync/latch.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/waiting_suite.hpp"

namespace sluice::testing::latch_test {
namespace {

using namespace std::chrono_literals;

class latch_gate {
 public:
  status wait(const wait_limits& limits) { return latch_.wait(limits); }
  template <class Where>
  static detached await(latch_gate& gate, Where&, wait_limits limits, ending& ended) {
    ended.set(co_await gate.latch_.async_wait(std::move(limits)));
  }
  void open() {
    latch_.count_down();
    latch_.count_down(2);
  }
  std::size_t waiting() const { return latch_.waiting(); }

 private:
  latch latch_{3};
};

INSTANTIATE_TYPED_TEST_SUITE_P(latch, waiting_suite, latch_gate);

TEST(latch_test, OpensAtTheLastArrivalAndStaysOpen) {
  latch l(3);
  l.count_down();
  EXPECT_FALSE(l.try_wait());
  l.count_down(0);
  EXPECT_EQ(l.remaining(), 2);
  l.count_down(2);
  EXPECT_TRUE(l.try_wait());
  l.wait();
  EXPECT_EQ(l.wait(-1s), status::ok);
}

TEST(latch_test, OfZeroIsOpenFromTheStart) {
  latch l(0);
  l.wait();
  EXPECT_TRUE(l.try_wait());
}

TEST(latch_test, StartsAllThreadsAtTheSameMoment) {
  latch start(5);
  std::atomic<int> started{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      ++started;
    });
  }
  eventually([&] { return start.waiting() == 4; });
  EXPECT_EQ(started, 0);
  start.count_down();
  threads.clear();
  EXPECT_EQ(started, 4);
}

TEST(latch_test, AnArrivalCountsHoweverItsWaitEnds) {
  latch l(4);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(l.arrive_and_wait(source.get_token()), status::stopped);
  EXPECT_EQ(l.remaining(), 3);
  EXPECT_EQ(l.arrive_and_wait(1ms), status::timed_out);
  EXPECT_EQ(l.remaining(), 2);
  ending ended;
  [](latch& done, wait_limits stopped, ending& out) -> detached {
    out.set(co_await done.async_arrive_and_wait(stopped));
  }(l, {{}, source.get_token()}, ended);
  ASSERT_TRUE(ended.is_set());
  EXPECT_EQ(ended.result(), status::stopped);
  EXPECT_EQ(l.remaining(), 1);
  l.arrive_and_wait();
}

TEST(latch_test, OnTheStackIsSafeToLeave) {
  // The waiter returns and the latch is destroyed while the last count_down may still be returning.
  stress run;
  for (int i = 0; i < 2'000; ++i) {
    std::jthread other;
    int work[2] = {};
    {
      latch done(2);
      other = std::jthread([&] {
        work[0] = 1;
        done.count_down();
      });
      work[1] = 1;
      done.arrive_and_wait();
      EXPECT_EQ(work[0] + work[1], 2);
    }
    run.did(2);
  }
}

TEST(latch_DeathTest, InvalidCountsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(latch(-1), "sluice::latch.*a count that is not negative");
  EXPECT_DEATH(latch(1).count_down(-1), "sluice::latch.*a count that is not negative");
  EXPECT_DEATH(latch(1).count_down(2), "sluice::latch.*not to be counted down below zero");
  EXPECT_DEATH(latch(0).count_down(), "sluice::latch.*not to be counted down below zero");
  EXPECT_DEATH(latch(1).count_down(latch::max()), "not to be counted down below zero");
}

TEST(latch_DeathTest, DestroyingItWithWaitersIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* const l = new latch(1);
        std::jthread waits([l] { l->wait(); });
        eventually([&] { return l->waiting() == 1; });
        delete l;
      },
      "sluice::latch.*no waiters at its destruction");
}

}  // namespace
}  // namespace sluice::testing::latch_test
