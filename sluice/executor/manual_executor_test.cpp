#include "sluice/executor/manual_executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "sluice/base/clock.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/testing/executor_kinds.hpp"

namespace sluice::testing::manual_executor_test {
namespace {

using namespace std::chrono_literals;

TEST(manual_executor_test, RunsOnlyInsideACallAndOnTheCallingThread) {
  manual_executor later;
  std::thread::id where;
  std::jthread([&] {
    ASSERT_TRUE(later.submit([&] { where = std::this_thread::get_id(); }));
  }).join();
  EXPECT_EQ(where, std::thread::id());
  EXPECT_EQ(later.pending(), 1u);
  EXPECT_TRUE(later.run_one());
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_FALSE(later.run_one());
  EXPECT_EQ(later.name(), "manual");
}

TEST(manual_executor_test, RunSomeRunsAtMostMax) {
  manual_executor later;
  int ran = 0;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(later.submit([&] { ++ran; }));
  EXPECT_EQ(later.run_some(2), 2u);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(later.pending(), 3u);
  EXPECT_EQ(later.run_some(0), 0u);
  EXPECT_EQ(later.run_some(100), 3u);
}

TEST(manual_executor_test, RunAllAlsoRunsWorkAddedMeanwhile) {
  manual_executor later;
  int ran = 0;
  ASSERT_TRUE(later.submit([&] {
    ++ran;
    ASSERT_TRUE(later.submit([&] { ++ran; }));
  }));
  EXPECT_EQ(later.run_all(), 2u);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(later.run_all(), 0u);
}

TEST(manual_executor_test, PostsAndSubmissionsTakeTurns) {
  manual_executor later;
  std::string order;
  posted a([&] { order += "a"; });
  posted b([&] { order += "b"; });
  for (const char c : {'1', '2', '3'}) ASSERT_TRUE(later.submit([&order, c] { order += c; }));
  later.post(a);
  later.post(b);
  EXPECT_EQ(later.pending(), 5u);
  EXPECT_EQ(later.run_all(), 5u);
  EXPECT_EQ(order, "a1b23");
}

TEST(manual_executor_test, RunNextWaitsForSomethingToRun) {
  manual_executor later;
  std::atomic<int> ran{0};
  std::optional<status> ended;
  std::jthread loop([&] {
    while ((ended = later.run_next()) == status::ok) {
    }
  });
  ASSERT_TRUE(later.submit([&] { ++ran; }));
  posted item([&] { ++ran; });
  later.post(item);
  eventually([&] { return ran == 2; });
  later.close();
  loop.join();
  EXPECT_EQ(*ended, status::closed) << "a loop ends once it is closed and empty";
}

TEST(manual_executor_test, RunNextEndsByItsLimits) {
  manual_executor later;
  manual_clock clock;
  std::stop_source source;
  EXPECT_EQ(later.run_next(deadline::after(-1s)), status::timed_out);
  std::optional<status> timed;
  std::jthread waits([&] { timed = later.run_next(deadline::after(1h, clock)); });
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1h);
  waits.join();
  EXPECT_EQ(*timed, status::timed_out);
  source.request_stop();
  ASSERT_TRUE(later.submit([] {}));
  EXPECT_EQ(later.run_next(source.get_token()), status::stopped);
  EXPECT_EQ(later.pending(), 1u);
}

TEST(manual_executor_test, ItsEndRunsPostsAndDropsSubmissions) {
  const auto canary = std::make_shared<int>(0);
  bool submission_ran = false;
  std::string order;
  manual_executor* later = nullptr;
  posted second([&] { order += "2"; });
  posted first([&] {
    order += "1";
    later->post(second);  // a chain of posts ends before the executor does
    EXPECT_EQ(later->submit([] {}), status::closed);
  });
  {
    manual_executor scoped;
    later = &scoped;
    ASSERT_TRUE(scoped.submit([&, canary] { submission_ran = true; }));
    scoped.post(first);
  }
  EXPECT_EQ(order, "12");
  EXPECT_FALSE(submission_ran);
  EXPECT_EQ(canary.use_count(), 1);
}

}  // namespace
}  // namespace sluice::testing::manual_executor_test
