// Threads that commit for the callers they serve (engine::commit_here).
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::testing::engine_commit_here_test {
namespace {

using sluice::testing::eventually;

class EngineCommitHere : public engine_words {
 protected:
  // Runs on a committing caller thread and ends it.
  template <class F>
  static void on_a_loop(F f) {
    std::thread(std::move(f)).join();
  }
  // Behaves like an event loop, which reads further input in between.
  void commit_all() {
    while (e().commit_here()) {
    }
  }
  // Gives the committing thread a timer, so that the test can see it sleep.
  void await_sleep() {
    if (!has(alarm_)) alarm_ = push({.queue = "alarm", .run_at = time.now() + 1h});
    settle();
    eventually([&] { return time.timers().pending() == 1; });
  }
  // Pushes `count` jobs and commits. Returns true if they were committed here. A slow commit,
  // because its thread was descheduled, leaves the next one to the committing thread.
  bool pushes_here(int count, const job_spec& spec = {}) {
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < count; ++i) all.push_back(begin_push(spec));
    for (auto& f : all) EXPECT_FALSE(f.is_ready());
    commit_all();
    const bool are_ready = std::ranges::all_of(all, [](auto& f) { return f.is_ready(); });
    for (auto& f : all) EXPECT_TRUE(f.get());
    return are_ready;
  }
  // Runs `attempt` on a committing caller thread while the committing thread sleeps.
  template <class Attempt>
  bool here(Attempt attempt) {
    await_sleep();
    bool was_here = false;
    on_a_loop([&] {
      commit_all();
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

TEST_F(EngineCommitHere, ChangesAreCommittedOnTheCallingThread) {
  eventually([&] { return here([&] { return pushes_here(2); }); });
  EXPECT_EQ(last_adds(1), (std::vector<std::size_t>{2}));
}

TEST_F(EngineCommitHere, ManyChangesAreLeftToTheCommittingThread) {
  (void)e();
  settle();
  on_a_loop([&] {
    commit_all();
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < 100; ++i) all.push_back(begin_push({}));
    commit_all();
    for (auto& f : all) EXPECT_TRUE(f.get());
  });
}

TEST_F(EngineCommitHere, TheWaitForFurtherCallersIsShort) {
  const auto counts = {8, 1, 8, 3, 1};
  eventually([&] {
    return here(
        [&] { return std::ranges::all_of(counts, [&](int count) { return pushes_here(count); }); });
  });
  EXPECT_EQ(last_adds(5), (std::vector<std::size_t>{8, 1, 8, 3, 1}));
}

TEST_F(EngineCommitHere, DuringAnotherCommitItOnlyWakesTheCommitter) {
  (void)e();
  settle();
  drive.block();
  auto first = begin_push({});
  drive.await_blocked();
  on_a_loop([&] {
    commit_all();
    auto later = begin_push({});
    commit_all();
    EXPECT_FALSE(later.is_ready());
    drive.unblock();
    EXPECT_TRUE(later.get());
  });
  EXPECT_TRUE(first.get());
}

TEST_F(EngineCommitHere, ItServesWaitingWorkers) {
  eventually([&] {
    auto waits = e().lease({});
    return here([&] {
      const bool was_here = pushes_here(1);
      EXPECT_TRUE(!was_here || waits.is_ready());
      auto acked = e().ack(waits.get()->front().ref());
      commit_all();
      // By either thread: the committer was woken by the expiry of the lease.
      EXPECT_TRUE(acked.get());
      return was_here;
    });
  });
}

TEST_F(EngineCommitHere, TheCommitterWakesForATimerSetOnTheCallingThread) {
  const job_spec later{.run_at = time.now() + milliseconds(500)};
  eventually([&] { return here([&] { return pushes_here(1, later); }); });
  auto waits = e().lease({});
  settle();
  EXPECT_FALSE(waits.is_ready());
  advance(milliseconds(501));
  EXPECT_TRUE(waits.get());
}

TEST_F(EngineCommitHere, ALeaseMadeOnTheCallingThreadExpires) {
  push_some(1);
  on_a_loop([&] {
    commit_all();
    auto taken = e().lease({.lease_for = milliseconds(1000)});
    commit_all();
    EXPECT_TRUE(taken.get());
  });
  advance(milliseconds(1001));
  eventually([&] { return e().stats().expired == 1; });
}

TEST_F(EngineCommitHere, AFailedCommitIsReportedToTheCallers) {
  (void)e();
  settle();
  drive.fails(error_code::io_error);
  on_a_loop([&] {
    commit_all();
    auto pushed = begin_push({});
    commit_all();
    EXPECT_EQ(pushed.get().error().code, error_code::io_error);
  });
}

TEST_F(EngineCommitHere, AStoppingEngineAnswersChangesThatWereNotCommittedHere) {
  (void)e();
  settle();
  on_a_loop([&] {
    commit_all();
    auto pushed = begin_push({});
    std::thread([&] { e().stop(); }).join();
    EXPECT_TRUE(pushed.is_ready());
    commit_all();
    auto late = begin_push({});
    EXPECT_EQ(late.get().error().code, error_code::shutting_down);
  });
  engine_.reset();
  open();
  EXPECT_EQ(e().queue("default")->counts.ready, 1U);
}

// The next engine is likely to have the same address.
TEST_F(EngineCommitHere, AThreadIsNotBoundToTheNextEngine) {
  for (int i = 0; i < 20; ++i) {
    commit_all();
    reopen();
    auto pushed = begin_push({});
    ASSERT_TRUE(pushed.get(10s)) << "opened " << i + 1 << " times";
  }
}

TEST_F(EngineCommitHere, CommittingCallersAndOtherCallersTogetherLoseNothing) {
  (void)e();
  constexpr int of_each = 2000;
  const auto loop = [&] {
    std::vector<future<result<push_receipt>>> all;
    for (int i = 0; i < of_each; ++i) {
      all.push_back(begin_push({}));
      if (i % 3 == 0) commit_all();
    }
    commit_all();
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
}  // namespace sluice::jobs::testing::engine_commit_here_test
