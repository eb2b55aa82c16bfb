// The next jobs of a queue: peek, kick and timed pauses.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_next_test {
namespace {

class EngineNext : public engine_words {
 protected:
  job_id peek(job_state state, const std::string& queue = "default") {
    auto found = e().peek(queue, state).get();
    if (!found) {
      EXPECT_EQ(found.error().code, error_code::not_found);
    }
    return found ? found->id : 0;
  }
  std::uint64_t kick(std::uint64_t max, const std::string& queue = "default") {
    auto kicked = e().kick(queue, max).get();
    EXPECT_TRUE(kicked) << (kicked ? "" : kicked.error().message);
    return kicked ? kicked->count : 0;
  }
  ids kick_ids(std::uint64_t max) {
    auto kicked = e().kick("default", max).get();
    EXPECT_TRUE(kicked) << (kicked ? "" : kicked.error().message);
    return kicked ? kicked->ids : ids{};
  }
  // Adds `count` dead jobs, in order.
  ids push_dead(std::size_t count, const std::string& queue = "default") {
    const ids all = push_some(count, {.queue = queue});
    for (const leased_job& l : lease(count, queue)) {
      EXPECT_TRUE(fail(l, {.type = "bad", .for_good = true}));
    }
    return all;
  }
  job_id push_later(milliseconds in, const std::string& queue = "default") {
    return push({.queue = queue, .run_at = time.now() + in});
  }
};

TEST_F(EngineNext, PeekOfAnEmptyQueueFindsNothing) {
  EXPECT_EQ(code_of(e().peek("nowhere", job_state::ready).get()), error_code::not_found);
  push({.queue = "other"});
  push();
  take();
  for (const auto state : {job_state::ready, job_state::scheduled, job_state::dead}) {
    EXPECT_EQ(peek(state), 0U);
  }
  for (const auto state : {job_state::running, job_state::held, job_state::done}) {
    EXPECT_EQ(code_of(e().peek("default", state).get()), error_code::invalid);
  }
}

TEST_F(EngineNext, PeekReturnsTheNextReadyJob) {
  push();
  const job_id urgent = push({.priority = 5});
  EXPECT_EQ(peek(job_state::ready), urgent);
  EXPECT_EQ(e().peek("default", job_state::ready).get()->state, job_state::ready);
  configure({.paused = true});
  EXPECT_EQ(peek(job_state::ready), urgent) << "a pause hides nothing";
}

TEST_F(EngineNext, PeekReturnsAReadyJobOnDisk) {
  options.window_jobs_max = 2;
  const ids all = push_some(40);
  reopen();
  EXPECT_EQ(peek(job_state::ready), all[0]);
  for (std::size_t n = 0; n < 39; ++n) {
    ASSERT_TRUE(e().lease_job(all[n]).get());
    ASSERT_EQ(peek(job_state::ready), all[n + 1]) << "running jobs are skipped";
  }
}

TEST_F(EngineNext, PeekReturnsTheSoonestScheduledOrRetryingJob) {
  push_later(10s, "other");
  const job_id late = push_later(60s);
  const job_id soon = push_later(30s);
  EXPECT_EQ(peek(job_state::scheduled), soon);
  const job_id failed = push();
  EXPECT_TRUE(fail(take(), {.retry_in = 20s}));
  EXPECT_EQ(peek(job_state::scheduled), failed);
  EXPECT_EQ(peek(job_state::retrying), failed);
  EXPECT_TRUE(e().remove(failed).get());
  EXPECT_TRUE(e().remove(soon).get());
  EXPECT_EQ(peek(job_state::scheduled), late);
}

TEST_F(EngineNext, PeekReturnsTheOldestDeadJob) {
  push_dead(1500, "other");
  const ids dead = push_dead(3);
  EXPECT_EQ(peek(job_state::dead), dead[0]) << "independent of dead jobs of other queues";
  EXPECT_TRUE(e().retry(dead[0]).get());
  EXPECT_EQ(peek(job_state::dead), dead[1]);
}

TEST_F(EngineNext, PeekFailsIfTheDiskCannotBeRead) {
  push_later(10s);
  drive.reads_fail(true);
  EXPECT_EQ(code_of(e().peek("default", job_state::scheduled).get()), error_code::io_error);
}

TEST_F(EngineNext, KickMakesTheOldestDeadReadyFirst) {
  const ids dead = push_dead(5);
  push_later(1h);
  EXPECT_EQ(kick(0), 0U);
  EXPECT_EQ(kick(3), 3U);
  EXPECT_EQ(counts().dead, 2U);
  EXPECT_EQ(get(dead[0]).attempts, 0U);
  EXPECT_EQ(drain(), (ids{dead[0], dead[1], dead[2]}));
  EXPECT_EQ(kick(10), 2U) << "scheduled jobs stay while there are dead jobs";
  EXPECT_EQ(drain(), (ids{dead[3], dead[4]}));
}

TEST_F(EngineNext, KickMakesScheduledJobsReadyIfThereAreNoDeadJobs) {
  const job_id late = push_later(60s);
  const job_id soon = push_later(10s);
  const job_id middle = push_later(30s);
  push_later(1s, "other");
  EXPECT_EQ(kick(2), 2U);
  EXPECT_EQ(drain(), (ids{soon, middle}));
  EXPECT_EQ(state(late), job_state::scheduled);
  push();
  EXPECT_TRUE(fail(take(), {.retry_in = 20s}));
  EXPECT_EQ(kick(100), 2U);
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(kick(100), 0U);
}

TEST_F(EngineNext, KickReturnsTheJobsItMadeReady) {
  const ids dead = push_dead(3);
  const job_id late = push_later(60s);
  const job_id soon = push_later(10s);
  EXPECT_EQ(kick_ids(2), (ids{dead[0], dead[1]}));
  EXPECT_EQ(e().kick("default", 9).get()->from, job_state::dead);
  EXPECT_EQ(kick_ids(9), (ids{soon, late}));
  EXPECT_EQ(e().kick("default", 9).get()->from, job_state::scheduled);
}

TEST_F(EngineNext, KickWorksPageByPage) {
  const ids dead = push_dead(1000);
  const ids more = push_dead(900);
  EXPECT_EQ(kick(~std::uint64_t{0}), 1900U);
  EXPECT_EQ(counts().ready, 1900U);
  EXPECT_EQ(code_of(e().kick("nowhere", 1).get()), error_code::not_found);
}

TEST_F(EngineNext, AKickIsAnsweredAfterItsCommit) {
  push_dead(2);
  settle();
  drive.block();
  auto kicked = e().kick("default", 1);
  drive.await_blocked();
  EXPECT_FALSE(kicked.is_ready());
  drive.unblock();
  EXPECT_EQ(kicked.get()->count, 1U);
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(e().kick("default", 1).get()), error_code::io_error);
  drive.works();
  advance(2s);
  EXPECT_EQ(counts().dead, 1U);
}

TEST_F(EngineNext, APauseStopsAQueueForItsTime) {
  EXPECT_EQ(code_of(e().pause_for("default", 5s)), error_code::not_found);
  push();
  EXPECT_EQ(e().pause_left("default"), 0ms);
  EXPECT_EQ(code_of(e().pause_for("default", -1ms)), error_code::invalid);
  EXPECT_TRUE(e().pause_for("default", 5s));
  EXPECT_EQ(e().pause_left("default"), 5s);
  EXPECT_TRUE(is_empty());
  auto waits = e().lease({});
  advance(4999ms);
  EXPECT_EQ(e().pause_left("default"), 1ms);
  EXPECT_FALSE(waits.is_ready());
  advance(1ms);
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(e().pause_left("default"), 0ms);
}

TEST_F(EngineNext, APauseOfZeroEndsOne) {
  const job_id id = push();
  EXPECT_TRUE(e().pause_for("default", 1h));
  auto waits = e().lease({});
  EXPECT_TRUE(e().pause_for("default", 0s));
  EXPECT_EQ(waits.get()->front().job->id, id);
}

TEST_F(EngineNext, ATimedPauseAndAPausedOptionBothApply) {
  push();
  EXPECT_TRUE(e().pause_for("default", 5s));
  configure({.paused = true});
  advance(5s);
  EXPECT_TRUE(is_empty());
  EXPECT_TRUE(e().pause_for("default", 5s));
  configure({.paused = false});
  EXPECT_TRUE(is_empty());
  advance(5s);
  EXPECT_FALSE(is_empty());
}

TEST_F(EngineNext, ALaterPauseReplacesTheFirst) {
  push();
  EXPECT_TRUE(e().pause_for("default", 10s));
  EXPECT_TRUE(e().pause_for("default", 2s));
  EXPECT_EQ(e().pause_left("default"), 2s);
  advance(2s);
  EXPECT_FALSE(is_empty());
  advance(10s);
}

TEST_F(EngineNext, APauseEndsWithARestart) {
  push();
  EXPECT_TRUE(e().pause_for("default", 1h));
  reopen();
  EXPECT_EQ(e().pause_left("default"), 0ms);
  EXPECT_FALSE(is_empty());
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_next_test
