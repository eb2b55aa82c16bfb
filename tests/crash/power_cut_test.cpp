// Acknowledged changes survive a power cut, with an engine and SQLite on a disk that forgets, tears
// and reorders unsynced writes. The same check finds the losses where none are excluded.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/guarded.hpp"
#include "tests/crash/power_cycle.hpp"

namespace sluice::crash::power_cut_test {
namespace {

void print(const power_cycle_result& all) {
  std::printf(
      "[          ] %s\n[          ] syncs %lu, faults %lu, cut while opening %lu, "
      "incomplete commits %lu\n",
      all.found.to_string().c_str(), static_cast<unsigned long>(all.syncs),
      static_cast<unsigned long>(all.faults), static_cast<unsigned long>(all.failed_openings),
      static_cast<unsigned long>(all.incomplete_commits));
  if (!all.broken.empty()) std::printf("[          ] %s\n", all.broken.c_str());
}

constexpr int cuts_each = 20;

// `in_ten`: the least number of pushes acknowledged in ten lives, on average.
void expect_nothing_lost(const power_cycle_result& all, std::uint64_t in_ten) {
  print(all);
  EXPECT_EQ(all.broken, "");
  EXPECT_EQ(all.damage, "") << "an unacknowledged commit was reported as damage";
  EXPECT_TRUE(all.found.ok());
  EXPECT_GE(10 * all.found.acknowledged, in_ten * all.found.crashes);
  EXPECT_GE(20 * all.found.done, in_ten * all.found.crashes);
  EXPECT_GE(10 * all.found.redelivered, all.found.crashes) << "one in ten cuts at least";
}

TEST(power_cut_test, NothingAcknowledgedIsLost) {
  const auto all =
      run_many({.ci = 4, .full = 250, .sanitized = 2}, {.cuts = cuts_each, .seed = 1000});
  expect_nothing_lost(all, 100);
  EXPECT_GT(all.found.extended, 0U);
  EXPECT_GT(all.found.called_off, 0U);
  EXPECT_GT(all.found.results, 0U);
  EXPECT_GT(all.incomplete_commits, 0U) << "the log must be read before SQLite truncates it";
}

TEST(power_cut_test, NothingIsLostWhenThePowerGoesAgainAtOnce) {
  const auto all =
      run_many({.ci = 3, .full = 250}, {.cuts = cuts_each, .seed = 2000, .events_max = 60});
  expect_nothing_lost(all, 1);  // most lives end before anything is stored
  EXPECT_GT(all.failed_openings, 0U);
}

jobs::job_spec job(int number) {
  jobs::job_spec spec;
  spec.queue = "alpha";
  spec.kind = "cut";
  spec.args.data = "{\"number\":" + std::to_string(number) + "}";
  return spec;
}

TEST(power_cut_test, ACleanEndSurvivesWithItsLeases) {
  faulty_disk disk;
  jobs::lease_ref lease;
  {
    const auto engine = open_engine(disk, {});
    ASSERT_TRUE(engine) << engine.error().message;
    for (int i = 0; i < 200; ++i) ASSERT_TRUE((*engine)->push(job(i)).get());
    const auto taken = (*engine)->lease({.queues = {"alpha"}}).get();
    ASSERT_TRUE(taken);
    lease = taken->front().ref();
  }
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto after = disk.power_cut(seed);
    const auto engine = open_engine(*after, {});
    ASSERT_TRUE(engine) << engine.error().message << ", seed " << seed;
    const auto counts = (*engine)->queue("alpha")->counts;
    EXPECT_EQ(counts.unfinished(), 200U) << "seed " << seed;
    EXPECT_EQ(counts.running, 1U) << "seed " << seed;
    EXPECT_TRUE((*engine)->ack(lease).get()) << "seed " << seed;
  }
}

// Opens the store on a disk and returns a description of its damage; empty if it has none.
std::string fault_of(const faulty_disk& disk, std::uint64_t job_count) {
  {
    const auto engine = open_engine(disk, {});
    if (!engine) return engine.error().message;
    const auto found = (*engine)->queue("alpha")->counts.unfinished();
    if (found != job_count) return std::to_string(found) + " jobs";
  }
  return jobs::testing::raw_database(disk, "jobs.db").is_sound() ? "" : "damaged";
}

// The first cut falls on each event of making the store and storing a job, the second one after the
// log was copied into the file and restarted several times (docs/decisions/0018).
TEST(power_cut_test, ACutWhileTheStoreIsMadeLosesNothingAtTheNextCut) {
  constexpr int pushes = 60;
  const std::string name = sluice::testing::test_name();
  const std::uint64_t seeds = sluice::testing::effort(
      name, "seeds for each event of making a store", {.ci = 3, .full = 60, .sanitized = 1});
  auto large = job(1);
  large.args.data = '"' + std::string(2000, 'x') + '"';  // so that the file grows
  bool is_off = true;
  int cuts = 0;
  for (std::uint64_t event = 1; is_off; ++event) {
    faulty_disk made;
    made.power_off_after(event);
    if (const auto engine = open_engine(made, {})) (void)(*engine)->push(large).get();
    is_off = made.is_off();
    for (std::uint64_t i = 1; i <= seeds; ++i) {
      const auto seed = 1000 * event + i;  // different for each event
      const auto at = "event " + std::to_string(event) + ", seed " + std::to_string(seed);
      const auto second = made.power_cut(seed);
      const auto engine = open_engine(*second, {});
      ASSERT_TRUE(engine) << engine.error().message << ", " << at;
      for (int n = 0; n < pushes; ++n) ASSERT_TRUE((*engine)->push(large).get()) << at;
      const auto job_count = (*engine)->queue("alpha")->counts.unfinished();
      for (std::uint64_t again = 1; again <= 2; ++again) {
        EXPECT_EQ(fault_of(*second->power_cut(2 * seed + again), job_count), "") << at;
        ++cuts;
      }
    }
  }
  std::printf("[          ] %d second cuts\n", cuts);
}

TEST(power_cut_test, WithoutSyncsTheSameCheckFindsLosses) {
  const auto all =
      run_many({.ci = 5, .full = 50}, {.cuts = 10, .seed = 3000, .sync = jobs::sync_mode::off});
  print(all);
  EXPECT_GT(all.found.lost, 0U);
  EXPECT_GT(all.found.revived, 0U);
}

// Returns the last sync of the log before the cut: changes acknowledged before it are safe.
std::uint64_t last_flush(const faulty_disk& disk) {
  std::uint64_t last = 0;
  for (const auto& event : disk.events()) {
    const bool is_sync = event.type == jobs::testing::disk_event::op::sync;
    if (is_sync && event.file == "jobs.db-wal") last = event.number;
  }
  return last;
}

TEST(power_cut_test, AnIntervalLosesOnlyChangesAfterTheLastFlush) {
  std::uint64_t lost = 0;
  std::uint64_t acknowledged = 0;
  const std::string name = sluice::testing::test_name();
  const std::uint64_t count =
      sluice::testing::effort(name, "stores with 10 power cuts each", {.ci = 10, .full = 100});
  const std::uint64_t first = sluice::testing::seed(name, 3100);
  for (std::uint64_t seed = first; seed - first < count; ++seed) {
    guarded<std::map<token, std::uint64_t>> answered_at;  // by events of the present disk
    std::set<token> safe;
    power_cycle plan{.cuts = 10, .seed = seed, .sync = jobs::sync_mode::interval};
    plan.flush_every = milliseconds(2);
    plan.answered = [&](faulty_disk& disk, const auto& specs, const auto& answers) {
      const auto now = disk.now();
      answered_at.with([&](auto& all) {
        for (std::size_t i = 0; i < answers.size(); ++i) {
          if (answers[i].outcome == answer::yes) all[token_of(specs[i].args.data)] = now;
        }
      });
    };
    plan.before_cut = [&](faulty_disk& disk) {
      const auto flushed = last_flush(disk);
      answered_at.with([&](auto& all) {
        for (const auto& [id, at] : all) {
          if (at < flushed) safe.insert(id);
        }
        all.clear();
      });
    };
    const auto all = run(plan);
    EXPECT_EQ(all.broken, "") << "seed " << seed;
    EXPECT_FALSE(safe.empty()) << "seed " << seed;
    for (const auto id : all.found.lost_jobs) {
      EXPECT_FALSE(safe.contains(id)) << "job " << id << ", seed " << seed;
    }
    lost += all.found.lost;
    acknowledged += all.found.acknowledged;
  }
  std::printf("[          ] acknowledged %lu, lost after the last flush %lu\n",
              static_cast<unsigned long>(acknowledged), static_cast<unsigned long>(lost));
  EXPECT_GT(lost, 0U);
}

TEST(power_cut_test, TheFileStaysWholeHoweverSeldomItIsSynced) {
  for (const auto mode : {jobs::sync_mode::interval, jobs::sync_mode::off}) {
    const auto all = run_many({.ci = 2, .full = 50, .sanitized = 1},
                              {.cuts = cuts_each, .seed = 3200, .sync = mode});
    EXPECT_EQ(all.broken, "") << to_string(mode);
  }
}

}  // namespace
}  // namespace sluice::crash::power_cut_test
