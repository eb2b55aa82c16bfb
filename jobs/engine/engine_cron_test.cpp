// Cron entries: one run per scheduled time, neither lost nor doubled. The clock of these tests
// starts at midnight of 2026-01-01, UTC.

#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/engine/testing/engine_words.hpp"

namespace sluice::jobs::testing::engine_cron_test {
namespace {

class EngineCron : public engine_words {
 protected:
  static cron_spec every_minute(const std::string& name = "c",
                                missed_runs missed = missed_runs::one) {
    cron_spec c;
    c.name = name;
    c.schedule = "* * * * *";
    c.missed = missed;
    c.job.kind = "run";
    return c;
  }
  cron_info set(cron_spec spec) {
    auto stored = e().set_cron(std::move(spec)).get();
    EXPECT_TRUE(stored) << (stored ? "" : stored.error().message);
    return stored ? *std::move(stored) : cron_info{};
  }
  cron_entry entry(const std::string& name = "c") {
    auto found = e().get_cron(name);
    EXPECT_TRUE(found);
    return found ? found->entry : cron_entry{};
  }
  void stop_for(std::chrono::nanoseconds pause) {
    e().stop();
    engine_.reset();
    time.advance(pause);
    open();
    settle();
  }
  const unix_time start = time.now();
};

TEST_F(EngineCron, RunsAtItsTimes) {
  const cron_info c = set(every_minute());
  EXPECT_EQ(c.entry.next_at, start + 60s);
  ASSERT_EQ(c.upcoming.size(), 5U);
  EXPECT_EQ(c.upcoming[4], start + 300s);
  advance(59s);
  EXPECT_TRUE(e().queues().empty());
  advance(1s);
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_EQ(entry().runs, 1U);
  EXPECT_EQ(entry().last_at, start + 60s);
  EXPECT_EQ(entry().next_at, start + 120s);
  for (int i = 0; i < 10; ++i) advance(60s);
  EXPECT_EQ(drain().size(), 10U);
  EXPECT_EQ(entry().runs, 11U);
  EXPECT_EQ(entry().missed, 0U);
  EXPECT_EQ(e().stats().cron_runs, 11U);
}

TEST_F(EngineCron, FollowsItsZone) {
  cron_spec c = every_minute();
  c.schedule = "30 9 * * *";
  c.zone = "America/New_York";
  EXPECT_EQ(set(c).entry.next_at, start + 14h + 30min);
}

TEST_F(EngineCron, BadEntriesAreRefused) {
  cron_spec c = every_minute();
  c.schedule = "61 * * * *";
  EXPECT_EQ(code_of(e().set_cron(c).get()), error_code::invalid);
  c = every_minute();
  c.zone = "Nowhere/Land";
  EXPECT_FALSE(e().set_cron(c).get());
  c = every_minute("a b");
  EXPECT_FALSE(e().set_cron(c).get());
  c = every_minute();
  c.job.kind = "";
  EXPECT_FALSE(e().set_cron(c).get());
  EXPECT_TRUE(e().crons().empty());
  EXPECT_EQ(code_of(e().get_cron("c")), error_code::not_found);
  EXPECT_EQ(code_of(e().run_cron("c").get()), error_code::not_found);
  EXPECT_EQ(code_of(e().remove_cron("c").get()), error_code::not_found);
  EXPECT_EQ(code_of(e().patch_cron("c", {.paused = true}).get()), error_code::not_found);
}

TEST_F(EngineCron, MissedRunsFollowThePolicy) {
  set(every_minute("skip", missed_runs::skip));
  set(every_minute("one", missed_runs::one));
  set(every_minute("all", missed_runs::all));
  stop_for(5min + 30s);
  EXPECT_EQ(entry("skip").runs, 0U);
  EXPECT_EQ(entry("skip").missed, 5U);
  EXPECT_EQ(entry("one").runs, 1U);
  EXPECT_EQ(entry("one").missed, 4U);
  EXPECT_EQ(entry("all").runs, 5U);
  EXPECT_EQ(entry("all").missed, 0U);
  EXPECT_EQ(drain().size(), 6U);
  advance(30s);
  EXPECT_EQ(drain().size(), 3U);
}

TEST_F(EngineCron, MissedRunsAreLimited) {
  set(every_minute("all", missed_runs::all));
  cron_spec often = every_minute("often", missed_runs::all);
  often.schedule = "* * * * * *";
  set(often);
  stop_for(48h + 30s);
  EXPECT_EQ(entry("all").runs, limits::cron_missed_max);
  EXPECT_EQ(entry("all").missed, 2880 - limits::cron_missed_max);
  // More runs than are counted one by one: still the last ones.
  EXPECT_EQ(entry("often").runs, limits::cron_missed_max);
  EXPECT_EQ(entry("often").last_at, time.now());
  EXPECT_EQ(entry("often").missed, 100'000 - limits::cron_missed_max);
  EXPECT_EQ(drain("default", 100).size(), 2 * limits::cron_missed_max);
}

TEST_F(EngineCron, ARunIsPushedOnceIfItsCommitFails) {
  set(every_minute());
  drive.fails(error_code::io_error);
  advance(60s);
  EXPECT_EQ(entry().runs, 0U);
  drive.works();
  advance(2s);
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_EQ(entry().runs, 1U);
  EXPECT_EQ(entry().next_at, start + 120s);
}

TEST_F(EngineCron, ARunIsPushedOnceIfTheProcessEndsBeforeOrAfterIt) {
  set(every_minute());
  drive.fails(error_code::io_error);
  advance(60s);
  crash();  // before
  settle();
  EXPECT_EQ(drain().size(), 1U);
  crash();  // after
  settle();
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(entry().runs, 1U);
  advance(60s);
  crash();
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_EQ(entry().runs, 2U);
}

TEST_F(EngineCron, AFullDiskDefersTheRunAndStoresAcks) {
  push({.queue = "other"});
  const leased_job l = take("other");
  set(every_minute());
  settle();
  drive.is_full();
  drive.block();
  auto before = begin_push({.queue = "elsewhere"});
  drive.await_blocked();
  auto acked = e().ack(l.ref());  // in one commit with the run due by then
  time.advance(60s);
  drive.unblock();
  EXPECT_FALSE(before.get());
  EXPECT_TRUE(acked.get());
  EXPECT_EQ(entry().runs, 0U);
  drive.works();
  advance(2s);
  EXPECT_EQ(drain().size(), 1U);
  EXPECT_EQ(entry().runs, 1U);
}

TEST_F(EngineCron, AUniqueKeyKeepsRunsFromOverlapping) {
  cron_spec c = every_minute();
  c.job.unique.key = "u";
  set(c);
  advance(60s);
  const leased_job running = take();
  EXPECT_EQ(entry().last_job, running.job->id);
  ASSERT_TRUE(e().extend(running.ref(), 10min));
  advance(60s);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(entry().runs, 1U);
  EXPECT_EQ(entry().missed, 1U);
  EXPECT_EQ(entry().last_job, running.job->id);
  ASSERT_TRUE(ack(running));
  advance(60s);
  EXPECT_EQ(drain().size(), 1U);
  reopen();
  EXPECT_EQ(entry().runs, 2U);
  EXPECT_EQ(entry().missed, 1U);
}

TEST_F(EngineCron, AKeyHoldsARunUntilThePreviousOneHasEnded) {
  cron_spec c = every_minute();
  c.job.key = "k";
  set(c);
  advance(60s);
  const leased_job first = take();
  ASSERT_TRUE(e().extend(first.ref(), 10min));
  advance(60s);
  EXPECT_EQ(counts().held, 1U);
  ASSERT_TRUE(ack(first));
  EXPECT_EQ(drain().size(), 1U);
}

TEST_F(EngineCron, APausedEntryMissesNoRuns) {
  set(every_minute("c", missed_runs::all));
  const auto paused = e().patch_cron("c", {.paused = true}).get();
  ASSERT_TRUE(paused);
  EXPECT_TRUE(paused->upcoming.empty());
  advance(10min);
  stop_for(10min);
  EXPECT_EQ(entry().runs, 0U);
  ASSERT_TRUE(e().patch_cron("c", {.paused = false}).get());
  EXPECT_EQ(entry().next_at, start + 21min);
  settle();
  EXPECT_EQ(entry().runs, 0U);
  advance(60s);
  EXPECT_EQ(entry().runs, 1U);
  EXPECT_EQ(entry().missed, 0U);
}

TEST_F(EngineCron, AChangeKeepsTheRunHistory) {
  set(every_minute());
  advance(60s);
  cron_spec c = every_minute();
  c.schedule = "0 * * * *";
  c.job.kind = "other";
  EXPECT_EQ(set(c).entry.runs, 1U);
  EXPECT_EQ(entry().next_at, start + 1h);
  drain();
  advance(60s);
  EXPECT_TRUE(is_empty());
  advance(58min);
  EXPECT_EQ(take().job->spec.kind, "other");
  // The schedule stays if only the job changes.
  cron_spec same = c;
  same.job.kind = "third";
  EXPECT_EQ(set(same).entry.next_at, start + 2h);
}

TEST_F(EngineCron, ARemovedEntryDoesNotRun) {
  set(every_minute());
  ASSERT_TRUE(e().remove_cron("c").get());
  EXPECT_TRUE(e().crons().empty());
  advance(10min);
  EXPECT_TRUE(e().queues().empty());
  stop_for(1min);
  EXPECT_TRUE(e().crons().empty());
}

TEST_F(EngineCron, ChangesInOneCommitApplyInOrder) {
  in_one_commit([&] {
    auto made = e().set_cron(every_minute());
    cron_spec hourly = every_minute();
    hourly.schedule = "@hourly";
    auto changed = e().set_cron(hourly);
    auto paused = e().patch_cron("c", {.paused = true});
    drive.unblock();
    EXPECT_TRUE(made.get());
    EXPECT_TRUE(changed.get());
    EXPECT_TRUE(paused.get());
  });
  EXPECT_EQ(entry().spec.schedule, "@hourly");
  EXPECT_TRUE(entry().spec.paused);
  in_one_commit([&] {
    auto changed = e().set_cron(every_minute());
    auto removed = e().remove_cron("c");
    auto again = e().set_cron(every_minute());
    drive.unblock();
    EXPECT_TRUE(changed.get());
    EXPECT_TRUE(removed.get());
    EXPECT_TRUE(again.get());
  });
  EXPECT_EQ(entry().spec, every_minute());
  advance(60s);
  EXPECT_EQ(entry().runs, 1U);
}

TEST_F(EngineCron, APauseDoesNotRestoreAnEntryBeingRemoved) {
  set(every_minute());
  in_one_commit([&] {
    auto removed = e().remove_cron("c");
    auto paused = e().patch_cron("c", {.paused = true});
    drive.unblock();
    EXPECT_TRUE(removed.get());
    EXPECT_EQ(code_of(paused.get()), error_code::not_found);
  });
  EXPECT_TRUE(e().crons().empty());
}

TEST_F(EngineCron, APauseDoesNotCreateAnEntryWhoseCommitFails) {
  in_one_commit([&] {
    auto made = e().set_cron(every_minute());
    auto paused = e().patch_cron("c", {.paused = true});
    drive.fails_when([](const transaction& b) -> std::optional<error> {
      const bool is_it = std::ranges::any_of(
          b.changes, [](const change& c) { return c.type == change::op::set_cron; });
      return is_it ? std::optional(error{error_code::io_error, "made to fail"}) : std::nullopt;
    });
    drive.unblock();
    EXPECT_EQ(code_of(made.get()), error_code::io_error);
    EXPECT_EQ(code_of(paused.get()), error_code::not_found);
  });
  drive.works();
  advance(2s);
  EXPECT_TRUE(e().crons().empty());
}

TEST_F(EngineCron, AnEntryWhoseCommitFailsIsUnchanged) {
  drive.fails(error_code::io_error);
  EXPECT_FALSE(e().set_cron(every_minute()).get());
  EXPECT_TRUE(e().crons().empty());
  drive.works();
  advance(1s);
  set(every_minute());
  drive.fails(error_code::io_error);
  EXPECT_FALSE(e().remove_cron("c").get());
  drive.works();
  advance(59s);
  advance(2s);
  EXPECT_EQ(entry().runs, 1U);
}

TEST_F(EngineCron, RunNowIsAnAdditionalRun) {
  set(every_minute());
  ASSERT_TRUE(e().run_cron("c").get());
  EXPECT_EQ(take().job->spec.kind, "run");
  EXPECT_EQ(entry().next_at, start + 60s);
  advance(60s);
  EXPECT_EQ(drain().size(), 1U);
}

TEST_F(EngineCron, AFullQueueStillGetsItsRun) {
  configure({.capacity_jobs = 1});
  push();
  set(every_minute());
  advance(60s);
  EXPECT_EQ(counts().ready, 2U);
  EXPECT_EQ(code_of(try_push({})), error_code::queue_full);
  EXPECT_EQ(drain().size(), 2U);
}

TEST_F(EngineCron, AThousandEntriesDueAtOnceAllRun) {
  for (int i = 0; i < 1500; ++i) set(every_minute("c" + std::to_string(i)));
  advance(60s);
  EXPECT_EQ(drain("default", 1000).size(), 1500U);
  advance(60s);
  EXPECT_EQ(drain("default", 1000).size(), 1500U);
  const auto all = e().crons();
  EXPECT_TRUE(std::ranges::all_of(all, [](const cron_info& c) { return c.entry.runs == 2; }));
}

TEST_F(EngineCron, ARunsMetadataNamesItsEntryAndTime) {
  set(every_minute());
  auto events = e().events({.types = {event_type::cron_ran}});
  advance(60s);
  const auto page = events.get();
  ASSERT_TRUE(page);
  EXPECT_EQ(page->events.front().text, "c");
  EXPECT_EQ(page->events.front().job, take().job->id);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_cron_test
