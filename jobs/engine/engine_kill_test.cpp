// Jobs that are ended as dead without a worker.
#include <gtest/gtest.h>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_kill_test {
namespace {

class EngineKill : public engine_words {
 protected:
  result<job> kill(job_id id) {
    return e().kill(id, {.type = "Killed", .message = "by hand"}).get();
  }
  job_id push_retrying(job_spec spec = {}) {
    const job_id id = push(std::move(spec));
    EXPECT_TRUE(fail(take(), {.type = "Broken", .retry_in = 5s}));
    return id;
  }
};

TEST_F(EngineKill, AWaitingJobIsDeadAtOnceAndNeverLeased) {
  const job_id retrying = push_retrying();
  const job_id scheduled = push({.run_at = time.now() + 5s});
  const job_id ready = push();
  const job_id held = push({.after = {{.on = scheduled, .when = after_when::failure}}});
  ASSERT_EQ(state(held), job_state::held);
  for (const job_id id : {ready, retrying, held, scheduled}) {
    const auto killed = kill(id);
    ASSERT_TRUE(killed) << killed.error().message;
    EXPECT_EQ(killed->state, job_state::dead);
    EXPECT_EQ(*killed, get(id));
    EXPECT_EQ(killed->ended_at, time.now());
    EXPECT_EQ(killed->errors.back().type, "Killed");
    EXPECT_EQ(killed->errors.back().message, "by hand");
  }
  advance(5s);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(counts().dead, 4U);
  EXPECT_EQ(e().stats().died, 4U);
}

TEST_F(EngineKill, CountsNoAttemptAndKeepsTheErrorsBefore) {
  const job_id id = push_retrying();
  const auto killed = kill(id);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->attempts, 1U);
  ASSERT_EQ(killed->errors.size(), 2U);
  EXPECT_EQ(killed->errors.front().type, "Broken");
}

TEST_F(EngineKill, LimitsAndPausesOfTheQueueDoNotApply) {
  configure({.paused = false, .rate = 0.001, .rate_burst = 1, .concurrency = 1});
  const ids all = push_some(3);
  const leased_job running = take();
  configure({.paused = true});
  EXPECT_TRUE(kill(all[1]));
  EXPECT_TRUE(kill(all[2]));
  EXPECT_EQ(counts().dead, 2U);
  EXPECT_TRUE(ack(running));
}

TEST_F(EngineKill, AJobWithoutRetentionIsStillKeptAsDead) {
  const job_id id = push({.run_at = time.now() + 1h, .keep_for = 0ms});
  ASSERT_TRUE(kill(id));
  EXPECT_EQ(state(id), job_state::dead);
  EXPECT_EQ(get(id).due_at, time.now() + e().queue("default")->options.keep_dead);
}

TEST_F(EngineKill, AQueueThatKeepsNoDeadJobsDeletesIt) {
  configure({.keep_dead = 0ms});
  const job_id id = push();
  ASSERT_TRUE(kill(id));
  EXPECT_FALSE(has(id));
}

TEST_F(EngineKill, RunningAndEndedJobsAreRejected) {
  const job_id running = push();
  const leased_job l = take();
  EXPECT_EQ(code_of(kill(running)), error_code::wrong_state);
  EXPECT_EQ(state(running), job_state::running);
  EXPECT_TRUE(ack(l));
  const job_id dead = push();
  ASSERT_TRUE(kill(dead));
  EXPECT_EQ(code_of(kill(dead)), error_code::wrong_state);
  EXPECT_EQ(get(dead).errors.size(), 1U);
  EXPECT_EQ(code_of(kill(1000)), error_code::not_found);
}

TEST_F(EngineKill, ItEndsWaitsForTheJob) {
  const job_id id = push({.run_at = time.now() + 1h, .unique = {.key = "one"}});
  const job_id after_failure = push({.after = {{.on = id, .when = after_when::failure}}});
  auto ended = e().wait(id);
  settle();
  ASSERT_TRUE(kill(id));
  const auto last = ended.get();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, job_state::dead);
  EXPECT_EQ(last->errors.back().type, "Killed");
  EXPECT_EQ(state(after_failure), job_state::ready);
  EXPECT_EQ(try_push({.unique = {.key = "one"}})->outcome, push_receipt::fate::accepted);
}

TEST_F(EngineKill, AddsADeadEvent) {
  const job_id id = push();
  ASSERT_TRUE(kill(id));
  const auto page = e().events({.after = 0, .types = {event_type::dead}}, at_once()).get();
  ASSERT_TRUE(page);
  ASSERT_EQ(page->events.size(), 1U);
  EXPECT_EQ(page->events.front().job, id);
  EXPECT_EQ(page->events.front().text, "Killed");
}

TEST_F(EngineKill, IfTheDiskFailsTheJobIsUnchanged) {
  const job_id id = push();
  settle();
  drive.fails(error_code::io_error);
  EXPECT_EQ(code_of(kill(id)), error_code::io_error);
  drive.works();
  advance(2s);
  EXPECT_EQ(take().job->id, id);
}

TEST_F(EngineKill, SurvivesACrash) {
  const job_id id = push({.run_at = time.now() + 1h, .keep_for = 0ms});
  ASSERT_TRUE(kill(id));
  crash();
  EXPECT_EQ(state(id), job_state::dead);
  ASSERT_TRUE(e().retry(id).get());
  EXPECT_EQ(take().job->id, id);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_kill_test
