// Disks that fail without losing power: changes that cannot be stored are rejected, acknowledged
// ones stay, and service recovers by itself. Every run ends in a power cut, which reveals changes
// that were acknowledged and not stored.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "tests/crash/power_cycle.hpp"

namespace sluice::crash::disk_fault_test {
namespace {

using jobs::testing::failed_sync;

void expect_nothing_lost(const power_cycle_result& all) {
  std::printf("[          ] %s\n[          ] syncs %lu, faults %lu\n",
              all.found.to_string().c_str(), static_cast<unsigned long>(all.syncs),
              static_cast<unsigned long>(all.faults));
  EXPECT_EQ(all.broken, "");
  EXPECT_EQ(all.damage, "");
  EXPECT_TRUE(all.found.ok());
  EXPECT_GE(all.found.acknowledged, 10 * all.found.crashes);
  EXPECT_GE(2 * all.found.done, 10 * all.found.crashes);
  EXPECT_GE(10 * all.faults, all.found.crashes) << "one in ten lives at least";
}

constexpr sluice::testing::effort_counts stores{.ci = 4, .full = 50};

power_cycle with_failing_syncs(failed_sync kind, std::uint64_t seed) {
  return {.cuts = 10, .seed = seed, .trouble = [kind](faulty_disk& disk, random& chance) {
            if (chance.below(8) == 0) disk.fail_next_sync(1 + chance.below(2), kind);
          }};
}

TEST(disk_fault_test, FailedSyncsAcknowledgeNothing) {
  expect_nothing_lost(run_many(stores, with_failing_syncs(failed_sync::keeps, 4000)));
}

TEST(disk_fault_test, FailedSyncsThatForgetWritesAcknowledgeNothing) {
  expect_nothing_lost(run_many(stores, with_failing_syncs(failed_sync::forgets, 4100)));
}

TEST(disk_fault_test, FailedSyncsThatRevertWritesAcknowledgeNothing) {
  expect_nothing_lost(run_many(stores, with_failing_syncs(failed_sync::reverts, 4200)));
}

TEST(disk_fault_test, ShortWritesLoseNothing) {
  expect_nothing_lost(
      run_many(stores, {.cuts = 10, .seed = 4300, .trouble = [](faulty_disk& disk, random& chance) {
                          disk.short_writes(chance.below(4) == 0 ? 0.05 : 0);
                        }}));
}

TEST(disk_fault_test, ReadErrorsLoseNothing) {
  expect_nothing_lost(
      run_many(stores, {.cuts = 10, .seed = 4400, .trouble = [](faulty_disk& disk, random& chance) {
                          disk.read_errors(chance.below(4) == 0 ? 0.05 : 0);
                        }}));
}

TEST(disk_fault_test, ADiskThatIsSometimesFullLosesNothing) {
  expect_nothing_lost(
      run_many(stores, {.cuts = 10, .seed = 4500, .trouble = [](faulty_disk& disk, random& chance) {
                          if (chance.below(10) == 0) disk.full_after(chance.below(9000));
                          if (chance.below(5) == 0) disk.free();
                        }}));
}

jobs::job_spec job(int number) {
  jobs::job_spec spec;
  spec.queue = "alpha";
  spec.kind = "fault";
  spec.args.data =
      "{\"number\":" + std::to_string(number) + ",\"pad\":\"" + std::string(1000, 'x') + "\"}";
  return spec;
}

// Pushes until the disk is full, and returns how many jobs fitted into the files' own free space.
int push_until_refused(jobs::engine& engine) {
  for (int count = 0; count < 1000; ++count) {
    const auto pushed = engine.push(job(count)).get();
    if (pushed) continue;
    EXPECT_EQ(pushed.error().code, jobs::error_code::disk_full) << pushed.error().message;
    return count;
  }
  ADD_FAILURE() << "the full disk accepted a thousand jobs";
  return 1000;
}

// Acks each lease. Returns those rejected for lack of space, whose leases must still be valid.
std::vector<jobs::lease_ref> ack_on_full_disk(jobs::engine& engine,
                                              const std::vector<jobs::leased_job>& taken) {
  std::vector<jobs::lease_ref> refused;
  for (const auto& lease : taken) {
    const auto acked = engine.ack(lease.ref()).get();
    if (acked) continue;
    EXPECT_EQ(acked.error().code, jobs::error_code::disk_full) << acked.error().message;
    EXPECT_TRUE(engine.extend(lease.ref())) << "the lease is lost and the job is not done";
    refused.push_back(lease.ref());
  }
  return refused;
}

TEST(disk_fault_test, AFullDiskIsReportedAtOnceAndPushesResumeWhenThereIsSpace) {
  faulty_disk disk;
  const auto opened = open_engine(disk, {});
  ASSERT_TRUE(opened) << opened.error().message;
  auto& engine = **opened;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(engine.push(job(i)).get());

  disk.full_after(0);
  const int taken_on = push_until_refused(engine);
  for (int i = 0; i < 10; ++i) {
    const auto pushed = engine.push(job(i)).get();
    ASSERT_FALSE(pushed);
    EXPECT_EQ(pushed.error().code, jobs::error_code::disk_full) << pushed.error().message;
    EXPECT_NE(pushed.error().message.find("space"), std::string::npos) << pushed.error().message;
  }
  EXPECT_FALSE(engine.health().takes_pushes);
  EXPECT_EQ(engine.health().code, jobs::error_code::disk_full);
  const auto taken = engine.lease({.queues = {"alpha"}, .max = 10}).get();
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->size(), 10U);
  const auto refused = ack_on_full_disk(engine, {taken->begin(), taken->begin() + 5});

  disk.free();
  for (const auto& lease : refused) EXPECT_TRUE(engine.ack(lease).get());
  for (std::size_t i = 5; i < 10; ++i) EXPECT_TRUE(engine.ack((*taken)[i].ref()).get());
  sluice::testing::eventually([&] { return engine.health().takes_pushes; },
                              "pushes to be accepted when there is space again");
  EXPECT_TRUE(engine.push(job(60)).get());
  EXPECT_EQ(engine.queue("alpha")->counts.unfinished(), 41U + static_cast<unsigned>(taken_on));
}

TEST(disk_fault_test, AFullDiskCanBeOpenedAndServes) {
  faulty_disk disk;
  {
    const auto engine = open_engine(disk, {});
    ASSERT_TRUE(engine);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE((*engine)->push(job(i)).get());
    disk.power_off();
  }
  const auto after = disk.power_cut(1);
  after->full_after(0);
  const auto opened = open_engine(*after, {});
  ASSERT_TRUE(opened) << opened.error().message;
  auto& engine = **opened;
  const auto taken = engine.lease({.queues = {"alpha"}, .max = 50}).get();
  ASSERT_TRUE(taken);
  // The log may have too little space for even one commit: then the store recovers at once.
  push_until_refused(engine);
  const auto health = engine.health();
  EXPECT_TRUE(health.takes_pushes || health.code == jobs::error_code::disk_full) << health.reason;
  const auto refused = ack_on_full_disk(engine, *taken);
  after->free();
  for (const auto& lease : refused) EXPECT_TRUE(engine.ack(lease).get());
}

TEST(disk_fault_test, AcksOnAFullDiskStayAndTheOtherJobsAreRedelivered) {
  faulty_disk disk;
  std::uint64_t left = 0;
  {
    const auto opened = open_engine(disk, {});
    ASSERT_TRUE(opened) << opened.error().message;
    auto& engine = **opened;
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(engine.push(job(i)).get());
    disk.full_after(0);
    const int taken_on = push_until_refused(engine);
    const auto taken = engine.lease({.queues = {"alpha"}, .max = 20}).get();
    ASSERT_TRUE(taken);
    ASSERT_EQ(taken->size(), 20U);
    const auto refused = ack_on_full_disk(engine, *taken);
    left = 30U + static_cast<unsigned>(taken_on) + refused.size();
    disk.power_off();
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto after = disk.power_cut(seed);
    after->free();
    const auto engine = open_engine(*after, {});
    ASSERT_TRUE(engine) << engine.error().message << ", seed " << seed;
    EXPECT_EQ((*engine)->queue("alpha")->counts.unfinished(), left) << "seed " << seed;
    const auto again = (*engine)->lease({.queues = {"alpha"}, .max = 1000}).get();
    ASSERT_TRUE(again) << "seed " << seed;
    EXPECT_EQ(again->size(), left) << "seed " << seed;
  }
}

TEST(disk_fault_test, ADamagedFileIsReportedAsCorrupt) {
  faulty_disk disk;
  {
    const auto engine = open_engine(disk, {});
    ASSERT_TRUE(engine);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE((*engine)->push(job(i)).get());
  }
  ASSERT_TRUE(disk.corrupt_page("jobs.db", 0));
  const auto opened = open_engine(disk, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, jobs::error_code::corrupt) << opened.error().message;
}

}  // namespace
}  // namespace sluice::crash::disk_fault_test
