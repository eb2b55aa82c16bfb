// Threads that commit for those they serve.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::testing::engine_help_test {
namespace {

using sluice::testing::eventually;

class EngineHelp : public engine_words {
 protected:
  // On a thread that helps, and ends.
  template <class F>
  static void on_a_loop(F f) {
    std::thread(std::move(f)).join();
  }
  // As a loop does, which would look for more in between.
  void help() {
    while (e().help()) {
    }
  }
  // The committing thread has something to wake for, so that it can be seen to sleep.
  void await_sleep() {
    if (!has(alarm_)) alarm_ = push({.queue = "alarm", .run_at = time.now() + 1h});
    settle();
    eventually([&] { return time.timers().pending() == 1; });
  }
  // Pushes so many and helps. True: they were committed here. A commit that took long, because its
  // thread stood still, leaves the next to the committing thread.
  bool pushes_here(int count, const job_spec& spec = {}) {
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < count; ++i) all.push_back(begin_push(spec));
    for (auto& f : all) EXPECT_FALSE(f.is_ready());
    help();
    const bool are_ready = std::ranges::all_of(all, [](auto& f) { return f.is_ready(); });
    for (auto& f : all) EXPECT_TRUE(f.get());
    return are_ready;
  }
  // What is done on a thread that helps, while the committing thread sleeps.
  template <class Attempt>
  bool here(Attempt attempt) {
    await_sleep();
    bool was_here = false;
    on_a_loop([&] {
      help();
      was_here = attempt();
    });
    return was_here;
  }
  std::vector<std::size_t> last_adds(std::ptrdiff_t count) {
    const auto all = drive.adds();
    return {all.end() - count, all.end()};
  }

 private:
  job_id alarm_ = 0;
};

TEST_F(EngineHelp, WhatAHelperCallsIsCommittedWhenItHelps) {
  eventually([&] { return here([&] { return pushes_here(2); }); });
  EXPECT_EQ(last_adds(1), (std::vector<std::size_t>{2}));
}

TEST_F(EngineHelp, MuchIsLeftToTheCommittingThread) {
  (void)e();
  settle();
  on_a_loop([&] {
    help();
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < 100; ++i) all.push_back(begin_push({}));
    help();
    for (auto& f : all) EXPECT_TRUE(f.get());
  });
}

TEST_F(EngineHelp, WhoWaitsForManyToComeBackDoesNotWaitForLong) {
  const auto counts = {8, 1, 8, 3, 1};
  eventually([&] {
    return here(
        [&] { return std::ranges::all_of(counts, [&](int count) { return pushes_here(count); }); });
  });
  EXPECT_EQ(last_adds(5), (std::vector<std::size_t>{8, 1, 8, 3, 1}));
}

TEST_F(EngineHelp, WhileSomebodyElseCommitsItOnlySaysThatThereIsMore) {
  (void)e();
  settle();
  drive.hold();
  auto first = begin_push({});
  drive.await_held();
  on_a_loop([&] {
    help();
    auto later = begin_push({});
    help();
    EXPECT_FALSE(later.is_ready());
    drive.let_go();
    EXPECT_TRUE(later.get());
  });
  EXPECT_TRUE(first.get());
}

TEST_F(EngineHelp, WorkersThatWaitAreServedByAHelpersCommit) {
  eventually([&] {
    auto waits = e().lease({});
    return here([&] {
      const bool was_here = pushes_here(1);
      EXPECT_TRUE(!was_here || waits.is_ready());
      auto acked = e().ack(waits.get()->front().ref());
      help();
      // By this thread, or by the other: that one was woken for the end of the lease.
      EXPECT_TRUE(acked.get());
      return was_here;
    });
  });
}

TEST_F(EngineHelp, TheCommittingThreadWakesForATimeThatAHelperHasSet) {
  const job_spec later{.run_at = time.now() + milliseconds(500)};
  eventually([&] { return here([&] { return pushes_here(1, later); }); });
  auto waits = e().lease({});
  settle();
  EXPECT_FALSE(waits.is_ready());
  advance(milliseconds(501));
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineHelp, ALeaseThatAHelperTookRunsOut) {
  push_some(1);
  on_a_loop([&] {
    help();
    auto taken = e().lease({.lease_for = milliseconds(1000)});
    help();
    EXPECT_TRUE(taken.get());
  });
  advance(milliseconds(1001));
  eventually([&] { return e().stats().expired == 1; });
}

TEST_F(EngineHelp, ADiskThatFailsIsReportedToAHelpersCallers) {
  (void)e();
  settle();
  drive.fails(error_code::io_error);
  on_a_loop([&] {
    help();
    auto pushed = begin_push({});
    help();
    EXPECT_EQ(pushed.get().error().code, error_code::io_error);
  });
}

TEST_F(EngineHelp, AnEngineThatStopsAnswersWhatAHelperStaged) {
  (void)e();
  settle();
  on_a_loop([&] {
    help();
    auto pushed = begin_push({});
    std::thread([&] { e().stop(); }).join();
    EXPECT_TRUE(pushed.is_ready());
    help();
    auto late = begin_push({});
    EXPECT_EQ(late.get().error().code, error_code::shutting_down);
  });
  it.reset();
  open();
  EXPECT_EQ(e().queue("default")->counts.ready, 1U);
}

// The next one is likely to be where the last one was.
TEST_F(EngineHelp, AThreadThatHelpedAnEngineBeforeIsNoHelperOfTheNext) {
  for (int i = 0; i < 20; ++i) {
    help();
    reopen();
    auto pushed = begin_push({});
    ASSERT_TRUE(pushed.try_get_for(10s)) << "opened " << i + 1 << " times";
  }
}

TEST_F(EngineHelp, HelpersAndOthersTogetherLoseNothing) {
  (void)e();
  constexpr int of_each = 2000;
  const auto loop = [&] {
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < of_each; ++i) {
      all.push_back(begin_push({}));
      if (i % 3 == 0) help();
    }
    help();
    for (auto& f : all) EXPECT_TRUE(f.get());
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(loop);
  threads.emplace_back([&] {
    for (int i = 0; i < of_each; ++i) EXPECT_TRUE(begin_push({}).get());
  });
  for (auto& t : threads) t.join();
  EXPECT_EQ(e().queue("default")->counts.ready, 3U * of_each);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_help_test
